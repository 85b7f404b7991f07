# SPDX-License-Identifier: Apache-2.0
"""The verbs one by one: fields, formats, exit codes, bad input."""

import base64
import gzip
import io
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segproof.findings import Finding
from segproof.verification import VERIFIED_LAWS
from segproof_harness import cli
from segproof_harness.files.shipped_directories import partition_of, scenarios
from segproof_harness.histories.time_limit import time_limit
from segproof_harness.laws.borders.log_files import message
from segproof_harness.laws.broken_files import EXAMPLES, damaged_copy, finding_of
from segproof_harness.laws.broken_stores import STORE_EXAMPLES
from segproof_harness.laws.judged_directory import disagreements
from segproof_harness.reports.jsonl import FIELDS
from segproof_tests.changed_bytes import put_bytes
from segproof_tests.partition_files import copied_partition
from segproof_tests.printed_rows import Capsys, jsonl

BY_NAME = {scenario.name: partition_of(scenario) for scenario in scenarios()}
PLAIN = BY_NAME["plain"]
FIRST = "00000000000000000000"
LAST = "00000000000000000693"
BATCH_FIELDS = [
    "base_offset", "last_offset", "position", "size", "magic", "compression", "timestamp_type",
    "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "is_transactional",
    "is_control", "crc_valid", "record_count", "partition_leader_epoch",
]  # fmt: skip


def findings(capsys: Capsys, *arguments: str, code: int = 0) -> list[Any]:
    """Run `verify` with `--format jsonl` and return the findings."""
    told = jsonl(capsys, "verify", *arguments, code=code)
    return [each for each in told if "type" not in each]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """Return a private copy of the directory `plain`."""
    return copied_partition("plain", tmp_path)


# --- verify


def test_verify_is_clean_with_notes(capsys: Capsys) -> None:
    """Healthy files give exit 0; the zero tail of the last segment is a note."""
    found = findings(capsys, str(PLAIN), "--deep")
    assert [list(FIELDS)] * len(found) == [list(each) for each in found]
    assert {"note"} == {each["severity"] for each in found}


def test_verify_reports_and_the_command_reproduces(copy: Path, capsys: Capsys) -> None:
    """A damaged file gives exit 1, and the finding's own command shows it again."""
    EXAMPLES["OFFIDX-2"].do(copy)
    found = findings(capsys, str(copy), code=1)
    own = [each for each in found if each["law"] == "OFFIDX-2"]
    again = findings(capsys, *own[0]["reproduce"].split()[2:], code=1)
    assert own[0] in again
    assert {"OFFIDX-2"} == {each["law"] for each in again}


def test_verify_options(copy: Path, capsys: Capsys) -> None:
    """--law, --position and --max-findings narrow; --fail-on decides what counts."""
    (copy / f"{FIRST}.index").unlink()  # a warning
    assert 1 == cli.run(["verify", str(copy)])
    assert 0 == cli.run(["verify", str(copy), "--fail-on", "error"])
    capsys.readouterr()
    assert 1 == len(findings(capsys, str(copy), "--max-findings", "1", code=1))
    assert [] == findings(capsys, str(copy), "--law", "OFFIDX-2")
    only = findings(capsys, str(copy / f"{LAST}.index"), "--position", "64")
    assert [64] == [each["position"] for each in only]
    both = [findings(capsys, str(copy), "--jobs", jobs, code=1) for jobs in ("1", "2")]
    assert both[0] == both[1]


def test_verify_leaves_notes_out(copy: Path, capsys: Capsys) -> None:
    """With --no-notes they are only counted, in either format, and end no run."""
    (copy / f"{FIRST}.index").unlink()
    found = findings(capsys, str(copy), code=1)
    defects = [each for each in found if each["severity"] != "note"]
    notes = len(found) - len(defects)
    assert 0 < len(defects) < len(found)
    assert defects == findings(capsys, str(copy), "--no-notes", code=1)
    assert 1 == cli.run(["verify", str(copy), "--no-notes", "--max-findings", "1"])
    printed = capsys.readouterr()
    assert printed.out.startswith("warning ")
    assert "note DISK-6" not in printed.out
    assert 0 == cli.run(["verify", str(PLAIN), "--no-notes"])
    printed = capsys.readouterr()
    assert ("sound: ", 1) == (printed.out[:7], printed.out.count("\n"))
    assert f"0 errors, 0 warnings, {notes} notes" in printed.err


def test_nearly_every_law_of_files_has_an_example() -> None:
    """What `verify` checks has an example, but for what a small damage can't show, or an option."""
    assert {"DISK-1", "DISK-2", "DISK-7", "DISK-18", "LOAD-19"} == VERIFIED_LAWS - set(EXAMPLES)


def test_verify_against_the_model(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """The model agrees on sound and on damaged files, and a verifier that overlooks is caught."""
    monkeypatch.chdir(copy.parent)
    assert 0 == cli.run(["verify", str(copy), "--against", "model"])
    assert "compared" in capsys.readouterr().err
    # One file is not compared, and that is said.
    assert 0 == cli.run(["verify", str(copy / f"{FIRST}.log"), "--against", "model"])
    assert "model: not run: " in capsys.readouterr().err
    EXAMPLES["OFFIDX-2"].do(copy)
    assert [] == list(disagreements(copy))

    def overlook(*_: object, **__: object) -> Iterator[Finding]:
        return iter(())

    monkeypatch.setattr("segproof_harness.laws.judged_directory.verify", overlook)
    laws = [finding.law for finding in disagreements(copy)]
    assert "OFFIDX-2" in laws


@pytest.mark.parametrize("law", [*EXAMPLES][::8])
def test_an_example_is_seen(law: str) -> None:
    """A damage that `explain` shows is seen by `verify`, as the law that it breaks; that each one
    is, where hints are followed."""
    found = finding_of(law, EXAMPLES[law])
    assert found is not None
    assert law == found.law
    assert not found.path.startswith("/")


# --- dump


def test_dump_fields(capsys: Capsys) -> None:
    """Each kind of file has the fields of the contract, in their order."""
    entry = jsonl(capsys, "dump", str(PLAIN / f"{FIRST}.index"))[0]
    assert ["offset", "position"] == list(entry)
    time = jsonl(capsys, "dump", str(PLAIN / f"{FIRST}.timeindex"))[0]
    assert ["timestamp", "offset"] == list(time)
    batch = jsonl(capsys, "dump", str(PLAIN / f"{FIRST}.log"))[0]
    assert BATCH_FIELDS == list(batch)
    aborted = jsonl(capsys, "dump", str(BY_NAME["txn-a"] / f"{FIRST}.txnindex"))[0]
    assert [
        "version", "producer_id", "first_offset", "last_offset", "last_stable_offset",
    ] == list(aborted)  # fmt: skip


@pytest.mark.parametrize("profile", ["segproof", "kafka-4.3.1"])
def test_dump_records(profile: str, capsys: Capsys) -> None:
    """With --records every batch is followed by its records, bytes as base64."""
    path = str(BY_NAME["txn-a"] / f"{FIRST}.log")
    shown = jsonl(capsys, "dump", path, "--records", "--profile", profile)
    batches = [row for row in shown if "magic" in row]
    records = [row for row in shown if "magic" not in row]
    assert sum(batch["record_count"] for batch in batches) == len(records)
    assert ["offset", "timestamp", "key", "value", "headers", "sequence"] == list(records[0])
    assert all(base64.b64decode(row["value"]) for row in records if row["value"])


def test_dump_of_a_directory_names_the_files(capsys: Capsys) -> None:
    """A directory's dump holds every file, each row with its path first."""
    shown = jsonl(capsys, "dump", str(PLAIN))
    assert {"path"} == {next(iter(row)) for row in shown}
    names = {Path(row["path"]).name for row in shown}
    expected = {path.name for path in PLAIN.iterdir() if path.suffix in (".log", ".index")}
    assert expected <= names


def test_dump_says_what_it_does_not_show(copy: Path, capsys: Capsys) -> None:
    """Zeros after the last entry are told on stderr; damage, as a batch that is cut, is exit 1."""
    assert 0 == cli.run(["dump", str(copy / f"{LAST}.index")])
    assert "8128 bytes of zeros" in capsys.readouterr().err
    EXAMPLES["DUMP-6"].do(copy)
    for name in (LAST, FIRST):
        with (copy / f"{name}.log").open("r+b") as file:
            file.truncate(file.seek(0, 2) - 1)
        assert 1 == cli.run(["dump", str(copy / f"{name}.log")])
        assert "bytes behind the last whole batch" in capsys.readouterr().err
    EXAMPLES["SCAN-2"].do(copy)
    assert 1 == cli.run(["dump", str(copy / f"{FIRST}.log")])
    shown = capsys.readouterr()
    assert "SCAN-2" in shown.err
    assert "Traceback" not in shown.err


def test_dump_keeps_zeros_between_entries(copy: Path, capsys: Capsys) -> None:
    """Only the zeros at the end are no entries; those before a genuine one are shown."""
    index = copy / f"{FIRST}.index"
    before = jsonl(capsys, "dump", str(index))
    with index.open("ab") as file:
        file.write(bytes(16) + (5).to_bytes(4, "big") + (7).to_bytes(4, "big") + bytes(80))
    zero, added = {"offset": 0, "position": 0}, {"offset": 5, "position": 7}
    assert [*before, zero, zero, added] == jsonl(capsys, "dump", str(index))
    assert 0 == cli.run(["dump", str(index)])
    assert "80 bytes of zeros" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["plain", "v1-gzip"])
def test_dump_of_large_batches_takes_no_memory(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """A batch above the limit is summed in pieces; what needs all of it is null or refused."""
    log = str(next(BY_NAME[name].glob("*.log")))
    whole = jsonl(capsys, "dump", log)
    monkeypatch.setattr("segproof.reading.batch_rows.LARGE_BATCH_BYTES", 20)
    monkeypatch.setattr("segproof.reading.record_blocks.PLAIN_BATCH_BYTES", 20)
    pieces = jsonl(capsys, "dump", log)
    for row in whole:
        if row["magic"] < 2:
            row["record_count"] = None
            row["base_offset"] = row["base_offset"] if row["compression"] == "none" else None
    assert whole == pieces
    assert 1 == cli.run(["dump", log, "--records"])
    assert "not read into memory" in capsys.readouterr().err


# --- lookup


@pytest.mark.parametrize("profile", ["segproof", "kafka-4.3.1"])
def test_lookup_fields(profile: str, capsys: Capsys) -> None:
    """One object for each target, in the order asked; no answer is nulls and a reason."""
    asked = ["--offset", "740", "--offset", "5000", "--offset", "-1", "--timestamp", "1"]
    shown = jsonl(capsys, "lookup", str(PLAIN), *asked, "--profile", profile)
    found, beyond, below, time = shown
    assert [740, 5000, -1, 1] == [row["target"] for row in shown]
    assert [
        "target", "segment_base_offset", "index_offset", "index_position", "batch_base_offset",
        "batch_position", "batch_size",
    ] == list(found)  # fmt: skip
    assert (693, 733, 64985, 25901) == (
        found["segment_base_offset"], found["batch_base_offset"], found["batch_position"],
        found["batch_size"],
    )  # fmt: skip
    assert beyond["batch_base_offset"] is None
    assert "no batch" in beyond["reason"]
    assert below["segment_base_offset"] is None
    assert "below the first segment" in below["reason"]
    assert ["target", "timestamp", "offset"] == list(time)


def test_lookup_reads_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    """`-` is standard input, one number a line."""
    monkeypatch.setattr("sys.stdin", io.StringIO("0\n\n745\n"))
    shown = jsonl(capsys, "lookup", str(PLAIN), "--offsets", "-")
    assert [0, 745] == [row["target"] for row in shown]


@pytest.mark.parametrize("option", ["--offsets", "--timestamps"])
def test_lookup_refuses_a_line_without_end(option: str, tmp_path: Path, capsys: Capsys) -> None:
    """A device that never ends a line is refused at once; a long line of a number is read."""
    assert 2 == cli.run(["lookup", str(PLAIN), option, "/dev/zero"])
    assert "/dev/zero: line 1: more than 1000 characters" in capsys.readouterr().err
    numbers = tmp_path / "numbers"
    numbers.write_text("0" * 998 + "1\n5", encoding="ascii")
    assert [1, 5] == [
        row["target"] for row in jsonl(capsys, "lookup", str(PLAIN), option, str(numbers))
    ]
    numbers.write_text("5\n" + "0" * 1001, encoding="ascii")
    assert 2 == cli.run(["lookup", str(PLAIN), option, str(numbers)])
    assert "line 2: more than" in capsys.readouterr().err


def test_lookup_explains(capsys: Capsys) -> None:
    """--explain tells the segment, the index slot, the position, and the batches scanned."""
    assert 0 == cli.run(["lookup", str(PLAIN), "--offset", "740", "--explain"])
    lines = capsys.readouterr().out.splitlines()
    assert "  segment: of 9 the floor is 693" == lines[1]
    assert f"  {LAST}.index: slot 5 of 8 for 740: offset 732, position 39340" == lines[2]
    assert f"  {LAST}.log: 2 batches scanned from byte 39340, found at byte 64985" == lines[3]
    row = jsonl(capsys, "lookup", str(PLAIN), "--offset", "740", "--explain")[0]
    assert ["segment", "offset-index", "scan"] == [step["action"] for step in row["steps"]]


def test_lookup_goes_on_in_the_next_segment(copy: Path, capsys: Capsys) -> None:
    """Where the floor's last batch ends before the target, the next segment's first batch is it."""
    log = copy / f"{FIRST}.log"
    batches = jsonl(capsys, "dump", str(log))
    with log.open("r+b") as file:
        file.truncate(batches[-1]["position"])
    for suffix in (".index", ".timeindex"):
        (copy / f"{FIRST}{suffix}").unlink()
    row = jsonl(capsys, "lookup", str(copy), "--offset", "59")[0]
    assert (60, 60, 0) == (
        row["segment_base_offset"], row["batch_base_offset"], row["batch_position"],
    )  # fmt: skip


def test_lookup_refuses_an_index_that_points_astray(copy: Path, capsys: Capsys) -> None:
    """A wrong index never gives a wrong answer in silence where the log shows it: exit 1."""
    index = copy / f"{FIRST}.index"
    put_bytes(index, 4, (2**30).to_bytes(4, "big"))
    entry = jsonl(capsys, "dump", str(index))[0]
    row = jsonl(capsys, "lookup", str(copy), "--offset", str(entry["offset"]), code=1)[0]
    assert row["batch_position"] is None
    assert "SEG-7" in row["reason"]


def test_lookup_refuses_an_index_beyond_memory(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """An index file of any length takes no more memory than a limit: exit 1 and the reason."""
    monkeypatch.setattr("segproof.reading.segment_reader.INDEX_BYTES_MAX", 16)
    row = jsonl(capsys, "lookup", str(PLAIN), "--offset", "1", code=1)[0]
    assert "not read into memory" in row["reason"]


_LOOKUP_IN_LITTLE_MEMORY = """
import sys
from segproof_harness import cli
code = cli.run(sys.argv[1:])
# ru_maxrss would begin with the peak of the process that started this one.
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(code, int(peak.split()[1]) >> 10, file=sys.stderr)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("header", "asked"),
    [
        (struct.pack(">qiIbbqii", 5, 2**30 - 12, 0, 1, 1, 1000, -1, 2**30 - 38), "--offset"),
        (
            struct.pack(
                ">qiibIhiqqqhii",
                5, 2**30 - 12, 0, 2, 0, 0, 0, 1000, 1000, -1, -1, -1, 2**31 - 1,
            ),
            "--timestamp",
        ),
    ],
    ids=["v1-gzip", "v2"],
)  # fmt: skip
def test_lookup_refuses_a_batch_beyond_memory(header: bytes, asked: str, tmp_path: Path) -> None:
    """One batch that claims a whole sparse gigabyte: exit 1, the reason, and little memory."""
    log = tmp_path / f"{FIRST}.log"
    log.write_bytes(header)
    os.truncate(log, 2**30)
    code = [sys.executable, "-c", _LOOKUP_IN_LITTLE_MEMORY]
    done = subprocess.run(
        [*code, "lookup", str(tmp_path), asked, "3"], capture_output=True, text=True, check=True
    )
    assert f"{log}: byte 0: a batch of 1073741824 bytes is not read into memory" in done.stdout
    exit_code, mebibytes = done.stderr.split()
    assert 1 == int(exit_code)
    assert int(mebibytes) < 256


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition of one gzip message of magic 1 that holds 2.4 million empty ones: 62 MB."""
    count = 2_400_000
    names, formats, offsets = ["offset", "size", "magic"], [">i8", ">i4", "u1"], [0, 8, 16]
    inner = np.zeros(
        count, {"names": names, "formats": formats, "offsets": offsets, "itemsize": 26}
    )
    inner["offset"], inner["size"], inner["magic"] = np.arange(count), 14, 1
    data = gzip.compress(inner.tobytes(), 1)
    outer = message(count - 1, data, attributes=1, timestamp_ms=1000)
    path = tmp_path_factory.mktemp("crowded")
    (path / f"{FIRST}.log").write_bytes(outer)
    return path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "asked", "expected"),
    [
        ("lookup", ["--offset", "3"], '"batch_base_offset": 0'),
        ("lookup", ["--timestamp", "7"], "no record of segment 0"),
        ("verify", ["--deep"], "a message ends before the length of its key or value"),
    ],
    ids=["offset", "timestamp", "verify"],
)
def test_a_message_of_millions_takes_little_memory(
    verb: str, asked: list[str], expected: str, crowded: Path
) -> None:
    """Inner messages are walked in parts: no table of all, which took 300 to 520 MiB."""
    code = [sys.executable, "-c", _LOOKUP_IN_LITTLE_MEMORY]
    done = subprocess.run(
        [*code, verb, str(crowded), *asked, "--format", "jsonl"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert expected in done.stdout + done.stderr
    assert int(done.stderr.split()[-1]) < 200


def test_lookup_wants_a_partition(tmp_path: Path, capsys: Capsys) -> None:
    """A directory without logs is refused in one line."""
    assert 2 == cli.run(["lookup", str(tmp_path), "--offset", "1"])
    assert "no log" in capsys.readouterr().err


# --- replay, doctor


def test_replay_is_clean(capsys: Capsys) -> None:
    """Model and implementation agree; the summary says how much was compared."""
    assert 0 == cli.run(["replay", "--structure", "offset-index", "--count", "5"])
    shown = capsys.readouterr()
    assert "" == shown.out
    assert "5 histories, 250 operations" in shown.err
    assert "no divergence" in shown.err


def test_replay_saves_a_trace_that_reproduces(tmp_path: Path, capsys: Capsys) -> None:
    """A subject of another profile diverges; the finding's command replays the short trace."""
    shown = jsonl(
        capsys, "replay", "--structure", "offset-index", "--count", "20", "--traces",
        str(tmp_path / "traces"), "--subjects",
        "segproof_harness.canaries:NoSuch", code=2,
    )  # fmt: skip
    assert [] == shown
    found = jsonl(
        capsys, "replay", "--structure", "offset-index", "--count", "20", "--traces",
        str(tmp_path / "traces"), "--subjects", "model:kafka-4.3.1,impl", code=1,
    )  # fmt: skip
    again = jsonl(capsys, *found[0]["reproduce"].split()[1:], code=1)
    assert found[0]["law"] == again[0]["law"]


@pytest.mark.parametrize(
    "text", ["", "no json\n", '{"trace": 1}\n', '{"trace": 99}\n', "[]\n", "\0\n"]
)
def test_replay_refuses_what_is_no_trace(text: str, tmp_path: Path, capsys: Capsys) -> None:
    """A file that is no trace is usage: one line that names the file and what is wrong."""
    trace = tmp_path / "trace.jsonl"
    trace.write_text(text, encoding="utf-8")
    assert 2 == cli.run(["replay", str(trace)])
    assert str(trace) in capsys.readouterr().err


def test_doctor(capsys: Capsys) -> None:
    """Every check says works or not run, and what is not run has a remedy."""
    checks = {row["name"]: row for row in jsonl(capsys, "doctor")}
    assert {"python", "numba", "java", "spark", "jars", "kernels", "machine"} <= set(checks)
    for row in checks.values():
        assert row["state"] in ("works", "not run")
        assert (row["state"] == "works") == (row["remedy"] is None)


def test_doctor_without_java(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    """A missing Java is said, with the remedy, and Spark with it."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    checks = {row["name"]: row for row in jsonl(capsys, "doctor")}
    assert "not run" == checks["java"]["state"]
    assert "not run" == checks["spark"]["state"]


def test_bench_outside_a_checkout(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capsys
) -> None:
    """Without the source there are no benchmarks, which is said."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("segproof_harness.cli.bench.__file__", str(tmp_path / "a/b/c/bench.py"))
    assert 2 == cli.run(["bench"])
    assert "checkout" in capsys.readouterr().err


# --- bad input


@pytest.mark.parametrize("law", [law for law in EXAMPLES if law not in STORE_EXAMPLES])
def test_bad_data_never_gives_a_traceback(law: str, tmp_path: Path, capsys: Capsys) -> None:
    """Whatever is damaged, each verb ends with 0, 1 or 2, and says why in clear lines."""
    folder = damaged_copy(EXAMPLES[law], tmp_path)
    for verb, *asked in (["dump"], ["lookup", "--offset", "30", "--timestamp", "1795222321500"]):
        assert cli.run([verb, str(folder), *asked]) in (0, 1, 2)
        assert "internal error" not in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("verb", "name", "options"),
    [
        ("dump", f"{FIRST}.index", []),
        ("dump", f"{FIRST}.log", ["--profile", "kafka-4.3.1"]),
        ("verify", f"{FIRST}.log", ["--against", "model"]),
        ("replay", "trace.jsonl", []),
    ],
)  # fmt: skip
def test_a_named_pipe_is_usage(verb: str, name: str, options: list[str], tmp_path: Path) -> None:
    """A pipe that nobody writes to is refused in one line, not waited for."""
    pipe = tmp_path / name
    os.mkfifo(pipe)
    command = [sys.executable, "-m", "segproof_harness.cli", verb, str(pipe), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert 2 == done.returncode
    assert done.stderr.startswith(f"segproof: {pipe}: n")
    assert 1 == len(done.stderr.splitlines())


def test_a_path_keeps_its_letters(tmp_path: Path, capsys: Capsys) -> None:
    """What is said of a file that cannot be read names it as it is called."""
    folder = tmp_path / "Topic-0"
    folder.mkdir()
    os.mkfifo(folder / f"{FIRST}.log")
    assert 1 == cli.run(["lookup", str(folder), "--offset", "0"])
    assert f"{folder}/{FIRST}.log: not a regular file" in capsys.readouterr().out
    assert 1 == cli.run(["verify", str(folder)])
    assert "it cannot be read: not a regular file" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("dump", []),
        ("dump", ["--profile", "kafka-4.3.1"]),
        ("lookup", ["--offset", "0"]),
        ("lookup", ["--offset", "0", "--profile", "kafka-4.3.1"]),
        ("verify", []),
        ("verify", ["--against", "model"]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex"])
def test_a_named_pipe_in_a_directory_is_told(
    suffix: str, verb: str, options: list[str], copy: Path, capsys: Capsys
) -> None:
    """A pipe among the files of a segment is a finding or a reason, and never waited for."""
    pipe = copy / f"{FIRST}{suffix}"
    pipe.unlink(missing_ok=True)
    os.mkfifo(pipe)
    with time_limit(120):
        assert cli.run([verb, str(copy), *options]) in (0, 1, 2)
    shown = capsys.readouterr()
    assert "internal error" not in shown.err
    if verb != "lookup":  # which opens what it needs
        assert "not a regular file" in shown.out + shown.err


@pytest.mark.parametrize("profile", ["segproof", "kafka-4.3.1"])
@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".txnindex"])
@pytest.mark.parametrize(
    "data", [b"", b"\0", b"\xff" * 5000, bytes(5000)], ids=["0", "1", "ff", "00"]
)
def test_garbage_never_gives_a_traceback(
    data: bytes, suffix: str, profile: str, tmp_path: Path, capsys: Capsys
) -> None:
    """Empty, short and senseless files are dumped or refused, never a defect of ours."""
    path = tmp_path / f"{FIRST}{suffix}"
    path.write_bytes(data)
    assert cli.run(["dump", str(path), "--profile", profile]) in (0, 1)
    if suffix == ".log":
        assert cli.run(["lookup", str(tmp_path), "--offset", "3", "--profile", profile]) in (0, 1)
    assert "internal error" not in capsys.readouterr().err
