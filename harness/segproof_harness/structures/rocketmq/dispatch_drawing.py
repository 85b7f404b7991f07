# SPDX-License-Identifier: Apache-2.0
"""How the store and the arguments of RocketMQ's index service are drawn.

A request is `(topic, keys, unique key, offset, timestamp, flag, tags)`, the parts of a dispatch
request by which it is indexed; `tags` is None for a message without properties.
"""

from collections.abc import Mapping
from typing import Any

from segproof_harness.structures.choices import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, Choose
from segproof_harness.structures.kafka.abstract_index import clamp64
from segproof_harness.structures.kinds import INT32, INT64, PATH, Optional, Record, Row
from segproof_harness.structures.operations import Value
from segproof_harness.structures.rocketmq import index_damage
from segproof_harness.structures.rocketmq import index_drawing as draw
from segproof_harness.structures.rocketmq.index_drawing import IndexImage
from segproof_harness.structures.steps import Setup, Situation
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import apply, opened
from segproof_model.laws.register import has
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.broker.index_service import IndexService
from segproof_model.rocketmq.broker.index_service_deviations import LoadReplaces
from segproof_model.rocketmq.format.message import DispatchRequest

FOLDER = "index/"
CHECKPOINT = "checkpoint"
CHECKPOINT_SIZE = 4096
TOPICS = (*(draw.TOPIC,) * 9, "U", "T#", "", "%RETRY%g")
KEY_NAMES = tuple(name for name in draw.NAMES if " " not in name)
SPACES = (" ", " ", " ", "  ", "\t", "\u3000", "\u00a0")
"""What lies between keys; only the first is a separator, once or more often."""
TAGS = ("TagA", "TagA", "Tag B", "", "Aa", "BB")
FLAGS = (*(0,) * 12, 4, 8, 12, 16 | 12, 3, 1 | 4, INT32_MIN, -1)
"""Flags of the system: 12 in the bits 4 and 8 is a rolled back transaction."""
STRAYS = (".DS_Store", "abc", "1x", "+5", "\u0663\u0664", "-1", "20231114", "99999999999999999999")
"""Names in the folder of the index: some are numbers, as the JVM reads them, most are none."""

DAMAGE = Row(Record(file=PATH, changes=index_damage.CHANGES), 10)
Damage = tuple[str, tuple[index_damage.Change, ...]]
"""Which file of the store, and what happens to it."""


# --- where the store stands ----------------------------------------------------------------------


def images_of(situation: Situation) -> list[IndexImage]:
    """Return the files of the index as they lie there, in the order of their names."""
    geometry = draw.geometry_of(situation)
    return [IndexImage(data, *geometry) for _, data in _index_files(situation.files)]


def _index_files(files: Files) -> list[tuple[str, bytes]]:
    return [
        (name, files.image(name))
        for name in files
        if name.startswith(FOLDER) and name.count("/") == 1
    ]


def last_image(situation: Situation) -> IndexImage:
    """Return the last file of the index; an empty one without files."""
    images = images_of(situation)
    return images[-1] if images else IndexImage(b"", *draw.geometry_of(situation))


# --- messages ------------------------------------------------------------------------------------


def some_topic(choose: Choose) -> str | None:
    """Draw a topic, seldom none."""
    return None if choose.one_in(30) else choose.one_of(TOPICS)


def _some_name(choose: Choose) -> str:
    if choose.one_in(12):
        return "".join(choose.one_of(("Aa", "BB")) for _ in range(choose.integer(1, 4)))
    return choose.one_of(KEY_NAMES)


def some_keys(choose: Choose) -> str | None:
    """Draw the keys of a message: none, one, or several with white space between and around."""
    kind = choose.weighted((6, 5, 3, 1, 1))
    if kind == 3:
        return None
    if kind == 4:
        return choose.one_of(("", " ", "   "))
    keys = _some_name(choose)
    for _ in range(kind if kind < 2 else choose.integer(2, 4)):
        keys += choose.one_of(SPACES) + _some_name(choose)
    return f" {keys} " if choose.one_in(8) else keys


def some_request(choose: Choose, situation: Situation) -> Value:
    """Draw a message behind the last one, the last one again, or one before it."""
    image = last_image(situation)
    kind = choose.weighted((16, 3, 1, 1))
    offset = image.end_phy_offset
    if kind == 0:
        offset += choose.one_of((1, 100, 200, 4096))
    elif kind == 2:
        offset -= choose.one_of((1, 100, 1000))
    elif kind == 3:
        offset = draw.some_phy_offset(choose, offset)
    return (
        some_topic(choose),
        some_keys(choose),
        _some_name(choose) if choose.one_in(3) else None,
        max(INT64_MIN, min(offset, INT64_MAX)),
        draw.some_store_time(choose, image.begin_timestamp, image.end_timestamp),
        choose.one_of(FLAGS),
        choose.one_of((None, *TAGS)) if choose.one_in(3) else None,
    )


class _Request(Record):
    """The parts of a dispatch request by which it is indexed, and its tags."""

    def by_name(self, value: Any, hints: Mapping[str, Any]) -> dict[str, Any]:
        """Return all fields of a dispatch request; what does not matter is always the same."""
        found = super().by_name(value, hints)
        tags = found.pop("tags")
        return {
            **found,
            "msg_size": 100,
            "tags_code": 0,
            "consume_queue_offset": 0,
            "prepared_transaction_offset": 0,
            "properties_map": None if tags is None else (("TAGS", tags),),
        }


REQUEST = _Request(
    topic=Optional(draw.TEXT),
    keys=Optional(draw.TEXT),
    uniq_key=Optional(draw.TEXT),
    commit_log_offset=INT64,
    store_timestamp=INT64,
    sys_flag=INT32,
    tags=Optional(draw.TEXT),
)


# --- queries -------------------------------------------------------------------------------------


def some_query_key(choose: Choose, situation: Situation) -> Value:
    """Draw a key to look for: one of a message, its tags, or none."""
    known = draw.keys_in(images_of(situation), f"{draw.TOPIC}#")
    kind = choose.weighted((16, 4, 2, 1))
    if kind == 0 and known:
        return choose.one_of(known)
    if kind == 2:
        return choose.one_of(("T#TagA", "TagA", "T#Tag B"))
    return None if kind == 3 else _some_name(choose)


def some_max_num(choose: Choose, situation: Situation) -> int:
    """Draw how many offsets are wanted; only 64 of them are given."""
    return choose.one_of((32, 64, 65, 1, 2, 3, 0, -1, INT32_MAX, INT32_MIN, 5, 32))


def some_begin(choose: Choose, situation: Situation) -> int:
    """Draw the begin of a window."""
    return draw.some_bound(choose, images_of(situation), choose.one_of((0, INT64_MIN)))


def some_end(choose: Choose, situation: Situation) -> int:
    """Draw the end of a window."""
    return draw.some_bound(choose, images_of(situation), INT64_MAX)


def _is_listed_twice(situation: Situation) -> bool:
    """Return whether two objects have one file, as upstream makes them.

    If one of them deletes it, the other goes on with bytes that nobody can compare.
    """
    names = (
        [] if situation.state is None else [file.file_name for file in situation.state.index_files]
    )
    return len(set(names)) < len(names)


def some_exit(choose: Choose, situation: Situation) -> bool:
    """Draw whether the last exit was in order; it was where files would be deleted that are open.

    Releases list the files once more, and delete them by the second object.
    """
    state = situation.state
    again = state is not None and bool(state.index_files) and not has(state, LoadReplaces)
    return not choose.one_in(4) or again


def some_expired(choose: Choose, situation: Situation) -> int:
    """Draw up to where the log was deleted: at or beside the end of a file, seldom all of it."""
    if _is_listed_twice(situation):
        return INT64_MIN
    ends = [image.end_phy_offset for image in images_of(situation)]
    if ends and not choose.one_in(5):
        return clamp64(choose.beside(choose.one_of(ends)))
    return choose.one_of((0, INT64_MAX, INT64_MIN, 300))


# --- opening -------------------------------------------------------------------------------------


def _some_geometry(choose: Choose) -> tuple[Value, ...]:
    if choose.one_in(40):
        return choose.one_of(((0, 4), (4, 1), (4, 0), (-1, 4), (2, 2)))
    return choose.one_of((1, 2, 3, 5)), choose.one_of((3, 4, 5, 6, 8, 12))


def geometry_again(choose: Choose, situation: Situation) -> Value:
    """Draw the geometry of another opening: nearly always that of the last one."""
    if min(draw.geometry_of(situation)) < 1 or choose.one_in(30):
        return _some_geometry(choose)
    return draw.geometry_of(situation)


def draw_setup(choose: Choose) -> Setup:
    """Draw a store and the first opening: empty, or with files that a service has written."""
    geometry = _some_geometry(choose)
    arguments: dict[str, Value] = {"geometry": geometry, "now_ms": draw.NOW_MS, "damage": ()}
    if choose.one_in(2):
        return Setup(arguments)
    files = _written(choose, geometry)
    if choose.one_in(4):
        files = {**files, **_strays(choose, geometry)}
    if choose.one_in(3):
        files[CHECKPOINT] = _some_checkpoint(choose, files, geometry)
    if choose.one_in(30):
        files = {"index": choose.data(choose.integer(0, 3))}
    return Setup(arguments, files)


def _written(choose: Choose, geometry: tuple[Any, ...]) -> dict[str, bytes]:
    """Return the files of a service that has got some messages."""
    begun = Files(now_ms=draw.NOW_MS - 60_000)
    state: Any = opened(SEGPROOF.kind(IndexService), begun, "", *geometry).after
    if not isinstance(state, IndexService):
        return {}
    for _ in range(choose.integer(0, 12)):
        situation = Situation(state, state.files, {"geometry": geometry})
        request: Any = some_request(choose, situation)
        step = apply(state, "build_index", REQUEST.built(request, DispatchRequest))
        if isinstance(step.outcome, Raised):
            break
        state = step.after
    return dict(sorted(state.files.images.items()))


def _strays(choose: Choose, geometry: tuple[Any, ...]) -> dict[str, bytes]:
    """Return files that are none of the index, or none of its size; seldom a folder."""
    name = FOLDER + choose.one_of(STRAYS)
    if choose.one_in(5):
        return {f"{name}/file": b""}
    slots, entries = geometry
    size = 40 + 4 * abs(slots) + 20 * abs(entries)
    return {name: bytes(choose.one_of((size, size, size, 0, 40, size + 20)))}


def _some_checkpoint(
    choose: Choose, files: Mapping[str, bytes], geometry: tuple[Any, ...]
) -> bytes:
    """Return a checkpoint whose index time is that of some file, or beside it; seldom too short."""
    images = [IndexImage(data, *geometry) for name, data in files.items() if name[:6] == FOLDER]
    times = [image.end_timestamp for image in images] or [0]
    index = clamp64(choose.beside(choose.one_of((*times, 0))))
    fields = (draw.NOW_MS, draw.NOW_MS - 1_000, index, 7, 9)
    data = b"".join(field.to_bytes(8, "big", signed=True) for field in fields)
    size = choose.one_of((CHECKPOINT_SIZE, CHECKPOINT_SIZE, CHECKPOINT_SIZE, 24, 0, 4100))
    return data[:size].ljust(size, b"\0")


def draw_damage(choose: Choose, situation: Situation) -> Value:
    """Draw what happens to one file of the store while nothing is open: mostly nothing."""
    if not choose.one_in(4):
        return ()
    files = _index_files(situation.files)
    if not files or choose.one_in(4):
        images = dict(files)
        data = _some_checkpoint(choose, images, draw.geometry_of(situation))
        return ((CHECKPOINT, (("size", len(data), b""), ("write", 0, data[:40]))),)
    name, data = choose.one_of(files)
    image = IndexImage(data, *draw.geometry_of(situation))
    return ((name, index_damage.draw_changes(choose, image)),)


def with_damage(arguments: Mapping[str, Value], images: Mapping[str, bytes]) -> Mapping[str, bytes]:
    """Return the files of the store after the damage; the checkpoint may come to be by it."""
    found: Any = arguments["damage"]
    files = dict(images)
    for name, changes in found:
        if name not in files and name != CHECKPOINT:
            continue
        data = index_damage.damaged(files.pop(name, b""), changes)
        if data is not None:
            files[name] = data
    return files
