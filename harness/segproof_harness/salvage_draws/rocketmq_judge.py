# SPDX-License-Identifier: Apache-2.0
"""The judge of a saved store: what is in its files, beside what was there before the damage.

It reads files with `rocketmq_reader` alone. A message is known by its body, which begins with a
number of its own; of another store's messages the bodies are known too.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from segproof_harness.salvage_draws.kafka_judge import CLOCKS_APART_MS, UNKNOWN
from segproof_harness.salvage_draws.rocketmq_reader import (
    FILLER_SIZE,
    ROLLED_BACK,
    Stored,
    indexed,
    java_hash,
    logged,
    scanned,
    units_in,
)
from segproof_harness.salvage_draws.rocketmq_stores import ENTRIES, SLOTS, DrawnStore
from segproof_harness.salvage_draws.verdict import Kept, Told, Verdict

INDEX_FILE_BYTES = 40 + 4 * SLOTS + 20 * ENTRIES


@dataclass(frozen=True)
class Found:
    """A whole message in a damaged log."""

    place: int
    """The offset that its place has by the name of the file."""
    message: Stored


class StoreInput:
    """A damaged store, and the facts in it that distinguish its own messages from others.

    The first of these facts that contradicts a message where it lies in the damaged log shows that
    it is of another store:

    - offset: the message states another offset than that of its place;
    - number: a whole message of its queue has its number, or numbers do not rise over it;
    - queue: the unit of its number leads elsewhere, or another unit leads to it; if nothing of this
      store is left in place, the queues may be another store's as well;
    - host: another broker stored it than all of this store's;
    - time: it was stored before the message before it, or after the one after it, by more than
      CLOCKS_APART_MS.
    """

    def __init__(self, sound: DrawnStore, files: Mapping[str, bytes], foreign: bytes = b"") -> None:
        self.file_size, self.truth = sound.file_size, sound.messages
        self.by_body = {one.body: at for at, one in self.truth.items()}
        self.foreign = {one.body for _, one in scanned(foreign)}
        logs = {int(path[-20:]): files[path] for path in files if path.startswith("commitlog/")}
        self.starts = sorted(logs)
        self.found = [
            Found(start + at, one) for start in self.starts for at, one in scanned(logs[start])
        ]
        self.raws = {one.message.raw for one in self.found}
        self.units = units_in(files)
        self.in_place = {
            one.place: one.message
            for one in self.found
            if (own := self.truth.get(one.place)) is not None and own.raw == one.message.raw
        }

    def telling_fact(self, message: Stored) -> str:
        """Return the fact that speaks against a message of an output; empty if none does."""
        facts = [self._fact(one) for one in self.found if one.message.body == message.body]
        return min(facts, key=bool) if facts else UNKNOWN

    def _fact(self, one: Found) -> str:
        message, place = one.message, one.place
        if message.offset != place:
            return "offset"
        key = (message.topic, message.queue)
        same = [(at, own.number) for at, own in self.in_place.items()
                if (own.topic, own.queue) == key and own.is_queued]  # fmt: skip
        if message.is_queued and any((at < place) != (n < message.number) for at, n in same):
            return "number"
        unit = self.units.get((*key, message.number))
        leads = [each for each in self.units.values() if each[0] == place]
        if not self.in_place:
            return ""
        if (message.is_queued and unit and unit[0] != place) or (leads and unit not in leads):
            return "queue"
        hosts = {own.store_host for own in self.in_place.values()}
        if hosts and message.store_host not in hosts:
            return "host"
        before = [own.store_time for at, own in self.in_place.items() if at < place]
        after = [own.store_time for at, own in self.in_place.items() if at > place]
        time = message.store_time
        is_early = before and time < before[-1] - CLOCKS_APART_MS
        return "time" if is_early or (after and time > after[0] + CLOCKS_APART_MS) else ""


def judge_store(given: StoreInput, out: Path, told: Told | None, verdict: Verdict) -> None:
    """Count what became of the messages, into the verdict."""
    found, is_lawful = logged(out)
    kept = {at: one for at, one in found.items() if not one.is_filler}
    counts = verdict.counts
    counts["unframed"] += not is_lawful
    for at, one in kept.items():
        _count_kept(given, at, one, kept, verdict)
    bodies = Counter(one.body for one in kept.values())
    counts["twice"] += sum(bodies.values()) - len(bodies)
    _count_truth(given, kept, out, verdict)
    _count_queues(given, kept, out, verdict)
    _count_index(kept, out, verdict)
    lost = [at for at in given.truth if at not in kept or given.truth[at].body != kept[at].body]
    lost = [at for at in lost if given.truth[at].body not in bodies]
    counts["lost messages"] = len(lost)
    if told is not None:
        word = _told(given, kept, lost, told)
        # What no fact tells apart may lead anywhere: then no count is too high.
        counts["told at least" if verdict.untold and word == "told too many" else word] += 1


def _count_kept(
    given: StoreInput, at: int, one: Stored, kept: dict[int, Stored], verdict: Verdict
) -> None:
    """Count a message of the new log as what it is.

    No checksum covers the header of a message, nor its topic, tags and keys. So one with the right
    body at its place may differ: it is not a fault unless it lay there as it was written.
    """
    own, place = given.truth.get(at), given.by_body.get(one.body)
    if one.offset != at:
        verdict.counts["wrong offset"] += 1
    elif own is not None and own.raw == one.raw:
        verdict.counts["right"] += 1
    elif own is not None and own.body == one.body:
        verdict.counts["changed" if at in given.in_place else "header differs"] += 1
    elif place is not None:
        # Its place is known if some copy of it lies there, or says it.
        copies = [each for each in given.found if each.message.body == one.body]
        is_told = any(place in (each.place, each.message.offset) for each in copies)
        verdict.counts["wrong offset" if is_told else "wrong offset, no fact tells"] += 1
        fact = "its place is known" if is_told else ""
        told = Kept("commitlog", at, one.number, place, fact)
        (verdict.wrong if is_told else verdict.untold).append(told)
    else:
        fact = given.telling_fact(one) if one.body in given.foreign else UNKNOWN
        verdict.counts["made up" if fact else "made up, no fact tells"] += 1
        told = Kept("commitlog", at, one.number, one.offset, fact)
        (verdict.wrong if fact else verdict.untold).append(told)


def _count_truth(given: StoreInput, kept: dict[int, Stored], out: Path, verdict: Verdict) -> None:
    """Count the whole messages of the damaged log that are in no file."""
    bodies = {one.body for one in kept.values()}
    logs = out / "commitlog"
    aside = b"".join(
        path.read_bytes() for path in sorted(out.rglob("*"))
        if path.is_file() and path.parent != logs and path.relative_to(out).parts[0] not in
        ("consumequeue", "index", "config")
    )  # fmt: skip
    for at, one in given.truth.items():
        if one.body in bodies or one.raw not in given.raws:
            continue
        if one.raw in aside:
            verdict.counts["aside"] += 1
        elif one.flags & ROLLED_BACK == ROLLED_BACK and at not in given.in_place:
            # Nothing but its neighbours tells where a rolled back message belongs.
            verdict.counts["rolled back, in no file"] += 1
        else:
            verdict.counts["nowhere"] += 1


def _count_queues(given: StoreInput, kept: dict[int, Stored], out: Path, verdict: Verdict) -> None:
    """Count right messages whose unit is wrong, and units that lead to another message."""
    queues = {str(path.relative_to(out)): path.read_bytes()
              for path in out.glob("consumequeue/*/*/*")}  # fmt: skip
    units = units_in(queues)
    for at, one in kept.items():
        own = given.truth.get(at)
        if own is not None and own.raw == one.raw and own.is_queued:
            code = java_hash(own.tags) if own.tags else 0
            unit = units.get((own.topic, own.queue, own.number))
            verdict.counts["wrong number"] += unit != (at, len(own.raw), code)
    for (topic, queue, number), unit in units.items():
        if unit[1] == FILLER_SIZE or unit == units.get((topic, queue, number + 1)):
            continue
        led = kept.get(unit[0])
        is_own = led is not None and (led.topic, led.queue, led.number, len(led.raw)) == (
            topic, queue, number, unit[1]
        )  # fmt: skip
        verdict.counts["wrong unit"] += not is_own


def _count_index(kept: dict[int, Stored], out: Path, verdict: Verdict) -> None:
    """Count the keys that have no entry. If the index has another geometry, no key has one."""
    entries = set[tuple[int, int]]()
    for path in (out / "index").glob("*"):
        if path.stat().st_size == INDEX_FILE_BYTES:
            entries |= set(indexed(path.read_bytes(), SLOTS))
    for at, one in kept.items():
        for key in one.keys if one.flags & ROLLED_BACK != ROLLED_BACK else ():
            value = abs(java_hash(f"{one.topic}#{key}"))
            verdict.counts["not indexed"] += (value, at) not in entries


# --- what was told


def _told(given: StoreInput, kept: dict[int, Stored], lost: list[int], told: Told) -> str:
    """Return whether the count of lost messages is exact, at least, or wrong.

    Nothing tells of messages before the first file, which a broker removes itself when they have
    expired; and of the last ones, if no queue, no key and no later time leads to them.
    """
    if told.lost > len(lost):
        return "told too many"
    size = given.file_size
    first = min([*given.starts, *(at - at % size for at in kept)], default=0)
    sure = sum(at >= first for at in lost) - _untold(given, kept)
    upper = told.lost if told.is_exact else told.at_most
    if upper is not None and upper < sure:
        return "told too few"
    return "told exactly" if told.is_exact else "told at least"


def _untold(given: StoreInput, kept: dict[int, Stored]) -> int:
    """Return how many of the last messages nothing tells of."""
    known = max((one.store_time for one in kept.values()), default=-1)
    end, count = max(kept, default=-1), 0
    led = {unit[0] for unit in given.units.values()}
    for at in sorted(given.truth, reverse=True):
        one = given.truth[at]
        has_key = bool(one.keys) and one.flags & ROLLED_BACK != ROLLED_BACK
        if at <= end or at in led or has_key or one.store_time > known:
            break
        count += 1
    return count
