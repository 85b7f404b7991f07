# SPDX-License-Identifier: Apache-2.0
"""Segments in tiered storage: a broker's cache of indexes, and whole segments side by side.

The bytes are those of a partition that a broker wrote. `RemoteIndexCache` of Kafka 4.3.1 gives the
indexes these names, and keeps their bytes. Its start fails with a foreign name, as with an offset
index that ends inside an entry.
"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from segproof.errors import SegproofError
from segproof.findings import Finding, Severity, Summary, Verdict
from segproof.lookup import PartitionReader
from segproof.reading.file_names import read_remote_name
from segproof.reading.packed_segments import SUFFIXES
from segproof.verification import verify
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.file_damages import later
from segproof_tests.partition_files import name_of
from segproof_tests.printed_rows import Capsys, jsonl
from segproof_tests.reported_findings import check_shown_again, state_of

TXN = KAFKA / "txn-a" / "txn-a-0"
IDS = {0: "oAtiIQ95REujbuzNd_lkLQ", 1014: "BFyXlC8ySMm-Uzxw5lZSMg", 1732: "tvHCaSDsQZWsjr5rbtCjxA"}
END = 2414
CACHE = "remote-log-index-cache"
OTHER_ID = "5fEBmixCR5-dMntYSLIr1g"
Change = Callable[[Path], object]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a data directory: a partition, and the cached indexes of its first two segments."""
    shutil.copytree(TXN, tmp_path / "data" / TXN.name)
    (tmp_path / "data" / CACHE).mkdir()
    for base in (0, 1014):
        for suffix in (".index", ".timeindex", ".txnindex"):
            target = tmp_path / "data" / CACHE / f"{base}_{IDS[base]}{suffix}"
            shutil.copyfile(TXN / name_of(base, suffix), target)
    return tmp_path / "data"


@pytest.fixture
def tier(tmp_path: Path) -> Path:
    """Return a directory with the segments as Kafka's LocalTieredStorage names their files."""
    folder = tmp_path / f"txn-a-0-{OTHER_ID}"
    folder.mkdir()
    for base, end in zip(IDS, (*list(IDS)[1:], END), strict=True):
        stem = folder / f"{base}-{IDS[base]}"
        for suffix in (".log", ".index", ".timeindex", ".txnindex"):
            shutil.copyfile(TXN / name_of(base, suffix), f"{stem}{suffix}")
        shutil.copyfile(TXN / name_of(end, ".snapshot"), f"{stem}.snapshot")
        shutil.copyfile(TXN / "leader-epoch-checkpoint", f"{stem}.leader_epoch_checkpoint")
    return folder


@pytest.fixture
def packed(tier: Path) -> Path:
    """Return the segments as tiered-storage-for-apache-kafka packs them by default."""
    for base, segment_id in IDS.items():
        stem, joined, parts = tier / f"{base}-{segment_id}", b"", {}
        for name, suffix in SUFFIXES.items():
            file = Path(f"{stem}{suffix}")
            parts[name] = {"position": len(joined), "size": file.stat().st_size}
            joined += file.read_bytes()
            file.unlink()
        Path(f"{stem}.indexes").write_bytes(joined)
        told = {"version": "1", "segmentIndexes": parts, "compression": False}
        Path(f"{stem}.rsm-manifest").write_text(json.dumps(told))
    return tier


def checked(path: Path, **options: Any) -> tuple[list[Finding], list[Summary]]:
    """Return the findings and the summaries of a run, which changes no file."""
    before, told = state_of(path), list[Summary]()
    found = list(verify(path, on_summary=told.append, **options))
    assert before == state_of(path)
    return found, told


@later
def changed(path: Path, at: int, data: bytes) -> None:
    """Return what writes bytes into a file."""
    old = path.read_bytes()
    path.write_bytes(old[:at] + data + old[at + len(data) :])


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.usefixtures("processes_for_little")
def test_sound_files_of_tiered_storage_have_no_finding(data: Path, tier: Path, jobs: int) -> None:
    """Neither a note about a transaction that goes on in the next segment."""
    found, told = checked(data.parent, deep=True, jobs=jobs)
    assert not found
    assert {
        data / CACHE: ("remote folder", 2, 0, None, 0),
        data / TXN.name: ("partition", 3, 0, END, 748),
        tier: ("remote folder", 3, 0, END, 748),
    } == {
        Path(one.path): (one.kind, one.segments, one.first_offset, one.end_offset, one.batches)
        for one in told
    }


@pytest.mark.parametrize(
    ("suffix", "change", "law"),
    [
        (".index", lambda path: path.write_bytes(path.read_bytes()[:-1]), "OFFIDX-1"),
        (".index", changed(400, b"\0\0\0\1"), "OFFIDX-2"),
        (".timeindex", changed(0, b"\x7f"), "TIMEIDX-7"),
        (".txnindex", changed(0, b"\1"), "TXNIDX-1"),
    ],
)
def test_a_damaged_index_in_the_cache_is_found(
    suffix: str, change: Change, law: str, data: Path
) -> None:
    """The hint tells to remove it: the broker fetches it again."""
    path = data / CACHE / f"1014_{IDS[1014]}{suffix}"
    change(path)
    found, told = checked(data)
    assert {(law, str(path), Severity.ERROR)} == {
        (one.law, one.path, one.severity) for one in found
    }
    assert all("the broker fetches them again" in one.hint for one in found)
    assert [Verdict.INDEX_DAMAGE_ONLY, Verdict.SOUND] == [one.verdict for one in told]
    check_shown_again(found)


def test_no_recovery_cuts_a_segment_in_tiered_storage(
    packed: Path, tmp_path: Path, capsys: Capsys
) -> None:
    """A page once told where a recovery cuts such a log, and had no map of a packed index; verify
    said of a single log that a recovery would delete batches of it."""
    log = packed / f"0-{IDS[0]}.log"
    changed(100_000, b"oops")(log)
    changed(400, b"\x7f")(packed / f"1014-{IDS[1014]}.indexes")
    out = tmp_path / "page.html"
    assert 1 == cli.run(["report", str(packed), "--out", str(out)])
    page = out.read_text()
    assert "BATCH-3" in page
    assert "OFFIDX-2" in page
    assert not re.search("a recovery cuts|A broker that recovers|No map", page)
    assert "This segment is in tiered storage, where no recovery cuts it." in page
    assert 2 == page.count("<figcaption>Damage map of ")
    capsys.readouterr()
    assert 1 == cli.run(["verify", str(log), "--no-notes"])
    verdict, *others = capsys.readouterr().out.splitlines()
    assert verdict.endswith("; 1 offset lost; 121 sound batches behind damage")
    assert not any("a recovery" in line for line in others)


def test_odd_names_in_the_cache(data: Path) -> None:
    """A broker's start fails with a foreign name; what it removes itself is a note."""
    cache = data / CACHE
    (cache / "README").touch()
    (cache / f"7-{OTHER_ID}.index").touch()
    (cache / f"0_{IDS[0]}.txnindex").unlink()
    (cache / f"9_{OTHER_ID}.index.deleted").touch()
    (cache / f"9_{OTHER_ID}.timeindex.tmp").touch()
    found, _ = checked(data)
    assert {
        ("README", "DISK-3", Severity.ERROR),
        (f"7-{OTHER_ID}.index", "DISK-3", Severity.ERROR),
        (f"0_{IDS[0]}.index", "LOAD-1", Severity.NOTE),
        (f"9_{OTHER_ID}.index.deleted", "LOAD-1", Severity.NOTE),
        (f"9_{OTHER_ID}.timeindex.tmp", "DISK-41", Severity.NOTE),
        (f"9_{OTHER_ID}.index.deleted", "DISK-45", Severity.NOTE),
        (f"9_{OTHER_ID}.timeindex.tmp", "DISK-45", Severity.NOTE),
    } == {(Path(one.path).name, one.law, one.severity) for one in found}
    for finding in found:
        check_shown_again([finding])


def test_an_empty_cache_is_no_stray(data: Path) -> None:
    """A broker without remote segments has one."""
    for path in (data / CACHE).iterdir():
        path.unlink()
    found, told = checked(data)
    assert ([], [TXN.name]) == (found, [Path(one.path).name for one in told])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "change", "laws"),
    [
        (".log", changed(5000, b"x"), {"BATCH-3"}),
        (".log", lambda path: path.write_bytes(path.read_bytes()[:-20]), {"DUMP-6"}),
        (".log", Path.unlink, {"DISK-4"}),
        (".index", changed(15, b"\1"), {"SEG-7"}),
        (".timeindex", Path.unlink, {"DISK-5"}),
        (".leader_epoch_checkpoint", lambda path: path.write_text("0\n1\n3 0\n"), {"DISK-37"}),
        (".snapshot", lambda path: shutil.copy(TXN / name_of(END, ".snapshot"), path), {"DISK-35"}),
    ],
)
def test_a_remote_segment_is_judged_with_the_files_beside_it(
    suffix: str, change: Change, laws: set[str], tier: Path
) -> None:
    """By its own name; the hint names no broker's directory, and no rebuild."""
    change(tier / f"1014-{IDS[1014]}{suffix}")
    found, _ = checked(tier)
    assert laws <= {one.law for one in found}
    assert all(f"1014-{IDS[1014]}." in one.path for one in found)
    assert all("segproof" not in one.hint for one in found)
    assert all("a recovery would" not in one.message for one in found)
    check_shown_again([one for one in found if one.is_defect])


def test_a_remote_name_in_a_partition_stays_a_stray(tmp_path: Path, tier: Path) -> None:
    """A broker can't load the partition."""
    folder = shutil.copytree(tier, tmp_path / "t-0")
    found, _ = checked(folder)
    assert "FILE-2" in {one.law for one in found}


@pytest.mark.slow
def test_a_segment_that_is_packed_plainly_is_read_as_if_unpacked(
    packed: Path, capsys: Capsys
) -> None:
    """By each verb; a finding's command names the file as if it were one."""
    found, (told,) = checked(packed, deep=True)
    assert ([], 3, 748, END) == (found, told.segments, told.batches, told.end_offset)
    with PartitionReader(packed) as remote, PartitionReader(TXN) as local:
        for offset in (0, 1013, 1500, END):
            assert local.lookup_offset(offset) == remote.lookup_offset(offset)
    assert 0 == cli.run(["ls", str(packed)])
    assert "segments: 3" in capsys.readouterr().out
    texts = []
    for path in (packed / f"1014-{IDS[1014]}.timeindex", TXN / name_of(1014, ".timeindex")):
        assert 0 == cli.run(["dump", str(path)])
        texts.append(capsys.readouterr().out.partition("\n")[2])
    assert texts[0]
    assert texts[0] == texts[1]
    changed(12, b"\xff")(packed / f"1014-{IDS[1014]}.indexes")
    found, _ = checked(packed)
    assert {"DISK-8", "SEG-7"} <= {one.law for one in found}
    assert {str(packed / f"1014-{IDS[1014]}.index")} == {one.path for one in found}
    check_shown_again(found)


def test_a_packed_segment_without_transactions_has_no_transaction_index(packed: Path) -> None:
    """Its place is null, and what the log aborted is missing."""
    manifest = packed / f"1014-{IDS[1014]}.rsm-manifest"
    told = json.loads(manifest.read_text())
    told["segmentIndexes"]["transaction"] = None
    manifest.write_text(json.dumps(told))
    found, _ = checked(packed)
    assert {"DISK-12"} == {one.law for one in found if one.is_defect}


def _with(**others: object) -> Callable[[str], str]:
    return lambda text: json.dumps({**json.loads(text), **others})


@pytest.mark.parametrize(
    "change",
    [
        _with(compression=True),
        _with(compression="no"),
        _with(encryption={"dataKey": "", "aad": ""}),
        _with(version="2"),
        _with(segmentIndexes={"offset": {"position": 0, "size": 1 << 40}}),
        _with(segmentIndexes={"offset": {"position": -1, "size": 8}}),
        _with(segmentIndexes={"offset": {"position": 0, "size": "8"}}),
        _with(segmentIndexes={"another": {"position": 0, "size": 8}}),
        _with(segmentIndexes=[]),
        lambda text: text[:-1],
        lambda text: "[" * 100_000,
        lambda text: text + " " * (6 << 20),
    ],
)
def test_a_manifest_that_cannot_be_followed_is_named(
    change: Callable[[str], str], packed: Path
) -> None:
    """The other segments are judged."""
    manifest = packed / f"0-{IDS[0]}.rsm-manifest"
    manifest.write_text(change(manifest.read_text()))
    found, (told,) = checked(packed)
    assert [("DISK-45", str(manifest), 2)] == [(one.law, one.path, told.segments) for one in found]


def test_a_packed_segment_is_named_and_not_judged(tier: Path) -> None:
    """Its log may be compressed, or encrypted."""
    changed(0, b"garbage")(tier / f"0-{IDS[0]}.log")
    manifest = tier / f"0-{IDS[0]}.rsm-manifest"
    manifest.write_text("{}")
    found, (told,) = checked(tier)
    assert [("DISK-45", str(manifest))] == [(one.law, one.path) for one in found]
    assert 2 == told.segments
    with pytest.raises(SegproofError, match="packed"):
        PartitionReader(tier)


def test_lookup_answers_as_from_the_partition(tier: Path) -> None:
    """For offsets and times; the steps name the files."""
    with PartitionReader(tier) as remote, PartitionReader(TXN) as local:
        for offset in (-1, 0, 1013, 1014, 1500, 2413, END):
            assert local.lookup_offset(offset) == remote.lookup_offset(offset)
        times = [local.lookup_timestamp(time) for time in range(1795223360000, 1795223364000, 500)]
        assert times == [remote.lookup_timestamp(one.target) for one in times]
        steps = remote.lookup_offset(1500, explain=True).steps
    assert f"1014-{IDS[1014]}.log" in str(steps)


def test_lookup_refuses_segments_that_overlap(tier: Path, capsys: Capsys) -> None:
    """Only the metadata of the cluster say which of them counts."""
    shutil.copy(tier / f"0-{IDS[0]}.log", tier / f"500-{OTHER_ID}.log")
    assert 1 == cli.run(["lookup", str(tier), "--offset", "3"])
    assert f"500-{OTHER_ID}.log has too" in capsys.readouterr().out
    shutil.copy(tier / f"0-{IDS[0]}.log", tier / f"0-{OTHER_ID}.log")
    assert 2 == cli.run(["lookup", str(tier), "--offset", "3"])
    assert f"0-{OTHER_ID}.log" in capsys.readouterr().err


def test_dump_and_ls_read_the_files_by_their_names(tier: Path, data: Path, capsys: Capsys) -> None:
    """`dump` shows what it shows of the broker's own file."""
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        own = jsonl(capsys, "dump", TXN / name_of(1014, suffix), "--max", 3)
        assert own == jsonl(capsys, "dump", tier / f"1014-{IDS[1014]}{suffix}", "--max", 3)
    assert jsonl(capsys, "dump", TXN / name_of(1732, ".snapshot")) == jsonl(
        capsys, "dump", tier / f"1014-{IDS[1014]}.snapshot"
    )
    (whole, *segments) = jsonl(capsys, "ls", tier)
    assert ("remote-folder", 0, END) == (whole["kind"], whole["first_offset"], whole["end_offset"])
    assert [*IDS] == [row["base_offset"] for row in segments]
    assert ["remote-folder", "partition"] == [row["kind"] for row in jsonl(capsys, "ls", data)]


@pytest.mark.parametrize(
    "name",
    [
        f"9223372036854775808-{OTHER_ID}.log",
        f"-1-{OTHER_ID}.log",
        f"0_{OTHER_ID}.log",
        f"0-{OTHER_ID}",
        f"0-{OTHER_ID}x.log",
        f"0-{OTHER_ID}.log.swap",
        f"\u0660-{OTHER_ID}.log",
    ],
)
def test_other_names_are_none_of_tiered_storage(name: str) -> None:
    """Such as an offset beyond 64 bits, or a log in the cache."""
    assert read_remote_name(name) is None
