# SPDX-License-Identifier: Apache-2.0
"""The option `where`: conditions that choose rows where they are read, joined by `and`.

    offset >= 1000 and offset < 2000 and path like '%.log'

A condition compares a column of integers with a number (`=`, `<`, `<=`, `>`, `>=`), a text with a
text (`=`, `like` with `%` at its beginning or end), or a flag with `true` or `false` (`=`). A null
passes none.
"""

import re
from typing import Any, Final, NamedTuple

from segproof.tables.schemas import Table


class Condition(NamedTuple):
    """One condition on one column."""

    column: str
    how: str
    """`=`, `<`, `<=`, `>`, `>=`; for texts `=`, `starts`, `ends` and `contains`."""
    value: int | str | bool


_NUMBER = re.compile(r"(\w+)\s*(>=|<=|=|>|<)\s*(-?[0-9]{1,19})")
_FLAG = re.compile(r"(\w+)\s*=\s*(true|false)", re.IGNORECASE)
_TEXT = re.compile(r"(\w+)\s*=\s*'([^']*)'")
_LIKE = re.compile(r"(\w+)\s+like\s+'(%?)([^'%]*)(%?)'", re.IGNORECASE)
_AND = re.compile(r"\s+and\s+", re.IGNORECASE)
_INTEGERS: Final = ("int", "bigint")
_INT64_MAX: Final = (1 << 63) - 1


def conditions_of(text: str, table: Table) -> tuple[Condition, ...]:
    """Return what the option says. Raises: ValueError."""
    return tuple(_checked(_condition(term.strip()), table) for term in _AND.split(text))


def _condition(term: str) -> Condition:
    if match := _NUMBER.fullmatch(term):
        return Condition(match[1], match[2], int(match[3]))
    if match := _FLAG.fullmatch(term):
        return Condition(match[1], "=", match[2].lower() == "true")
    if match := _TEXT.fullmatch(term):
        return Condition(match[1], "=", match[2])
    if match := _LIKE.fullmatch(term):
        how = {("", ""): "=", ("%", ""): "ends", ("", "%"): "starts", ("%", "%"): "contains"}
        return Condition(match[1], how[match[2], match[4]], match[3])
    raise ValueError(
        f"{term!r} is no condition; one is COLUMN >= NUMBER, COLUMN = 'TEXT',"
        " COLUMN like '%TEXT' or COLUMN = true, and `and` joins several"
    )


def _checked(condition: Condition, table: Table) -> Condition:
    name = condition.column
    if name not in table.names:
        raise ValueError(table.no_column(name))
    kind = table[name].kind
    if isinstance(condition.value, bool):
        if kind != "boolean":
            raise ValueError(f"column {name!r} is {kind}: it is neither true nor false")
    elif isinstance(condition.value, int):
        if kind not in _INTEGERS or abs(condition.value) > _INT64_MAX:
            raise ValueError(f"column {name!r} is {kind}: it is not compared with a number")
    elif kind != "string":
        raise ValueError(f"column {name!r} is {kind}: it is not compared with a text")
    return condition


def passing(batch: Any, conditions: tuple[Condition, ...]) -> Any:
    """Return the rows of an Arrow batch that pass all conditions."""
    import pyarrow.compute as pc

    compare = {
        "=": pc.equal,
        "<": pc.less,
        "<=": pc.less_equal,
        ">": pc.greater,
        ">=": pc.greater_equal,
        "starts": pc.starts_with,
        "ends": pc.ends_with,
        "contains": pc.match_substring,
    }
    for condition in conditions:
        column = batch.column(condition.column)
        value: Any = condition.value
        batch = batch.filter(compare[condition.how](column, value))
    return batch
