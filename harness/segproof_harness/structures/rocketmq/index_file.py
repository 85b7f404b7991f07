# SPDX-License-Identifier: Apache-2.0
"""RocketMQ's index file, described for the harness.

Mirrors: segproof_model/rocketmq/format/index_file.py, segproof/rocketmq/index_file.py.
"""

from collections.abc import Mapping
from typing import Any

from segproof_harness.structures.choices import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Choose
from segproof_harness.structures.kinds import (
    INT64,
    NAME,
    Integer,
    Only,
    Optional,
    Record,
    Row,
    Together,
)
from segproof_harness.structures.operations import Value
from segproof_harness.structures.rocketmq import index_drawing as draw
from segproof_harness.structures.rocketmq.index_damage import CHANGES, damaged, draw_changes
from segproof_harness.structures.rocketmq.index_drawing import IndexImage
from segproof_harness.structures.rocketmq.index_file_states import SOMETIMES
from segproof_harness.structures.steps import Setup, Situation
from segproof_harness.structures.structure import Parameter, Structure, creating, operation
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.integers import wrap32
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.language.states import apply, opened, refuse, undone_if_refused
from segproof_model.laws.register import has
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_model.rocketmq.format.index_file_deviations import ClosedFileIsClosed

FILE_NAMES = ("20231114221320123", "0", "-5", "+7", "\u0663\u0664", "9223372036854775807")
"""Names that are numbers, as the JVM reads them."""
OTHER_NAMES = ("abc", "1x", "9223372036854775808", "", ".index", "\u00b2")
"""Names that are none; a file system has no empty name."""
GEOMETRIES = ((0, 4), (-1, 4), (4, 1), (4, 0), (4, -1), (10, 214748365), (0, 0), (2**30, 2))
"""Numbers of slots and entries that give no file, or one without room; the sixth and the last wrap
at 32 bits to files of 84 and 80 bytes."""
FILE_BYTES_MAX = 1 << 16


# --- opening -------------------------------------------------------------------------------------


def _gives_a_small_file(geometry: tuple[int, int]) -> bool:
    slots, entries = geometry
    size = wrap32(40 + wrap32(4 * slots) + wrap32(20 * entries))
    return size <= FILE_BYTES_MAX and min(slots, entries) <= FILE_BYTES_MAX


GEOMETRY = Only(
    Record(hash_slot_num=Integer(-INT32_MAX, INT32_MAX), index_num=Integer(-INT32_MAX, INT32_MAX)),
    _gives_a_small_file,
    f"numbers that give a file of at most {FILE_BYTES_MAX} bytes",
)


def _some_geometry(choose: Choose) -> tuple[Value, ...]:
    kind = choose.weighted((60, 12, 1))
    if kind == 0:
        return choose.one_of((1, 2, 3, 5, 8)), choose.integer(3, 24)
    if kind == 1:
        return choose.integer(1, 40), choose.one_of((2, 2, 40))
    return choose.one_of(GEOMETRIES)


def image_of(situation: Situation) -> IndexImage:
    """Return the file as it lies there."""
    data = situation.files.image(str(situation.opened["file_name"]))
    return IndexImage(data, *draw.geometry_of(situation))


def _draw_setup(choose: Choose) -> Setup:
    arguments: dict[str, Value] = {
        "file_name": FILE_NAMES[choose.weighted((20, 2, 1, 1, 1, 1))],
        "geometry": _some_geometry(choose),
        "end_phy_offset": choose.one_of((0, 0, 555, -3, 2**32)),
        "end_timestamp": choose.one_of((0, 0, draw.NOW_MS - 5_000, draw.NOW_MS, -1)),
        "now_ms": draw.NOW_MS,
        "damage": (),
    }
    if choose.one_in(30):
        arguments["file_name"] = choose.one_of([name for name in OTHER_NAMES if name])
    kind = choose.weighted((5, 4, 1, 1))
    if kind == 0:
        return Setup(arguments)
    image = {
        1: lambda: _written(choose, arguments),
        2: lambda: bytes(choose.one_of((0, 1, 40, 84, 200, 1000))),
        3: lambda: choose.data(choose.integer(0, 300)),
    }[kind]()
    return Setup(arguments, {str(arguments["file_name"]): image})


def _written(choose: Choose, arguments: Mapping[str, Any]) -> bytes:
    """Return a file that a few puts have written, before something damaged it, or nothing did."""
    slots, entries = arguments["geometry"]
    name = FILE_NAMES[0]
    begun = opened(SEGPROOF.kind(IndexFile), Files(), name, slots, entries)
    if isinstance(begun.outcome, Raised):
        return bytes(choose.integer(0, 100))
    state: Any = begun.after
    for number in range(choose.integer(0, min(12, max(0, entries)))):
        time = draw.some_store_time(choose, state.begin_timestamp, state.end_timestamp)
        state = apply(state, "put_key", draw.some_key(choose), 100 * number, time).after
    data: bytes = state.image
    if not choose.one_in(3):
        return data
    changed = damaged(data, draw_changes(choose, IndexImage(data, slots, entries)))
    return b"" if changed is None else changed


def _draw_damage(choose: Choose, situation: Situation) -> Value:
    """Draw what happens to the file: seldom anything, but what was refused or is full goes away."""
    image = image_of(situation)
    is_full = image.index_count >= image.index_num
    if (situation.state is None or is_full) and not choose.one_in(3):
        return (("remove", 0, b""),)
    return draw_changes(choose, image) if choose.one_in(8) else ()


def _some_file_name(choose: Choose, situation: Situation) -> Value:
    if choose.one_in(40):
        return choose.one_of([name for name in (*OTHER_NAMES, *FILE_NAMES) if name])
    name = str(situation.opened["file_name"])
    return name if name not in OTHER_NAMES else FILE_NAMES[0]


def _geometry_again(choose: Choose, situation: Situation) -> Value:
    slots, entries = draw.geometry_of(situation)
    if min(slots, entries - 1) < 1 or max(slots, entries) > 1000 or choose.one_in(30):
        return _some_geometry(choose)
    return slots, entries


OPENING = (
    Parameter("file_name", NAME, _some_file_name),
    Parameter("geometry", GEOMETRY, _geometry_again),
    Parameter("end_phy_offset", INT64, lambda choose, _: choose.one_of((0, 0, 0, 0, 777, -1))),
    Parameter(
        "end_timestamp", INT64, lambda choose, _: choose.one_of((0, 0, 0, 0, draw.NOW_MS, -1))
    ),
    draw.NOW,
    Parameter("damage", CHANGES, _draw_damage),
)


def _placed(arguments: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the positional arguments of opening."""
    return (
        arguments["file_name"],
        *arguments["geometry"],
        arguments["end_phy_offset"],
        arguments["end_timestamp"],
    )


def _open_model(arguments: Mapping[str, Any], files: Files, release: Release) -> Step[Any]:
    return opened(release.kind(IndexFile), files, *_placed(arguments))


def _open_impl(impl_class: Any, arguments: Mapping[str, Any], files: Any) -> Any:
    return impl_class.open(
        *_placed(arguments),
        **creating(impl_class.open),
        files=files,
        time=arguments["clock"],
    )


def _damage(arguments: Mapping[str, Any], images: Mapping[str, bytes]) -> Mapping[str, bytes]:
    name = arguments["file_name"]
    if name not in images:
        return images
    data = damaged(images[name], arguments["damage"])
    rest = {known: image for known, image in images.items() if known != name}
    return rest if data is None else {**rest, name: data}


# --- arguments -----------------------------------------------------------------------------------


def _some_time(choose: Choose, situation: Situation) -> int:
    image = image_of(situation)
    return draw.some_store_time(choose, image.begin_timestamp, image.end_timestamp)


def _some_offset(choose: Choose, situation: Situation) -> int:
    return draw.some_phy_offset(choose, image_of(situation).end_phy_offset)


def _some_begin(choose: Choose, situation: Situation) -> int:
    return draw.some_bound(choose, (image_of(situation),), choose.one_of((0, INT64_MIN)))


def _some_end(choose: Choose, situation: Situation) -> int:
    return draw.some_bound(choose, (image_of(situation),), INT64_MAX)


def _some_max_num(choose: Choose, situation: Situation) -> int:
    return choose.one_of((32, 64, 1, 2, 3, 0, -1, 5))


def _some_found(choose: Choose, situation: Situation) -> Value:
    return () if not choose.one_in(4) else tuple(range(choose.integer(1, 3)))


def _known_key(choose: Choose, situation: Situation) -> str | None:
    """Draw a key to look for: mostly one whose hash the file has."""
    known = draw.keys_in((image_of(situation),))
    return choose.one_of(known) if known and not choose.one_in(4) else draw.some_key_or_null(choose)


def _several_keys(choose: Choose, situation: Situation) -> Value:
    return tuple(
        _known_key(choose, situation) or draw.some_key(choose) for _ in range(choose.integer(0, 6))
    )


def _rows_to_put(choose: Choose, situation: Situation) -> Value:
    """Draw (keys, offsets, timestamps) of some puts in a row."""
    image = image_of(situation)
    keys, offsets, times = [], [], []
    offset, time = image.end_phy_offset, image.end_timestamp
    for _ in range(choose.integer(0, 6)):
        offset = draw.some_phy_offset(choose, offset)
        time = draw.some_store_time(choose, image.begin_timestamp, time)
        keys.append(draw.some_key(choose))
        offsets.append(offset)
        times.append(time)
    return tuple(keys), tuple(offsets), tuple(times)


def _have_one_length(rows: tuple[tuple[Value, ...], ...]) -> bool:
    return len({len(row) for row in rows}) == 1


NUMBERS = Row(INT64, draw.KEYS_MAX)
KEYS = Row(draw.TEXT, draw.KEYS_MAX)
ROWS = Only(
    Together(keys=KEYS, phy_offsets=NUMBERS, store_timestamps=NUMBERS),
    _have_one_length,
    "rows of one length",
)


# --- calls ---------------------------------------------------------------------------------------


def _select_of_impl(
    file: Any, phy_offsets: tuple[int, ...], key: str | None, max_num: int, begin: int, end: int
) -> Any:
    """Select into a list of the caller's, which must be unchanged where it fails."""
    given = list(phy_offsets)
    try:
        found = file.select_phy_offset(given, key, max_num, begin, end)
    except Exception:
        assert given == list(phy_offsets), "a failing query has changed the caller's list"
        raise
    assert found is given, "the caller's list is not what is returned"
    return tuple(found)


def _check_used(file: IndexFile) -> None:
    """Refuse to use a closed file for nothing, if its release refuses any use."""
    if has(file, ClosedFileIsClosed):
        file.check_mapped()


def _select_many_of_model(
    file: IndexFile, keys: tuple[str, ...], max_num: int, begin: int, end: int
) -> Any:
    """Return (where each answer starts, all offsets); no release has this, so nothing is held."""
    _check_used(file)
    starts: list[int] = [0]
    offsets: list[int] = []
    with undone_if_refused(file):
        for key in keys:
            offsets += file.select_phy_offset((), key, max_num, begin, end)
            starts.append(len(offsets))
    return tuple(starts), tuple(offsets)


def _put_keys_of_model(
    file: IndexFile,
    keys: tuple[str, ...],
    phy_offsets: tuple[int, ...],
    store_timestamps: tuple[int, ...],
) -> int:
    """Put one after the other, up to the first that has no room; return how many were put."""
    _check_used(file)
    done = 0
    for row in zip(keys, phy_offsets, store_timestamps, strict=True):
        if not file.put_key(*row):
            break
        done += 1
    return done


def _rows_of_model(file: IndexFile) -> Any:
    """Return each entry with its slot."""
    if not is_usable(file):
        refuse(ErrorKind.UNMAPPED)
    return file.entries_list()


def is_usable(state: Any) -> bool:
    """Return whether the file is open."""
    return bool(state.is_available and state.is_mapped)


# --- the table -----------------------------------------------------------------------------------

KEY = Parameter("key", Optional(draw.TEXT), lambda choose, _: draw.some_key_or_null(choose))
KNOWN_KEY = Parameter("key", Optional(draw.TEXT), _known_key)
MAX_NUM = Integer(INT32_MIN, 1000)
"""How many results are wanted; a cycle would be walked as often upstream."""
WINDOW = (
    Parameter("max_num", MAX_NUM, _some_max_num),
    Parameter("begin", INT64, _some_begin),
    Parameter("end", INT64, _some_end),
)


OPERATIONS = (
    operation(
        "put_key",
        40,
        "RMQIDX-19 RMQIDX-20 RMQIDX-21 RMQIDX-22 RMQIDX-24 RMQIDX-25",
        KEY,
        Parameter("phy_offset", INT64, _some_offset),
        Parameter("store_timestamp", INT64, _some_time),
        errors={"null": "RMQHASH-4", "unmapped": "RMQREF-4"},
    ),
    operation(
        "put_keys",
        6,
        "RMQIDX-19 RMQIDX-17",
        Parameter("rows", ROWS, _rows_to_put),
        errors={"unmapped": "RMQREF-4"},
        call_model=_put_keys_of_model,
        call_impl=lambda file, keys, **columns: file.put_keys(list(keys), **columns),
    ),
    operation(
        "select_phy_offset",
        30,
        "RMQIDX-33 RMQIDX-31 RMQIDX-32 RMQIDX-34 RMQIDX-36 RMQIDX-42",
        Parameter("phy_offsets", NUMBERS, _some_found),
        KNOWN_KEY,
        *WINDOW,
        errors={"null": "RMQIDX-39", "corrupt-index": "RMQIDX-40", "unmapped": "RMQREF-4"},
        call_impl=_select_of_impl,
    ),
    operation(
        "select_phy_offset_many",
        8,
        "RMQIDX-33 RMQIDX-31",
        Parameter("keys", KEYS, _several_keys),
        *WINDOW,
        errors={"corrupt-index": "RMQIDX-40", "unmapped": "RMQREF-4"},
        call_model=_select_many_of_model,
        call_impl=lambda file, keys, **window: file.select_phy_offset_many(list(keys), **window),
    ),
    operation(
        "is_time_matched",
        4,
        "RMQIDX-16",
        Parameter("begin", INT64, _some_begin),
        Parameter("end", INT64, _some_end),
    ),
    operation("index_key_hash_method", 2, "RMQHASH-2 RMQHASH-1", KEY, errors={"null": "RMQHASH-4"}),
    operation(
        "list_entries",
        3,
        "RMQIDX-3 RMQIDX-18",
        errors={"unmapped": "RMQREF-4"},
        call_model=_rows_of_model,
        call_impl=list,
    ),
    operation("load", 3, "RMQIDX-7"),
    operation("flush", 2, "RMQIDX-14 RMQIDX-6"),
    operation("now", 2, "", draw.NOW, sets_clock=True),
    operation("shutdown", 1, "RMQREF-4", ends=True),
    operation("close", 1, "RMQREF-4", ends=True),
    operation(
        "destroy",
        2,
        "RMQREF-3 RMQREF-2",
        Parameter("interval_forcibly_ms", INT64, lambda choose, _: draw.some_interval(choose)),
        ends=True,
    ),
)


INDEX_FILE = Structure(
    structure_id="index-file",
    model="segproof_model.rocketmq.format.index_file:IndexFile",
    opening=OPENING,
    draw_setup=_draw_setup,
    operations=OPERATIONS,
    observed=(
        "file_size",
        "hash_slot_num",
        "index_num",
        "begin_timestamp",
        "end_timestamp",
        "begin_phy_offset",
        "end_phy_offset",
        "hash_slot_count",
        "index_count",
        "ref_count",
        "is_available",
        "is_write_full",
    ),
    sometimes=SOMETIMES,
    is_usable=is_usable,
    open_model=_open_model,
    open_impl=_open_impl,
    takes_clock=True,
    damage=_damage,
    laws=("RMQIDX-1", "RMQIDX-9", "RMQIDX-10", "RMQIDX-12"),
)
