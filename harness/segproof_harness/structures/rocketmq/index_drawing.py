# SPDX-License-Identifier: Apache-2.0
"""How the arguments of RocketMQ's index are drawn: colliding keys, times beside those stored."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from segproof_harness.structures.choices import INT32_MAX, INT64_MAX, INT64_MIN, Choose, within
from segproof_harness.structures.kafka.abstract_index import clamp64
from segproof_harness.structures.kinds import TIME_MS, Text
from segproof_harness.structures.steps import Situation
from segproof_harness.structures.structure import Parameter
from segproof_model.rocketmq.format.key_hash import index_key_hash

HEADER_SIZE, SLOT_SIZE, ENTRY_SIZE = 40, 4, 20
NOW_MS = 1_700_000_000_123
TEXT = Text(10_000)
KEYS_MAX = 1000
NAMES = (
    "a", "b", "Aa", "BB", "AaAa", "AaBB", "BBAa", "BBBB", "k0", "degige", "lxkuukk",
    "polygenelubricants", "", "\u4e2d\U0001f600", "\ud83d", "\U0001f600", "\ufffd",
)  # fmt: skip
"""Keys: Aa and BB, and whatever is made of them, have one hash; degige and lxkuukk behind `T#` have
hashes of which one is the other negated; polygenelubricants has the least number, which counts as
0, and so has the empty text. A lone surrogate is a key too."""
KEYS = (*(f"T#{name}" for name in NAMES[:11]), *NAMES, "U#\u4e2d\U0001f600")
"""Keys as an index file gets them: topic, `#` and name, and some without a topic."""
TOPIC = "T"
_HASHES = {key: index_key_hash(key) for key in (*KEYS, *(f"{TOPIC}#{name}" for name in NAMES))}


@dataclass(frozen=True, slots=True)
class IndexImage:
    """The bytes of an index file, and its geometry; what lies outside is none."""

    data: bytes
    hash_slot_num: int
    index_num: int

    def number(self, position: int, size: int) -> int:
        """Return the signed number of `size` bytes at a position; 0 outside."""
        if not 0 <= position <= len(self.data) - size:
            return 0
        return int.from_bytes(self.data[position : position + size], "big", signed=True)

    @property
    def begin_timestamp(self) -> int:
        """The first field of the header."""
        return self.number(0, 8)

    @property
    def end_timestamp(self) -> int:
        """The second field of the header."""
        return self.number(8, 8)

    @property
    def end_phy_offset(self) -> int:
        """The fourth field of the header."""
        return self.number(24, 8)

    @property
    def index_count(self) -> int:
        """The stored count; 1 where it is none, and not above what there is room for."""
        return within(self.number(36, 4), 1, max(1, self.index_num))

    def entry_position(self, index: int) -> int:
        """Return where an entry begins."""
        return HEADER_SIZE + SLOT_SIZE * self.hash_slot_num + ENTRY_SIZE * index

    def slots(self) -> list[int]:
        """Return the value of each slot."""
        return [self.number(HEADER_SIZE + SLOT_SIZE * n, 4) for n in range(self.hash_slot_num)]

    def entries(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield (key hash, offset, time difference, previous index) of each entry, from 1 on."""
        for index in range(1, self.index_count):
            at = self.entry_position(index)
            yield (
                self.number(at, 4),
                self.number(at + 4, 8),
                self.number(at + 12, 4),
                self.number(at + 16, 4),
            )

    def seconds(self) -> list[int]:
        """Return the time of each entry, as it is read: whole seconds behind the begin."""
        return [self.begin_timestamp + 1000 * entry[2] for entry in self.entries()]


# --- keys ----------------------------------------------------------------------------------------


def some_key(choose: Choose) -> str:
    """Draw a key of an index file: mostly one of few, sometimes a long one that collides."""
    if choose.one_in(12):
        return "".join(choose.one_of(("Aa", "BB")) for _ in range(choose.integer(1, 6)))
    return choose.one_of(KEYS)


def keys_in(images: Iterable[IndexImage], prefix: str = "") -> list[str]:
    """Return the keys, of those that are drawn, whose hash an entry has; without the prefix."""
    hashes = {entry[0] for image in images for entry in image.entries()}
    keys = KEYS if prefix == "" else NAMES
    return [key for key in keys if _HASHES[prefix + key] in hashes]


def some_key_or_null(choose: Choose) -> str | None:
    """Draw a key, seldom none."""
    return None if choose.one_in(40) else some_key(choose)


# --- times and offsets ---------------------------------------------------------------------------


def some_store_time(choose: Choose, begin: int, end: int) -> int:
    """Draw when a message was stored: mostly a bit after the last one, sometimes at a border.

    `begin` and `end` are the timestamps of the file: the difference that its entry keeps counts
    from `begin`, in whole seconds, and has 31 bits.
    """
    last = end if 0 < end < INT64_MAX // 2 else NOW_MS
    origin = begin if 0 < begin < INT64_MAX // 2 else NOW_MS
    kind = choose.weighted((30, 6, 4, 2, 3, 1))
    if kind == 0:
        return last + choose.one_of((0, 1, 499, 999, 1000, 1001, 1500, 60_000, 86_400_000))
    if kind == 1:
        return last - choose.one_of((1, 999, 1000, 1001, 5_000, 3_600_000))
    if kind == 2:
        return origin + choose.one_of((-1, 0, 999, 1000, 1999, -999, -1000))
    if kind == 3:
        return origin + 1000 * (INT32_MAX + choose.integer(-1, 2)) + choose.one_of((0, -1, 999))
    if kind == 4:
        return NOW_MS + choose.integer(-5_000, 5_000)
    return clamp64(choose.one_of((0, -1, 1, INT64_MAX, INT64_MIN, INT64_MAX - 999, -NOW_MS)))


def some_phy_offset(choose: Choose, last: int) -> int:
    """Draw the offset of a message in the log: mostly behind the last one."""
    kind = choose.weighted((16, 3, 2, 1))
    if kind == 0:
        return clamp64(last + choose.one_of((100, 256, 1, 4096)))
    if kind == 1:
        return last
    if kind == 2:
        return clamp64(choose.beside(choose.one_of((2**32, 2**31, 0, last - 100))))
    return clamp64(choose.beside(choose.one_of((-1, INT64_MAX, INT64_MIN))))


def some_bound(choose: Choose, images: Sequence[IndexImage], widest: int) -> int:
    """Draw one end of a window: often the widest, else beside a second at which an entry reads."""
    if not choose.one_in(4):
        return widest
    known = [time for image in images for time in (*image.seconds(), image.end_timestamp)]
    if known and not choose.one_in(6):
        step = choose.one_of((0, -1, 1, 999, 1000, -999, 500))
        return clamp64(choose.one_of(known) + step)
    return choose.one_of((0, 1, NOW_MS, -1, INT64_MIN, INT64_MAX, TIME_MS.high))


def some_interval(choose: Choose) -> int:
    """Draw how long a file may be held once it is to go, in ms."""
    return choose.one_of((3000, 0, 1000, -1, INT64_MAX))


def _some_step_of_clock(choose: Choose, situation: Situation) -> int:
    """Draw what time it is next: mostly later, sometimes the same, seldom earlier."""
    step = choose.one_of((1, 2, 999, 1000, 3000, 60_000, 0, -5))
    return within(situation.now_ms + step, 0, TIME_MS.high)


NOW = Parameter("now_ms", TIME_MS, _some_step_of_clock)


def geometry_of(situation: Situation) -> tuple[int, int]:
    """Return the numbers of slots and entries of the last opening."""
    geometry: Any = situation.opened["geometry"]
    return geometry[0], geometry[1]
