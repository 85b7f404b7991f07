# SPDX-License-Identifier: Apache-2.0
"""Stores of RocketMQ with known messages, damage as disks make it, and a judge of what was saved.

The writer and the reader here know the layout of the files by themselves: they share no code with
the package that is judged. Only the index of a drawn store is made by it.
"""

import os
import struct
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from segproof.files import REAL_FILES
from segproof.findings import Summary
from segproof.rebuilding.store_rebuild import rebuild_index
from segproof.salvaging.store_salvage import SalvagedStore, salvage_store
from segproof.verification import verify
from segproof_harness.files.memory_files import write_file

MAGIC, MAGIC_V2, BLANK = 0xDAA320A7, 0xDAA320AB, 0xCBD43194
TOPICS = ("Orders", "Pay", "\u00fcber")
TAGS = ("", "", "red", "blue")
QUEUE_UNITS = 40
SLOTS, ENTRIES = 16, 64
FIRST_MS = 1_700_000_000_000
FILLER_SIZE = 2**31 - 1
UNIT = struct.Struct(">qiq")


class Stored(NamedTuple):
    """One message as it lies in a log."""

    raw: bytes
    topic: str
    queue: int
    number: int
    flags: int
    offset: int
    """The one that it says."""
    body: bytes
    keys: tuple[str, ...]
    tags: str

    @property
    def is_queued(self) -> bool:
        """Whether a queue has a unit of it."""
        return self.flags & 12 in (0, 8)

    @property
    def is_filler(self) -> bool:
        """Whether a salvage has put it in place of lost ones."""
        return self.flags & 12 == 12 and "SEGPROOF_LOST".startswith(self.topic)


# --- writing -------------------------------------------------------------------------------------


def java_hash(text: str) -> int:
    """Return Java's hash code of a text of the basic plane."""
    value = 0
    for character in text:
        value = (31 * value + ord(character)) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def encoded(random: Random, offset: int, number: int, ident: int, time: int) -> bytes:
    """Return a message with an own body."""
    is_new, flags = random.random() < 0.3, random.choice((0, 0, 0, 0, 4, 8, 12, 16, 48))
    body = b"%06d:" % ident + random.randbytes(random.choice((0, 5, 40, 200, 700)))
    topic = random.choice(TOPICS)
    tags = random.choice(TAGS)
    keys = " ".join(f"k{ident * 3 % 50 + extra}" for extra in range(random.choice((0, 1, 2))))
    pairs = {"KEYS": keys, "UNIQ_KEY": f"U{ident}" if random.random() < 0.7 else "", "TAGS": tags}
    properties = "".join(f"{key}\x01{value}\x02" for key, value in pairs.items() if value).encode()
    host = bytes(8) if not flags & 16 else bytes(20)
    store_host = bytes(8) if not flags & 32 else bytes(20)
    name = topic.encode()
    rest = b"".join(
        (
            struct.pack(
                ">iiiqqiq", zlib.crc32(body) & 0x7FFFFFFF, ident % 3, 7, number, offset, flags,
                time - random.randrange(50),
            ),
            host,
            struct.pack(">q", time),
            store_host,
            struct.pack(">iqi", 0, 0, len(body)),
            body,
            struct.pack(">h" if is_new else ">b", len(name)),
            name,
            struct.pack(">h", len(properties)),
            properties,
        )
    )  # fmt: skip
    return struct.pack(">iI", len(rest) + 8, MAGIC_V2 if is_new else MAGIC) + rest


@dataclass
class DrawnStore:
    """A sound store."""

    path: Path
    file_size: int
    messages: dict[int, Stored] = field(default_factory=dict)
    """By offset."""


def drawn_store(random: Random, path: Path) -> DrawnStore:
    """Write a store with a log of several files, its queues, an index and a checkpoint."""
    drawn = DrawnStore(path, random.choice((4096, 8192, 20_000)))
    size, offset, time = drawn.file_size, 0, FIRST_MS
    if random.random() < 0.3:
        offset = size * random.choice((1, 7))
    numbers: Counter[tuple[str, int]] = Counter()
    logs: dict[int, bytearray] = {}
    begun = offset
    for ident in range(random.choice((12, 40, 120))):
        time += random.choice((0, 1, 30, 2000))
        state = random.getstate()
        probe = parsed(encoded(random, offset, 0, ident, time), 0)
        assert probe is not None
        if offset % size + len(probe.raw) + 8 > size:
            tail = size - offset % size
            logs.setdefault(offset - offset % size, bytearray()).extend(
                struct.pack(">iI", tail, BLANK).ljust(tail, b"\0")
            )
            offset += tail
        key = (probe.topic, probe.queue)
        random.setstate(state)
        found = parsed(encoded(random, offset, numbers[key], ident, time), 0)
        assert found is not None
        numbers[key] += found.is_queued
        logs.setdefault(offset - offset % size, bytearray()).extend(found.raw)
        drawn.messages[offset] = found
        offset += len(found.raw)
    for start, data in logs.items():
        _write(path / "commitlog" / f"{start:020d}", bytes(data).ljust(size, b"\0"))
    _write_queues(drawn)
    _write(path / "checkpoint", struct.pack(">qqq", time, time, 0).ljust(4096, b"\0"))
    assert begun in drawn.messages
    rebuild_index(path, None, SLOTS, ENTRIES, in_place=True)
    return drawn


def _write(path: Path, data: bytes) -> None:
    write_file(REAL_FILES, str(path), data)


def _write_queues(drawn: DrawnStore) -> None:
    files: dict[tuple[str, int, int], bytearray] = {}
    for offset, one in drawn.messages.items():
        if one.is_queued:
            first = one.number - one.number % QUEUE_UNITS
            unit = UNIT.pack(offset, len(one.raw), java_hash(one.tags) if one.tags else 0)
            files.setdefault((one.topic, one.queue, first), bytearray()).extend(unit)
    for (topic, queue, first), data in files.items():
        path = drawn.path / "consumequeue" / topic / str(queue) / f"{20 * first:020d}"
        _write(path, bytes(data).ljust(20 * QUEUE_UNITS, b"\0"))


# --- reading -------------------------------------------------------------------------------------


def parsed(data: bytes, at: int) -> Stored | None:
    """Return the message at a place of some bytes, if it is whole and its checksum right."""
    if at + 91 > len(data):
        return None
    size, magic, crc, queue, _, number, offset, flags = struct.unpack_from(">iIiiiqqi", data, at)
    end = at + size
    if magic not in (MAGIC, MAGIC_V2) or size < 91 or end > len(data):
        return None
    place = at + 48 + (20 if flags & 16 else 8) + 8 + (20 if flags & 32 else 8) + 12
    if place + 4 > end:
        return None
    (length,) = struct.unpack_from(">i", data, place)
    body = data[place + 4 : place + 4 + max(length, 0)]
    place += 4 + max(length, 0)
    if place + 2 > end or (length > 0 and zlib.crc32(body) & 0x7FFFFFFF != crc):
        return None
    layout = ">h" if magic == MAGIC_V2 else ">b"
    (length,) = struct.unpack_from(layout, data, place)
    place += struct.calcsize(layout)
    if length < 0 or place + length + 2 > end:
        return None
    topic = data[place : place + length].decode("utf-8", "replace")
    (count,) = struct.unpack_from(">h", data, place + length)
    place += length + 2
    if place + max(count, 0) != end:
        return None
    text = data[place:end].decode("utf-8", "replace")
    known = dict(part.split("\x01", 1) for part in text.split("\x02") if part.find("\x01") > 0)
    keys = [known["UNIQ_KEY"]] if known.get("UNIQ_KEY") else []
    keys += [key for key in known.get("KEYS", "").split(" ") if key]
    raw = bytes(data[at:end])
    return Stored(
        raw, topic, queue, number, flags, offset, body, tuple(keys), known.get("TAGS", "")
    )


def logged(store: Path) -> dict[int, Stored]:
    """Return the messages of a log by the place of each, as a broker reads them in order."""
    found: dict[int, Stored] = {}
    for path in sorted((store / "commitlog").glob("*")):
        data, at = path.read_bytes(), 0
        while (one := parsed(data, at)) is not None:
            found[int(path.name) + at] = one
            at += len(one.raw)
        head = struct.unpack_from(">iI", data.ljust(at + 8, b"\0"), at)
        assert head == (len(data) - at, BLANK) or not any(data[at:]), (path.name, at)
    return found


def queued(store: Path) -> dict[tuple[str, int, int], tuple[int, int, int]]:
    """Return offset, size and tags code of the unit of each topic, queue and number; stand-ins have
    the size of a filler, or those of the next unit."""
    found = {}
    for path in store.glob("consumequeue/*/*/*"):
        data = path.read_bytes()
        for at in range(0, len(data) - 19, 20):
            unit = UNIT.unpack_from(data, at)
            if unit[0] >= 0 and unit[1] > 0:
                number = (int(path.name) + at) // 20
                found[path.parent.parent.name, int(path.parent.name), number] = unit
    return found


def indexed(store: Path) -> set[tuple[int, int]]:
    """Return hash and offset of each entry that a chain of an index leads to."""
    found: set[tuple[int, int]] = set()
    for path in (store / "index").glob("*"):
        data = path.read_bytes()
        for slot in range(SLOTS):
            (entry,) = struct.unpack_from(">i", data, 40 + 4 * slot)
            while entry > 0:
                at = 40 + 4 * SLOTS + 20 * entry
                key_hash, offset, _, entry = struct.unpack_from(">iqii", data, at)
                assert key_hash % SLOTS == slot
                found.add((key_hash, offset))
    return found


# --- damage --------------------------------------------------------------------------------------


def damage(random: Random, drawn: DrawnStore) -> list[str]:
    """Damage the log of a store as disks, broken copies and clocks do; return what was done."""
    folder = drawn.path / "commitlog"
    done = []
    for _ in range(random.choice((1, 1, 2, 4))):
        names = sorted(os.listdir(folder))
        name = random.choice(names)
        data = bytearray((folder / name).read_bytes())
        used = max(1, len(data.rstrip(b"\0")))
        kind = random.choice(KINDS)
        done.append(f"{kind} {name}")
        unit = random.choice((512, 4096))
        one, other = (random.randrange(-(-used // unit)) * unit for _ in range(2))
        if kind == "zeros":
            data[one : one + unit] = bytes(len(data[one : one + unit]))
        elif kind == "garbage":
            start, size = random.randrange(used), random.choice((1, 4, 40, 700))
            room = len(data[start : start + size])
            data[start : start + room] = random.randbytes(room)
        elif kind in ("swap", "copy"):
            size = min(unit, len(data) - max(one, other))
            block = data[one : one + size]
            if kind == "swap":
                data[one : one + size] = data[other : other + size]
            data[other : other + size] = block
        elif kind == "swap files":
            second = random.choice(names)
            os.rename(folder / name, folder / "x")
            if second != name:
                os.rename(folder / second, folder / name)
            os.rename(folder / "x", folder / second)
            continue
        elif kind == "exchange":
            second = random.choice(names)
            if second != name:
                there = bytearray((folder / second).read_bytes())
                size = min(unit, len(data) - one, len(there) - one)
                block = data[one : one + size]
                data[one : one + size] = there[one : one + size]
                there[one : one + size] = block
                (folder / second).write_bytes(there)
        elif kind == "bits":
            for _ in range(random.choice((1, 1, 3))):
                data[random.randrange(used)] ^= 1 << random.randrange(8)
        elif kind == "put in":
            start, count = random.randrange(used), random.choice((1, 8, 100, 512))
            data = (data[:start] + random.randbytes(count) + data[start:])[: len(data)]
        elif kind == "take out":
            start, count = random.randrange(used), random.choice((1, 8, 100, 512))
            data = (data[:start] + data[start + count :]).ljust(len(data), b"\0")
        elif kind == "cut":
            data = data[: random.randrange(used)]
        elif kind == "lost file" and len(names) > 1:
            os.remove(folder / name)
            continue
        elif kind == "clock":
            for place in [at for at in drawn.messages if at // len(data) * len(data) == int(name)]:
                if random.random() < 0.2:
                    at = place - int(name)
                    at += 68 if drawn.messages[place].flags & 16 else 56
                    data[at : at + 8] = struct.pack(">q", random.choice((1, 2**41, 2**50)))
        (folder / name).write_bytes(data)
    return done


KINDS = (
    "zeros", "garbage", "swap", "copy", "swap files", "exchange", "bits", "bits", "put in",
    "take out", "cut", "lost file", "clock",
)  # fmt: skip


CLOCK_STEP_MS = 20 * 366 * 86_400_000
"""A clock that goes back by more is told of an index."""


def _store_time(one: Stored) -> int:
    """Return when a message was stored."""
    at = 68 if one.flags & 16 else 56
    return int.from_bytes(one.raw[at : at + 8], "big", signed=True)


# --- judging -------------------------------------------------------------------------------------


class StoreVerdict(NamedTuple):
    """What was found of one draw."""

    violations: list[str]
    kept: int
    """Messages of the saved store."""
    intact: int
    """Messages that were whole in the damaged one."""


def judge_draw(seed: int, folder: Path) -> StoreVerdict:
    """Draw a store and damage, save it twice, and judge what was saved."""
    random = Random(seed)
    drawn = drawn_store(random, folder / "store")
    done = damage(random, drawn)
    options: dict[str, Any] = {"mapped_file_size": drawn.file_size}
    summaries: list[Summary] = []
    for _ in verify(drawn.path, on_summary=summaries.append):
        pass
    told = salvage_store(drawn.path, folder / "out", **options)
    judge = saved_judge(drawn, told, folder / "out")
    found = judge.all_violations()
    if told.target is not None:
        salvage_store(folder / "out", folder / "again", **options)
        found += judge.changes(folder / "again")
    found += judge.verdict(summaries[0])
    words = "; ".join(done)
    return StoreVerdict(
        [f"seed {seed} ({words}): {each}" for each in found], len(judge.kept), len(judge.intact)
    )


def saved_judge(drawn: DrawnStore, told: SalvagedStore, out: Path) -> "_Judge":
    """Return the judge of a store that was saved to `out`."""
    parts = [path.read_bytes() for path in (drawn.path / "commitlog").iterdir()]
    intact = {
        at: one for at, one in drawn.messages.items() if any(one.raw in part for part in parts)
    }
    return _Judge(drawn, intact, told, out)


class _Judge:
    """One saved store beside the truth."""

    def __init__(
        self, drawn: DrawnStore, intact: dict[int, Stored], told: SalvagedStore, out: Path
    ) -> None:
        self.drawn, self.intact, self.told, self.out = drawn, intact, told, out
        self.violations: list[str] = []
        self.starts: list[int] = []
        self.old: dict[int, bytes] = {}
        """What lies in the damaged log at the place of each message, as long as that."""
        for path in (drawn.path / "commitlog").iterdir():
            start, data = int(path.name), path.read_bytes()
            self.starts.append(start)
            for at, one in drawn.messages.items():
                if start <= at < start + len(data):
                    self.old[at] = data[at - start : at - start + len(one.raw)]
        found = logged(out) if told.target is not None else {}
        self.kept = {at: one for at, one in found.items() if not one.is_filler}

    def say(self, holds: bool, words: str) -> None:
        """Note a violation."""
        if not holds:
            self.violations.append(words)

    def all_violations(self) -> list[str]:
        """Return what is wrong with the saved store, and with what was told of it."""
        if self.told.target is None:
            self.say(not self.intact, "intact messages, and none was saved")
        else:
            self.messages()
            self.queues()
            self.index()
            laws = {one.law for one in verify(self.out, deep=True) if one.is_defect}
            is_odd = self.told.unqueued_messages or self.told.misplaced_messages
            lawful = {"RMQDISK-36", "RMQDISK-37"} if is_odd else set()
            lawful |= {"RMQDISK-14"} if self._has_wrong_clock() else set()
            self.say(laws <= lawful, f"verify: {laws}")
        self.counts()
        return self._taken()

    def _has_wrong_clock(self) -> bool:
        """Return whether three messages in a row have store times that are years before their own:
        so a broker with a wrong clock writes them, and nothing tells that the disk did.

        They are in no intact message. An index of such times tells that the clock stepped back.
        """
        early = [
            at not in self.intact
            and (own := self.drawn.messages.get(at)) is not None
            and _store_time(one) < _store_time(own) - CLOCK_STEP_MS
            for at, one in sorted(self.kept.items())
        ]
        return any(all(early[at : at + 3]) for at in range(len(early) - 2))

    def _taken(self) -> list[str]:
        found, self.violations = self.violations, []
        return found

    def messages(self) -> None:
        """No intact message is lost or changed, none made up, none there twice."""
        for at, one in self.intact.items():
            kept, is_there = self.kept.get(at), self.old.get(at) == one.raw
            # Nothing but its neighbours tells where a rolled back message belongs.
            is_told = is_there or one.flags & 12 != 12
            self.say(kept is not None or not is_told, f"the intact message at {at} is lost")
            is_same = kept is None or kept.raw == one.raw
            # A whole copy elsewhere does not count, where its own place has the body too.
            is_same |= kept is not None and not is_there and kept.body == one.body
            self.say(is_same, f"the intact one at {at} is another one")
        made_up = 0
        for at, one in self.kept.items():
            own = self.drawn.messages.get(at)
            self.say(one.offset == at, f"the message at {at} says {one.offset}")
            made_up += own is None or own.body != one.body
        self.say(made_up <= self.told.misplaced_messages, f"{made_up} messages are made up")
        bodies = Counter(one.body[:7] for one in self.kept.values())
        twice = sum(count - 1 for count in bodies.values())
        self.say(twice <= self.told.misplaced_messages, f"{twice} messages are there twice")

    def queues(self) -> None:
        """Each intact message has its number, and each unit leads to the message of its place."""
        units = queued(self.out)
        for at, one in self.intact.items():
            if one.is_queued:
                unit = units.get((one.topic, one.queue, one.number))
                code = java_hash(one.tags) if one.tags else 0
                self.say(unit == (at, len(one.raw), code), f"the number of {at} has {unit}")
        for (topic, queue, number), unit in units.items():
            following = units.get((topic, queue, number + 1))
            if unit[1] == FILLER_SIZE or unit == following:
                continue
            kept = self.kept.get(unit[0])
            is_own = kept is not None and (
                (kept.topic, kept.queue, kept.number, len(kept.raw))
                == (topic, queue, number, unit[1])
            )
            self.say(is_own, f"unit {number} of {topic} {queue} leads to {unit[0]}")

    def index(self) -> None:
        """Each key of each kept message has an entry."""
        found = indexed(self.out)
        for at, one in self.kept.items():
            for key in one.keys if one.flags & 12 != 12 else ():
                value = abs(java_hash(f"{one.topic}#{key}"))
                self.say((value, at) in found, f"no entry of {key} of the message at {at}")

    def changes(self, again: Path) -> list[str]:
        """Return what a second salvage has changed."""
        for part in ("commitlog", "consumequeue", "index"):
            one, two = (
                [path.read_bytes() for path in sorted((store / part).rglob("*")) if path.is_file()]
                for store in (self.out, again)
            )
            self.say(one == two, f"a second salvage changes {part}")
        return self._taken()

    @property
    def lost(self) -> int:
        """How many messages are not there any more, without those before the first file of the log.

        A broker removes its oldest files itself: so nothing tells that these are lost. A message of
        an earlier file that was found in another one, and kept, tells of its file, whole.
        """
        size = self.drawn.file_size
        first = min([*self.starts, *(at - at % size for at in self.kept)], default=0)
        own = [at for at, one in self.kept.items() if at in self.drawn.messages]
        own = [at for at in own if self.drawn.messages[at].body == self.kept[at].body]
        return sum(at >= first for at in self.drawn.messages) - len(own) - self._untold

    @property
    def _untold(self) -> int:
        """How many last messages nothing can tell of: no queue, no key, and no later time."""
        known = max((_store_time(one) for one in self.kept.values()), default=-1)
        end, count = max(self.kept, default=-1), 0
        for at in sorted(self.drawn.messages, reverse=True):
            one = self.drawn.messages[at]
            has_key = bool(one.keys) and one.flags & 12 != 12
            if at <= end or one.is_queued or has_key or _store_time(one) > known:
                break
            count += 1
        return count

    def counts(self) -> None:
        """The counts are true."""
        told, lost = self.told, self.lost
        self.say(told.messages == len(self.kept), f"{told.messages} of {len(self.kept)} are told")
        known = told.lost_messages or 0
        self.say(known <= lost, f"{known} are told lost, and {lost} are")
        if told.is_lost_exact:
            self.say(known == lost, f"exactly {known} are told lost, and {lost} are")
        self.say(not told.is_whole or not lost, f"everything is kept, and {lost} are lost")

    def verdict(self, summary: Summary) -> list[str]:
        """Return what `verify` told wrong of the damaged store."""
        lost, at_least = self.lost, summary.lost_at_least
        self.say(at_least <= lost, f"verify tells {at_least} lost, and {lost} are")
        if summary.lost_offsets:
            is_true = summary.lost_offsets == lost
            self.say(is_true, f"verify tells {summary.lost_offsets} lost, and {lost} are")
        return self._taken()
