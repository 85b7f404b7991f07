# SPDX-License-Identifier: Apache-2.0
"""What `verify --format jsonl` wrote to a file, read back as the findings and summaries it was.

The causes in it are passed over: they follow from the findings.
"""

import json
import os
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, NamedTuple, get_type_hints

from segproof.findings import FURTHER, Finding, Summary
from segproof.integers import INT64_MAX
from segproof_harness.reports.json_lines import SCHEMA_VERSION

LINE_BYTES_MAX = 1 << 20
"""A longer line is refused; a finding has a few paths and sentences."""
FIELDS = {kind: get_type_hints(kind) for kind in (Finding, Summary)}
"""The type of each field."""
AGAIN = "write it again: `segproof verify PATH --format jsonl`"


class StoredResultsError(ValueError):
    """A line is none that verify writes, or not of the same run; the words name file and line."""


class CheckedAs(NamedTuple):
    """What a run was restricted to, as its summaries say it."""

    laws: tuple[str, ...] | None
    position: int | None
    deep: bool
    since: str | None


def checked_as(path: str | os.PathLike[str]) -> CheckedAs | None:
    """Return what the run in a file was restricted to; None without a summary.

    Raises: OSError; StoredResultsError for a file that does not hold the findings and summaries of
    one run.
    """
    first: CheckedAs | None = None
    findings, at = 0, ""
    for at, row in _rows(path):
        read = _read(row, at)
        if isinstance(read, Finding):
            findings += 1
            continue
        if not read.is_sound and not findings and not read.ignored:
            raise StoredResultsError(
                f"{at} has a verdict without its findings: run verify without --summary"
            )
        findings, one = 0, _checked_as(row, at)
        if first not in (None, one):
            raise StoredResultsError(
                f"{at} is of a run with other options: give the lines of one run"
            )
        first = one
    if not at:
        raise StoredResultsError(f"{os.fspath(path)} holds no finding and no summary; {AGAIN}")
    return first


def results(path: str | os.PathLike[str]) -> Iterator[Finding | Summary]:
    """Yield the findings and summaries in a file, in its order. Raises: as `checked_as`."""
    for at, row in _rows(path):
        yield _read(row, at)


def _rows(path: str | os.PathLike[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield where a finding or summary stands, in words, with its fields."""
    number = 0
    with open(path, "rb") as file:
        while line := file.readline(LINE_BYTES_MAX + 1):
            number += 1
            at = f"{os.fspath(path)}: line {number}"
            if len(line) > LINE_BYTES_MAX:
                raise StoredResultsError(
                    f"{at} has more than {LINE_BYTES_MAX} bytes: it is no finding"
                )
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                raise StoredResultsError(f"{at} is no JSON; {AGAIN}") from None
            if not isinstance(row, dict):
                raise StoredResultsError(f"{at} is neither a finding nor a summary; {AGAIN}")
            kind = row.get("type")
            if kind not in (None, "cause", "summary"):
                raise StoredResultsError(f"{at}: verify writes no type {_shown(kind)}")
            if kind is not None and row.get("schema_version") != SCHEMA_VERSION:
                raise StoredResultsError(
                    f"{at}: schema_version {_shown(row.get('schema_version'))} is not"
                    f" {SCHEMA_VERSION}; read it with the release of segproof that wrote it"
                )
            if kind != "cause":
                yield at, row


def _read(row: dict[str, Any], at: str) -> Finding | Summary:
    """Return a finding or summary, whose fields have the types that its class declares."""
    kind = Finding if row.get("type") is None else Summary
    values: dict[str, Any] = {}
    for name, wanted in FIELDS[kind].items():
        try:
            values[name] = _value(wanted, row[name])
        except KeyError:
            raise StoredResultsError(f"{at} has no field {name}; {AGAIN}") from None
        except ValueError:
            words = f"{at}: {name} is {_shown(row[name])}, which verify does not write"
            raise StoredResultsError(words) from None
    read = kind(**values)
    if isinstance(read, Finding) and read.message.endswith(FURTHER):
        count = read.actual or "1"
        if not (count.isdecimal() and len(count) < 20):
            raise StoredResultsError(f"{at}: actual is {count[:40]!r} and not a number of places")
    return read


def _value(wanted: Any, value: Any) -> Any:
    """Return a value of the wanted type. Raises: ValueError for another."""
    if isinstance(wanted, type) and issubclass(wanted, StrEnum):
        return wanted(value)
    if isinstance(value, bool) or not isinstance(value, wanted):
        raise ValueError
    if isinstance(value, int) and abs(value) > INT64_MAX:
        raise ValueError
    return value


def _shown(value: Any) -> str:
    """Return a value for a message, cut short; of one that has parts only the type."""
    return type(value).__name__ if isinstance(value, list | dict) else repr(value)[:40]


def _checked_as(row: dict[str, Any], at: str) -> CheckedAs:
    laws, deep = row.get("laws"), row.get("deep")
    try:
        if not isinstance(deep, bool) or not isinstance(laws, list | None):
            raise ValueError
        return CheckedAs(
            None if laws is None else tuple(_value(str, law) for law in laws),
            _value(int | None, row.get("position")),
            deep,
            _value(str | None, row.get("since")),
        )
    except ValueError:
        raise StoredResultsError(
            f"{at}: laws, position, deep or since is not as verify writes it"
        ) from None
