# SPDX-License-Identifier: Apache-2.0
"""A store whose log is elsewhere in part: no reader answers as if the part were the whole.

Public reports that such layouts are modelled on: apache/rocketmq 8041 and 8859.
"""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from segproof.errors import InvalidArgumentError
from segproof.files import REAL_FILES, File
from segproof.reading.joined_logs import ONE_LOG_FOLDER
from segproof.reading.store_layouts import DLEDGER_MEMBER
from segproof.store_lookup import StoreReader
from segproof.verification import verify
from segproof_harness import cli
from segproof_tests.altered_files import altered
from segproof_tests.printed_rows import Capsys
from segproof_tests.store_files import long_store

ROOT = Path(__file__).resolve().parents[3]


def spread(top: Path) -> tuple[Path, Path]:
    """Move the third file of a log to another folder; return the store and that folder."""
    store, other = long_store(top / "store"), top / "disk2" / "commitlog"
    other.mkdir(parents=True)
    path = sorted((store / "commitlog").iterdir())[2]
    path.rename(other / path.name)
    return store, other


def in_dledger(top: Path) -> Path:
    """Move the log of a store to where DLedger keeps it; return the store."""
    store = long_store(top / "store")
    group = store / "dledger-n0"
    shutil.copytree(store / "index", group / "index")
    (store / "commitlog").rename(group / "data")
    (store / "commitlog").mkdir()
    for path in (*(group / "data").iterdir(), *(group / "index").iterdir()):
        path.rename(path.with_name(f"{int(path.name) % 10**9:020d}"))
    return store


@pytest.mark.checks("RMQDISK-42")
@pytest.mark.parametrize("of_dledger", [False, True])
def test_no_reader_answers_by_a_part(of_dledger: bool, tmp_path: Path, capsys: Capsys) -> None:
    """A sound message in another folder was "no message has this key", with exit code 0; `dump`
    wrote a quarter of the messages, and `ls` showed them, without a word.
    """
    store = in_dledger(tmp_path) if of_dledger else spread(tmp_path)[0]
    words = "a store of DLedger" if of_dledger else "over 2 folders"
    asked = (["lookup", "--key", "T#k1"], ["lookup", "--key", "T#k1", "--scan"], ["dump"])
    for verb, *rest in asked:
        assert 2 == cli.run([verb, str(store), *rest])
        told = capsys.readouterr()
        assert "" == told.out
        assert words in told.err
    with pytest.raises(InvalidArgumentError, match=words):
        StoreReader(store)
    assert 1 == cli.run(["ls", str(store), "--format", "jsonl"])
    told = capsys.readouterr()
    rows = [json.loads(line) for line in told.out.splitlines()]
    assert [words in (one["reason"] or "") for one in rows if one["kind"] == "commit-log"] == [True]
    assert words in told.err


@pytest.mark.checks("RMQDISK-42")
def test_the_layout_of_a_usual_store_costs_no_read(tmp_path: Path) -> None:
    """Beside folders of other things no queue and no index is opened to know it."""
    store = long_store(tmp_path / "store")
    for name in ("store.old", "notes"):
        (tmp_path / name).mkdir()
    opened: list[str] = []

    def open_noted(path: str, **how: bool) -> File:
        opened.append(path)
        return REAL_FILES.open(path, **how)

    StoreReader(store, files=altered(open=open_noted))
    assert [] == [one for one in opened if "/commitlog/" not in one]


@pytest.mark.checks("RMQDISK-42")
def test_a_refusal_has_its_commands_a_line_each(
    tmp_path: Path, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stood in one paragraph with commas between; and what they make was to be served beside
    the old folders, where a broker reads files of the same names. Hint, report and both pages
    have one text about that.
    """
    store, other = spread(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert 2 == cli.run(["salvage", str(store), "--out", "saved"])
    text, *commands = capsys.readouterr().err.splitlines()
    assert "`ln`." in text
    assert "`ln`, `ln`" not in text
    subprocess.run(["sh", "-ec", "\n".join(commands)], check=True)
    (joined,) = (path.parent for path in Path("joined").glob("*/commitlog"))
    assert 0 == cli.run(["salvage", str(joined), "--out", "saved"])
    report = " ".join(capsys.readouterr().out.split())
    assert all(str(folder) in report for folder in (store / "commitlog", other))
    pages = (ROOT / "docs" / "howto").glob("*.md")
    texts = {one.name: " ".join(one.read_text("utf-8").split()) for one in pages}
    for told in (
        text, report,
        texts["save-a-damaged-store.md"], texts["bring-back-a-whole-directory.md"],
    ):  # fmt: skip
        assert ONE_LOG_FOLDER in told
    assert 0 == cli.run(["salvage", "saved", "--out", "again"])
    assert ONE_LOG_FOLDER not in " ".join(capsys.readouterr().out.split())


@pytest.mark.checks("RMQDISK-42")
def test_a_member_starts_empty_on_conditions_only(tmp_path: Path, capsys: Capsys) -> None:
    """The hint took the leader's log for granted: of the only member with the last messages it cost
    these. `explain` said that there is nothing to do.
    """
    (one,) = verify(in_dledger(tmp_path))
    assert one.hint == DLEDGER_MEMBER
    assert "every other member is level with it" in one.hint
    assert "If that is wrong, messages that were acknowledged are lost" in one.hint
    page = (ROOT / "docs" / "howto" / "bring-back-a-whole-directory.md").read_text("utf-8")
    assert DLEDGER_MEMBER.only_if in " ".join(page.split())
    assert 0 == cli.run(["explain", "RMQDISK-42"])
    told = " ".join(capsys.readouterr().out.split())
    assert "when a member of DLedger may start with an empty directory" in told
