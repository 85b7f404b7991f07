# SPDX-License-Identifier: Apache-2.0
"""Parts of a store that are given alone: a file of `config`, a folder or file of the rest."""

import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.findings import Severity, Verdict
from segproof.reading.store_paths import PlaceKind
from segproof.repair import salvage
from segproof_harness import cli
from segproof_tests.printed_rows import Capsys
from segproof_tests.reported_findings import judged
from segproof_tests.store_files import long_store

OFFSETS = '{"offsetTable":{"T@g":{0:8}}}'
ZEROS = "\0" * 27


# --- a file of config


@pytest.mark.checks("RMQDISK-43")
@pytest.mark.parametrize("folder", ["store/config", "config", "backup"])
@pytest.mark.parametrize("name", ["consumerOffset.json", "topics.json", "timermetrics"])
@pytest.mark.parametrize("end", ["", ".bak"])
def test_a_whole_file_of_config_is_sound(folder: str, name: str, end: str, tmp_path: Path) -> None:
    """It was "no file of Kafka or RocketMQ has such a name"; a copy in any folder is judged."""
    path = tmp_path / folder / (name + end)
    path.parent.mkdir(parents=True)
    path.write_text(OFFSETS)
    found, summary = judged(path)
    assert ([], Verdict.SOUND, "config file") == (found, summary.verdict, summary.kind)
    assert len(OFFSETS) == summary.bytes_checked


@pytest.mark.checks("RMQDISK-43")
@pytest.mark.parametrize(
    ("own", "backup", "severity", "words"),
    [
        (ZEROS, None, Severity.ERROR, "a broker starts without consumer offsets"),
        (ZEROS, "", Severity.ERROR, "a broker starts without consumer offsets"),
        (ZEROS, ZEROS, Severity.ERROR, "its start fails"),
        (ZEROS, OFFSETS, Severity.WARNING, "a broker reads consumerOffset.json.bak in its place"),
        (OFFSETS[:-2], OFFSETS, Severity.WARNING, "it is cut"),
        ("", None, Severity.ERROR, "it has 0 bytes"),
    ],
)  # fmt: skip
def test_a_broken_file_of_config(
    own: str, backup: str | None, severity: Severity, words: str, tmp_path: Path
) -> None:
    """What a broker makes of it depends on its backup; no command for a store that is not there."""
    path = tmp_path / "consumerOffset.json"
    path.write_text(own)
    if backup is not None:
        path.with_name(f"{path.name}.bak").write_text(backup)
    (one,), summary = judged(path)
    assert ("RMQDISK-43", severity, str(path)) == (one.law, one.severity, one.path)
    assert words in one.message
    assert Verdict.UNREADABLE is summary.verdict
    assert "`segproof" not in one.hint


@pytest.mark.checks("RMQDISK-43")
@pytest.mark.parametrize(
    ("own", "severity", "words"),
    [
        (None, Severity.ERROR, "its start fails"), (ZEROS, Severity.ERROR, "its start fails"),
        (OFFSETS, Severity.WARNING, "only if it can't read consumerOffset.json"),
    ],
)  # fmt: skip
def test_a_broken_backup(own: str | None, severity: Severity, words: str, tmp_path: Path) -> None:
    """A broker asks it where it can't read the file."""
    path = tmp_path / "consumerOffset.json.bak"
    path.write_text(ZEROS)
    if own is not None:
        (tmp_path / "consumerOffset.json").write_text(own)
    (one,), summary = judged(path)
    assert (severity, str(path)) == (one.severity, one.path)
    assert words in one.message
    assert Verdict.UNREADABLE is summary.verdict


def test_the_schema_of_the_output_has_each_kind() -> None:
    """A kind of place that it lacks makes each line of such a path invalid."""
    text = files("segproof_harness").joinpath("reports/output.schema.json").read_text()
    kinds = json.loads(text)["$defs"]["summary"]["properties"]["kind"]["enum"]
    assert {one.value for one in PlaceKind} <= {*kinds}


def test_other_json_is_no_file_of_a_broker(tmp_path: Path) -> None:
    """A file of another program is not called sound; in the `config` of a store it is judged."""
    path = tmp_path / "package.json"
    path.write_text("{}")
    assert ["DISK-20"] == [one.law for one in judged(path)[0]]
    store = long_store(tmp_path / "store")
    (store / "config").mkdir()
    path = store / "config" / "newState.json"
    path.write_text("{}")
    assert Verdict.SOUND is judged(path)[1].verdict


@pytest.mark.parametrize("name", ["consumerOffset.json.bak", "topics.json"])
def test_dump_of_a_file_of_config_names_the_way(name: str, tmp_path: Path, capsys: Capsys) -> None:
    """It was "not the name of a file that dump knows", while `verify` said to read it."""
    path = tmp_path / name
    path.write_text(OFFSETS)
    assert 2 == cli.run(["dump", str(path)])
    told = capsys.readouterr().err
    assert "is text" in told
    assert f"segproof verify {path}" in told


@pytest.mark.parametrize("name", ["config", "timerlog"])
def test_a_folder_of_a_store_leads_to_the_store(name: str, tmp_path: Path) -> None:
    """It was "nothing of Kafka's here, and no store of RocketMQ"."""
    store = long_store(tmp_path / "store")
    (store / name).mkdir()
    (one,), _ = judged(store / name)
    assert f"give the path of the store, {store}" in one.message


# --- parts of a store whose log lies over several folders


def spread(top: Path) -> tuple[Path, Path]:
    """Move the third file of a log to another folder; return the store and that folder."""
    store = long_store(top / "store")
    other = top / "disk2"
    other.mkdir()
    path = sorted((store / "commitlog").iterdir())[2]
    path.rename(other / path.name)
    return store, other


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize("part", ["index", "index file", "queue file", "log file", "other file"])
def test_a_part_of_a_spread_store_names_the_layout(part: str, tmp_path: Path) -> None:
    """It was "sound" without a word of the log that lies over two folders."""
    store, other = spread(tmp_path)
    path = {
        "index": store / "index",
        "index file": min((store / "index").iterdir()),
        "queue file": min((store / "consumequeue").rglob(f"{0:020d}")),
        "log file": min((store / "commitlog").iterdir()),
        "other file": min(other.iterdir()),
    }[part]
    found, summary = judged(path)
    (one,) = (one for one in found if one.law == "RMQDISK-41")
    assert "over 2 folders" in one.message
    assert all(str(folder) in one.message for folder in (store / "commitlog", other))
    assert (Verdict.SOUND, 1) == (summary.verdict, summary.not_looked_into)


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("is_own", [True, False])
def test_a_log_folder_of_a_spread_store_names_the_layout(is_own: bool, tmp_path: Path) -> None:
    """It was "nothing of Kafka's here, and no store of RocketMQ"."""
    store, other = spread(tmp_path)
    path = store / "commitlog" if is_own else other
    (one,), summary = judged(path)
    assert ("RMQDISK-42", str(path)) == (one.law, one.path)
    assert "over 2 folders" in one.message
    assert Verdict.NOT_CHECKED is summary.verdict
    with pytest.raises(InvalidArgumentError, match=re.escape(str(store))):
        list(salvage(path, tmp_path / "out"))


def test_a_log_folder_by_itself_is_named(tmp_path: Path) -> None:
    """Files of a log in a folder of another name: what they are, and how they are read."""
    store = long_store(tmp_path / "store")
    folder = tmp_path / "files"
    (store / "commitlog").rename(folder)
    for path in sorted(store.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (one,), _ = judged(folder)
    assert "DISK-20" == one.law
    assert "a commit log of RocketMQ" in one.message
    with pytest.raises(InvalidArgumentError, match="a commit log of RocketMQ"):
        list(salvage(folder, tmp_path / "out"))


@pytest.mark.checks("RMQDISK-41")
@pytest.mark.parametrize("part", ["index", "commitlog/00000000000000000000"])
def test_a_part_of_a_usual_store_has_no_such_note(part: str, tmp_path: Path) -> None:
    """Each part of a whole store is sound by itself."""
    found, summary = judged(long_store(tmp_path / "store") / part)
    assert ([], Verdict.SOUND) == (found, summary.verdict)
