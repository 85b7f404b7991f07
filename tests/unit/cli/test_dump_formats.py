# SPDX-License-Identifier: Apache-2.0
"""`dump --format csv`: the rows of `jsonl`, in columns; tables on a terminal."""

import re
import sys
from pathlib import Path

import pytest

from segproof_harness import cli
from segproof_harness.cli.common import with_times
from segproof_tests.dumped_rows import FILES, LOG, cell, from_csv, from_json, written
from segproof_tests.printed_rows import Capsys, CapsysBinary


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_csv_has_the_rows_of_jsonl(path: Path, capsysbinary: CapsysBinary) -> None:
    """Each field is a column, null an empty cell, a time ISO 8601; of an index file of RocketMQ
    the entries."""
    rows = from_json(capsysbinary, path)
    assert rows
    expected = [{name: cell(value) for name, value in with_times(row).items()} for row in rows]
    assert expected == from_csv(capsysbinary, path)


def test_csv_has_times_that_options_take(capsysbinary: CapsysBinary) -> None:
    """It had milliseconds since 1970, where text has ISO 8601."""
    path = LOG.with_suffix(".timeindex")
    whole = from_csv(capsysbinary, path)
    assert "2026-11-21T01:09:21.772Z" == whole[1]["timestamp"]
    assert whole[1:] == from_csv(capsysbinary, path, "--from", whole[1]["timestamp"])


def plain(capsys: Capsys) -> list[str]:
    """Return the lines that were written, without what makes them bold."""
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()


def test_a_terminal_gets_tables_that_fit(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    """Rows of few fields are a table, those of many are wrapped; a record is one line."""
    from segproof_harness.cli import _Stream

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(_Stream, "isatty", lambda _: True, raising=False)
    for path in FILES:
        assert 0 == cli.run(["dump", str(path), "--max", "3"])
        lines = plain(capsys)
        assert f"# {path}" == lines[0]
        assert max(map(len, lines[1:])) <= 80
    assert 0 == cli.run(["dump", str(FILES[1])])
    lines = plain(capsys)
    assert ["offset", "position"] == lines[1].split()
    assert ["1029", "5375"] == lines[2].split()
    assert 0 == cli.run(["dump", str(LOG), "--records", "--max", "1"])
    assert plain(capsys)[-1].startswith("| offset: 1014 ")


def test_parquet_without_pyarrow_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: Capsys
) -> None:
    """Exit code 2 and the command, not a traceback."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert 2 == cli.run(["dump", str(LOG), "--format", "parquet"])
    assert "pip install 'segproof[arrow]'" in capsys.readouterr().err


def test_without_rows_csv_is_empty(capsysbinary: CapsysBinary) -> None:
    """A range without records has no header either."""
    assert b"" == written(capsysbinary, LOG, "--from", "999999", "--format", "csv")
