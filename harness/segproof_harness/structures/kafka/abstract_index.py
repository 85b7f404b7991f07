# SPDX-License-Identifier: Apache-2.0
"""What the descriptions of the offset index and the time index share."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from segproof_harness.structures.choices import INT64_MAX, INT64_MIN, Choose, within
from segproof_harness.structures.kinds import FLAG, INT32, INT64, NAME, SIZE, Row
from segproof_harness.structures.operations import Value
from segproof_harness.structures.steps import Event, Setup, Situation, States
from segproof_harness.structures.structure import (
    OperationKind,
    Parameter,
    Structure,
    creating,
    operation,
)
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened

BASE_OFFSETS = (0, 100, 1, 5, 2**31 - 1, 2**31, 2**31 + 7, 2**40, 2**62)
ROW_MAX = 100_000
"""So many targets are looked up at once at most."""
BORDERS = (2**31 - 1, 2**31, 2**31 - 2, -1, 2**32, 2**32 - 1)
"""Distances from the base offset where 31 or 32 bits end."""


def clamp64(value: int) -> int:
    """Return the value, moved into 64 bits."""
    return within(value, INT64_MIN, INT64_MAX)


def base_of(situation: Situation) -> int:
    """Return the base offset of the last opening."""
    return int(situation.opened["base_offset"])  # type: ignore[arg-type]  # checked by the trace


def some_offset(choose: Choose, situation: Situation) -> int:
    """Draw an offset to look for or to cut at: an existing one or beside it, or a border."""
    base = base_of(situation)
    keys = offsets_of(situation)
    kind = choose.weighted((12, 3, 2, 1))
    if kind == 0 and keys:
        return clamp64(choose.beside(choose.one_of(keys)))
    if kind <= 1:
        return clamp64(choose.beside(base))
    if kind == 2:
        return clamp64(base + choose.beside(choose.one_of(BORDERS)))
    return clamp64(base + choose.integer(-10, 2000))


def offsets_of(situation: Situation) -> list[int]:
    """Return the offsets of the first, some middle and the last entries."""
    state = situation.state
    if state is None or not state.entries or not state.image:
        return []
    offsets = [state.base_offset + relative for relative in state.relative_offsets()]
    if len(offsets) <= 16:
        return offsets
    return [*offsets[:4], offsets[len(offsets) // 2], *offsets[-8:]]


def next_offset(choose: Choose, situation: Situation, last: int, is_empty: bool) -> int:
    """Draw an offset to append: mostly the next ones, sometimes one that must be refused."""
    kind = choose.weighted((30, 3, 1, 2, 3, 1))
    if kind == 0:
        return clamp64(last + choose.integer(0 if is_empty else 1, 6))
    if kind == 1:
        return clamp64(choose.beside(last))
    if kind == 2:
        return clamp64(base_of(situation) + choose.beside(choose.one_of(BORDERS)))
    if kind == 3:
        return clamp64(last + choose.integer(1, 100_000))
    if kind == 4:
        return clamp64(base_of(situation) + choose.one_of(BORDERS[:2]))
    return some_offset(choose, situation)


def some_size(entry_size: int) -> Callable[[Choose, Situation], int]:
    """Return how a new file size is drawn: around what is used, around borders, ragged."""

    def draw(choose: Choose, situation: Situation) -> int:
        used = 0 if situation.state is None else situation.state.size_in_bytes
        kind = choose.weighted((6, 4, 3, 1, 1))
        if kind == 0:
            return int(used + entry_size * choose.integer(0, 12))
        if kind == 1:
            return int(used + choose.integer(-entry_size, 2 * entry_size))
        if kind == 2:
            return entry_size * choose.integer(0, 40) + choose.integer(0, entry_size - 1)
        if kind == 3:
            return choose.integer(-2 * entry_size - 1, entry_size)
        maximum = situation.opened["max_index_size_bytes"]
        assert isinstance(maximum, int)
        return choose.beside(maximum)

    return draw


def some_max_size(choose: Choose, entry_size: int) -> int:
    """Draw a maximum index size: mostly some tens of entries, also too small ones and -1."""
    kind = choose.weighted((40, 6, 3, 2, 1))
    if kind == 0:
        return entry_size * choose.integer(1, 30) + choose.integer(0, entry_size - 1)
    if kind == 1:
        return choose.integer(entry_size, 3 * entry_size)
    if kind == 2:
        return choose.integer(0, entry_size)
    if kind == 3:
        return -1
    return 8192 + entry_size * choose.integer(0, 8)


def names(suffix: str) -> tuple[str, ...]:
    """Return the file names that histories use."""
    return (f"segment{suffix}", f"segment{suffix}.deleted", f"other{suffix}")


def some_name(suffix: str) -> Callable[[Choose, Situation], str]:
    """Return how the target of a rename is drawn."""
    known = names(suffix)
    return lambda choose, situation: choose.one_of(known)


def present_name(suffix: str) -> Callable[[Choose, Situation], str]:
    """Return how the file to open is drawn: nearly always the one in use."""
    known = names(suffix)

    def draw(choose: Choose, situation: Situation) -> str:
        if choose.one_in(12):
            return choose.one_of(known)
        if situation.state is not None:
            return str(situation.state.name)
        return str(situation.opened["file"])

    return draw


def opening(suffix: str, entry_size: int) -> tuple[Parameter, ...]:
    """Return the arguments of opening an index."""
    return (
        Parameter("file", NAME, present_name(suffix)),
        Parameter("base_offset", INT64, lambda choose, situation: base_of(situation)),
        Parameter(
            "max_index_size_bytes",
            SIZE,
            lambda choose, situation: (
                some_max_size(choose, entry_size)
                if choose.one_in(4)
                else situation.opened["max_index_size_bytes"]
            ),
        ),
        Parameter("writable", FLAG, lambda choose, situation: not choose.one_in(6)),
    )


def setup_drawer(
    suffix: str, entry_size: int, write_entry: Callable[[Choose, int], bytes]
) -> Callable[[Choose], Setup]:
    """Return how the beginning of a history is drawn: a new file, or one that was left behind."""

    def draw(choose: Choose) -> Setup:
        arguments: dict[str, Value] = {
            "file": names(suffix)[0],
            "base_offset": choose.one_of(BASE_OFFSETS),
            "max_index_size_bytes": some_max_size(choose, entry_size),
            "writable": not choose.one_in(12),
        }
        kind = choose.weighted((60, 14, 14, 6, 6, 1))
        if kind == 0:
            return Setup(arguments)
        if kind == 5:
            return Setup(arguments, {names(suffix)[0]: _long_image(choose, entry_size)})
        count = choose.integer(0, 12)
        good = b"".join(write_entry(choose, number) for number in range(count))
        image = {
            1: bytes(entry_size * choose.integer(0, 24)),
            2: good + bytes(entry_size * choose.integer(0, 12)),
            3: good + choose.data(choose.integer(0, entry_size)),
            4: choose.data(entry_size * choose.integer(1, 8)),
        }[kind]
        return Setup(arguments, {names(suffix)[0]: image})

    return draw


def _long_image(choose: Choose, entry_size: int) -> bytes:
    """Return more entries than the warm section of a search holds, some of them equal."""
    count = 8192 // entry_size + choose.integer(2, 10)
    same = choose.integer(0, count)
    key_size = entry_size - 4
    return b"".join(
        (1 + number - (number == same)).to_bytes(key_size, "big") + number.to_bytes(4, "big")
        for number in range(count)
    )


def _slot_number(choose: Choose, situation: Situation) -> int:
    entries = situation.state.entries if situation.state is not None else 0
    if choose.one_in(4):
        return choose.one_of((-1, entries, entries + 1, -entries - 1))
    return choose.integer(0, max(entries - 1, 0))


def open_model(model_class: Any) -> Callable[..., Any]:
    """Return how the model is opened."""

    def open_it(arguments: Mapping[str, Any], files: Files, release: Release) -> Step[Any]:
        given = dict(arguments)
        return opened(release.kind(model_class), files, given.pop("file"), **given)

    return open_it


def open_impl(impl_class: Any, arguments: Mapping[str, Any], files: Any) -> Any:
    """Open the implementation."""
    return impl_class(**arguments, **creating(impl_class, arguments["writable"]), files=files)


def some_rows(draw_one: Callable[[Choose, Situation], int]) -> Callable[[Choose, Situation], Value]:
    """Return how several targets are drawn: up to six, sorted or not."""

    def draw(choose: Choose, situation: Situation) -> Value:
        drawn = [draw_one(choose, situation) for _ in range(choose.integer(0, 6))]
        return tuple(sorted(drawn) if choose.boolean() else drawn)

    return draw


def lookup_many(index: Any, **targets: tuple[int, ...]) -> Any:
    """Return the columns of what `lookup` answers to each of the targets."""
    (row,) = targets.values()
    answers = [index.lookup(target) for target in (0, *row)][1:]
    return tuple(answer[0] for answer in answers), tuple(answer[1] for answer in answers)


def is_usable(state: Any) -> bool:
    """Return whether the index is mapped."""
    return bool(state.is_mapped)


def list_entries(index: Any) -> list[Any]:
    """Return every entry; the error of a lookup where no lookup is possible."""
    index.check_mapped()
    return entries_of(index)


def entries_of(index: Any) -> list[Any]:
    """Return every entry that the file has."""
    return [index.stored(number) for number in range(len(index.stored_numbers()))]


SOMETIMES: States = {
    "empty": lambda event: event.after is not None and event.after.entries == 0,
    "full": lambda event: (
        event.after is not None
        and event.after.entries > 0
        and event.after.entries == event.after.max_entries
    ),
    "append-refused-full": lambda event: event.refused(
        "invalid-argument", "append", "maybe_append"
    ),
    "offset-refused": lambda event: event.outcome.error == "invalid-offset",
    "2^31-border": lambda event: (
        event.done("append", "maybe_append")
        and event.argument("offset") == event.after.base_offset + 2**31 - 1
    ),
    "beyond-2^31": lambda event: event.outcome.error == "index-offset-overflow",
    "zero-tail": lambda event: (
        event.does("open", "crash_reopen")
        and event.after is not None
        and 0 < event.after.entries < event.after.max_entries
    ),
    "truncated": lambda event: (
        event.done("truncate_to") and 0 < event.after.entries < event.before.entries
    ),
    "resized": lambda event: event.does("resize") and event.outcome.value is True,
    "resize-refused": lambda event: event.refused("invalid-argument", "resize"),
    "ragged": lambda event: (
        event.after is not None and event.after.length % event.after.entry_size != 0
    ),
    "read-only-refused": lambda event: event.outcome.error == "read-only",
    "closed-refused": lambda event: event.outcome.error == "unmapped",
    "open-refused": lambda event: event.after is None,
    "rename-over": lambda event: (
        event.done("rename_to")
        and event.argument("file") in event.before.files
        and event.argument("file") != event.before.name
    ),
    "renamed-after-delete": lambda event: event.refused("file-not-found", "rename_to"),
    "corrupt-found": lambda event: event.outcome.error == "corrupt-index",
    "duplicate-key": lambda event: (
        event.does("open")
        and event.after is not None
        and len(set(event.after.keys())) < len(event.after.keys())
    ),
    "warm-section-left": lambda event: (
        event.after is not None and event.after.size_in_bytes > 8192 + event.after.entry_size
    ),
}
"""States of any index that histories must really reach."""
OBSERVED = ("entries", "max_entries", "length", "size_in_bytes", "is_full")
"""Accessors of any index."""


@dataclass(frozen=True, slots=True)
class Differences:
    """What one index has of its own."""

    structure_id: str
    model_class: Any
    """The class of the model; that of the implementation has the same module and name."""
    suffix: str
    entry_size: int
    write_entry: Callable[[Choose, int], bytes]
    """Return the bytes of an entry by its number."""
    append: OperationKind
    target: str
    """The parameter of `lookup`; with an s, that of `lookup_many`."""
    draw_target: Callable[[Choose, Situation], int]
    last: str
    """The accessor of the last entry."""
    laws: Mapping[str, str]
    """Laws of `lookup`, `truncate_to`, `list_entries` and `sanity_check`, the chief one first."""
    more_operations: tuple[OperationKind, ...] = ()
    sometimes: Mapping[str, Callable[[Event], bool]] = field(default_factory=dict)

    @property
    def class_name(self) -> str:
        """Module and class, as they are called below both packages."""
        module = str(self.model_class.__module__).rpartition(".")[2]
        return f"{module}:{self.model_class.__name__}"


def describe(differs: Differences) -> Structure:
    """Return the description of an index."""
    suffix, entry_size, laws = differs.suffix, differs.entry_size, differs.laws
    return Structure(
        structure_id=differs.structure_id,
        model=f"segproof_model.kafka.format.{differs.class_name}",
        opening=opening(suffix, entry_size),
        draw_setup=setup_drawer(suffix, entry_size, differs.write_entry),
        operations=(
            differs.append,
            *_lookups(differs),
            *differs.more_operations,
            operation(
                "truncate_to",
                6,
                f"{laws['truncate_to']} ABSIDX-20",
                Parameter("offset", INT64, some_offset),
            ),
            operation(
                "list_entries", 2, laws["list_entries"], call_model=list_entries, call_impl=list
            ),
            *_shared_operations(suffix, entry_size, laws["sanity_check"]),
        ),
        observed=(*OBSERVED, differs.last),
        sometimes={**SOMETIMES, **differs.sometimes},
        is_usable=is_usable,
        open_model=open_model(differs.model_class),
        open_impl=open_impl,
        laws=("ABSIDX-4", "ABSIDX-1", "ABSIDX-2", "ABSIDX-3"),
    )


def _lookups(differs: Differences) -> tuple[OperationKind, ...]:
    """Return the search for one target, and for many."""
    target, draw, laws = differs.target, differs.draw_target, differs.laws["lookup"]
    return (
        operation("lookup", 14, f"{laws} ABSIDX-22 ABSIDX-26", Parameter(target, INT64, draw)),
        operation(
            "lookup_many",
            4,
            f"{laws.split()[0]} ABSIDX-22",
            Parameter(f"{target}s", Row(INT64, ROW_MAX), some_rows(draw)),
            call_model=lookup_many,
        ),
    )


def _shared_operations(suffix: str, entry_size: int, sanity_laws: str) -> tuple[OperationKind, ...]:
    """Return the operations that both indexes have with the same arguments."""
    return (
        operation("entry", 4, "OFFIDX-13 OFFIDX-14", Parameter("n", INT32, _slot_number)),
        operation("can_append_offset", 1, "ABSIDX-21", Parameter("offset", INT64, some_offset)),
        operation("relative_offset", 1, "ABSIDX-21", Parameter("offset", INT64, some_offset)),
        operation(
            "resize",
            5,
            "ABSIDX-8 ABSIDX-7",
            Parameter("new_size", SIZE, some_size(entry_size)),
            errors={
                "invalid-argument": "ABSIDX-9",
                "io-error": "ABSIDX-10",
                "read-only": "ABSIDX-11",
            },
        ),
        operation("trim_to_valid_size", 2, "ABSIDX-12"),
        operation("reset", 2, "ABSIDX-13"),
        operation("truncate", 1, "ABSIDX-20"),
        operation("flush", 2, "ABSIDX-5"),
        operation("sanity_check", 3, sanity_laws),
        operation("rename_to", 2, "ABSIDX-19", Parameter("file", NAME, some_name(suffix))),
        operation("close", 2, "ABSIDX-14 ABSIDX-15", ends=True),
        operation("close_handler", 1, "ABSIDX-16", ends=True),
        operation("delete_if_exists", 1, "ABSIDX-18", ends=True),
    )
