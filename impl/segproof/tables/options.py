# SPDX-License-Identifier: Apache-2.0
"""The request to a reader of tables: options as text, columns, filters.

Every refusal is an InvalidArgumentError that names the option. What the option `where` and pushed
filters say leaves out the files and batches that cannot have a row that passes; the rows of the
others are chosen by `where` in the reader, and by Spark, which evaluates every pushed filter again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from segproof.compression import UNCOMPRESSED_LIMIT_BYTES
from segproof.errors import InvalidArgumentError
from segproof.nearest_names import no_such
from segproof.tables.conditions import Condition, conditions_of
from segproof.tables.schemas import DAMAGE, OPTIONS, TABLES, Column, Table

TASK_BYTES: Final = 128 << 20
FAIL: Final = "fail"
SKIP: Final = "skip"
KEEP: Final = "keep"
ON_DAMAGE: Final = (FAIL, SKIP, KEEP)
"""What a read does where it meets damage."""
_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_SPARKS_OWN: Final = frozenset({"serialization.format"})
"""Options that Spark itself adds where a table is made by SQL."""


@dataclass(slots=True)
class Range:
    """The integers from `low` to `high`, both inclusive."""

    low: int = _INT64_MIN
    high: int = _INT64_MAX

    def meets(self, low: int, high: int) -> bool:
        """Return whether an integer from `low` to `high`, both inclusive, is in it."""
        return max(self.low, low) <= min(self.high, high)


@dataclass(slots=True)
class Filters:
    """The conditions and pushed filters that leave out files or batches."""

    ranges: dict[str, Range] = field(default_factory=dict)
    """Column to its range."""
    texts: list[tuple[str, str, tuple[str, ...]]] = field(default_factory=list)
    """Column, one of `=`, `starts`, `ends`, `contains`, and texts: one of them must fit."""

    def range(self, column: str) -> Range:
        """Return the range of a column."""
        return self.ranges.get(column, Range())

    def passes(self, column: str, text: str) -> bool:
        """Return whether a text may stand in a row that passes."""
        return all(
            any(_fits(how, text, each) for each in wanted)
            for name, how, wanted in self.texts
            if name == column
        )

    def note(self, column: str, how: str, values: tuple[Any, ...]) -> None:
        """Take in that a column stands so to one of these values."""
        if not values:
            return
        if how in _ORDERS and all(type(each) is int for each in values):
            known = self.ranges.setdefault(column, Range())
            if how in ("=", ">=", ">"):
                known.low = max(known.low, min(values) + (how == ">"))
            if how in ("=", "<=", "<"):
                known.high = min(known.high, max(values) - (how == "<"))
        elif how not in ("<", "<=", ">", ">=") and all(isinstance(each, str) for each in values):
            self.texts.append((column, how, values))


_ORDERS: Final = ("=", "<", "<=", ">", ">=")


def _fits(how: str, text: str, wanted: str) -> bool:
    if how == "=":
        return text == wanted
    if how == "starts":
        return text.startswith(wanted)
    return text.endswith(wanted) if how == "ends" else wanted in text


@dataclass(slots=True)
class Request:
    """The parsed options. Small and plain: they travel to workers."""

    table: str
    columns: tuple[str, ...]
    """The columns to read: those of the result, then those that only `where` needs."""
    result: tuple[str, ...] = ()
    """The columns of the result: some of `columns`, and `DAMAGE` where Spark asks to go on."""
    where: tuple[Condition, ...] = ()
    on_damage: str = FAIL
    trust_time_index: bool = False
    hash_slots: int | None = None
    limit_bytes: int = UNCOMPRESSED_LIMIT_BYTES
    task_bytes: int = TASK_BYTES
    filters: Filters = field(default_factory=Filters)

    def wants(self, *names: str) -> bool:
        """Return whether one of these columns is asked for."""
        return any(name in self.columns for name in names)

    @property
    def tells_damage(self) -> bool:
        """Whether each place where rows are left out is a row with the column `DAMAGE`."""
        return DAMAGE.name in self.result and DAMAGE.name not in TABLES[self.table].names


def table_of(options: Mapping[str, str]) -> Table:
    """Return the table that the options name. Raises: InvalidArgumentError."""
    name = options.get("table", "findings")
    if name not in TABLES:
        raise refused("table", no_such("table", name, TABLES))
    return TABLES[name]


def columns_of(
    table: Table, options: Mapping[str, str], *, with_damage: bool = False
) -> tuple[Column, ...]:
    """Return the columns of the result that the options ask for.

    A read that goes on has the columns that tell damage, also where they are not named.
    `with_damage` adds `DAMAGE` to them. Raises: InvalidArgumentError.
    """
    _check_names(table, options)
    named = _named_columns(table, options)
    return (*named, *_added_columns(table, options, with_damage=with_damage, named=named))


def _added_columns(
    table: Table,
    options: Mapping[str, str],
    *,
    with_damage: bool,
    named: tuple[Column, ...] = (),
) -> tuple[Column, ...]:
    """Return the columns that tell damage, where the read goes on, but for those that are named."""
    how = on_damage_of(options)
    if how == FAIL:
        return ()
    added: list[Column] = []
    if DAMAGE.name in table.names:
        added.append(table[DAMAGE.name])
    else:
        if how == KEEP and "crc_valid" in table.names:
            added.append(table["crc_valid"])
        if with_damage:
            added.append(DAMAGE)
    return tuple(column for column in added if column not in named)


def on_damage_of(options: Mapping[str, str]) -> str:
    """Return what a read does where it meets damage. Raises: InvalidArgumentError."""
    how = options.get("on_damage", FAIL).lower()
    if how not in ON_DAMAGE:
        raise refused("on_damage", f"{how!r} is none of {', '.join(ON_DAMAGE)}")
    return how


def _named_columns(table: Table, options: Mapping[str, str]) -> tuple[Column, ...]:
    if "columns" not in options:
        return table.columns
    if not options["columns"].strip():
        raise refused("columns", f"it names no column; table {table.name} has"
                      f" {', '.join(table.names)}")  # fmt: skip
    names = [name.strip() for name in options["columns"].split(",")]
    for name in names:
        if name not in table.names:
            raise refused("columns", table.no_column(name))
    if len(set(names)) < len(names):
        raise refused("columns", "a column is named twice")
    return tuple(table[name] for name in names)


def request_of(
    options: Mapping[str, str],
    schema: Iterable[tuple[str, str]] = (),
    *,
    with_damage: bool = False,
) -> Request:
    """Return what the options ask for, with the columns of the schema that Spark hands over.

    `schema` has names and types; empty, the options alone say it. `with_damage` is that of
    `columns_of`. Raises: InvalidArgumentError.
    """
    table = table_of(options)
    columns = columns_of(table, options, with_damage=with_damage)
    if given := tuple(schema):
        wanted = _added_columns(table, options, with_damage=with_damage)
        columns = _given_columns(table, given, wanted)
    slots = options.get("hash_slots")
    result = tuple(column.name for column in columns)
    names = tuple(name for name in result if name in table.names)
    where = _where(table, options)
    filters = Filters()
    for condition in where:
        filters.note(condition.column, condition.how, (condition.value,))
    added = dict.fromkeys(each.column for each in where if each.column not in names)
    return Request(
        table.name,
        (*names, *added),
        result,
        where,
        on_damage_of(options),
        trust_time_index=flag(options, "trust_time_index"),
        hash_slots=None if slots is None else number(options, "hash_slots", 0),
        limit_bytes=number(options, "limit_bytes", UNCOMPRESSED_LIMIT_BYTES),
        task_bytes=number(options, "task_bytes", TASK_BYTES),
        filters=filters,
    )


def flag(options: Mapping[str, str], name: str) -> bool:
    """Return an option that is true or false; false unless given. Raises: InvalidArgumentError."""
    text = options.get(name, "false").lower()
    if text not in ("true", "false"):
        raise refused(name, f"{options[name]!r} is neither true nor false")
    return text == "true"


def number(options: Mapping[str, str], name: str, default: int) -> int:
    """Return an option that is a whole number from 1. Raises: InvalidArgumentError."""
    if name not in options:
        return default
    try:
        value = int(options[name])
    except ValueError:
        raise refused(name, f"{options[name]!r} is no whole number") from None
    if value < 1:
        raise refused(name, "it must be 1 or more")
    return value


def _where(table: Table, options: Mapping[str, str]) -> tuple[Condition, ...]:
    if "where" not in options:
        return ()
    try:
        return conditions_of(options["where"], table)
    except ValueError as error:
        raise refused("where", str(error)) from None


def _given_columns(
    table: Table, given: Sequence[tuple[str, str]], added: Sequence[Column]
) -> tuple[Column, ...]:
    """Return the columns of a given schema, which must have the added ones. Raises: ValueError."""
    known = {column.name: column for column in (*table.columns, *added)}
    for name, kind in given:
        if name not in known:
            raise InvalidArgumentError(f"segproof: schema: {table.no_column(name)}")
        wanted = known[name].kind.replace(" ", "")
        if kind.replace(" ", "") != wanted:
            raise InvalidArgumentError(f"segproof: schema: column {name!r} is {wanted}, not {kind}")
    for column in added:
        if column.name not in dict(given):
            raise InvalidArgumentError(
                f"segproof: schema: a read that goes on at damage has the column"
                f" `{column.name} {column.kind}`: add it"
            )
    return tuple(known[name] for name, _ in given)


def _check_names(table: Table, options: Mapping[str, str]) -> None:
    known = {option.name: option for option in OPTIONS}
    for name in options:
        option = known.get(name.lower())
        if option is None and name.lower() not in _SPARKS_OWN:
            raise refused(name, f"there is no such option; known: {', '.join(known)}")
        if option is not None and option.tables and table.name not in option.tables:
            raise refused(
                name, f"it is not for table {table.name}, only for {', '.join(option.tables)}"
            )


def refused(option: str, words: str) -> InvalidArgumentError:
    """Return the refusal of an option."""
    return InvalidArgumentError(f"segproof: option {option}: {words}")
