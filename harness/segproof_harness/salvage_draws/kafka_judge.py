# SPDX-License-Identifier: Apache-2.0
"""The judge of a saved partition: what is in its files, beside what was there before the damage.

It reads files with `kafka_reader` alone. A batch is known by its content, which its checksum
covers; of another topic's batches the contents are known too. So nothing depends on a rule of a
salvage.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from segproof_harness.salvage_draws.disk_damages import Damaged
from segproof_harness.salvage_draws.kafka_partitions import Partition, Truth
from segproof_harness.salvage_draws.kafka_reader import (
    SIZE_AND_OFFSET_BYTES,
    Batch,
    framed,
    index_entries,
    is_sound,
    read_batch,
)
from segproof_harness.salvage_draws.verdict import Kept, Told, Verdict

CLOCKS_APART_MS = 60_000
"""A timestamp may fall by less than this and tell nothing: the clocks of brokers differ."""
UNKNOWN = "in no source"
"""What speaks against a batch whose content was nowhere before the damage."""
LEFT_OUT_MIN = 64
"""Offsets that are missing between two batches that touch, if that tells of a wrong offset. Fewer
tell nothing: an earlier salvage leaves such gaps."""
SEARCHED_BYTES = 24
"""A content is looked for by this many of its bytes first, which is faster for large batches."""


class Place(NamedTuple):
    """A whole batch in a damaged log, or in a new one."""

    number: int
    """The index of the file."""
    first: int
    """The first offset by what the header says and by how many offsets the content has."""
    batch: Batch
    is_foreign: bool
    is_own: bool
    """Whether its offset is the one that it had before the damage."""

    @property
    def last(self) -> int:
        """Return the last offset."""
        return self.batch.last


class Contents:
    """The contents of all batches of a partition and of the other topic."""

    def __init__(self, partition: Partition, foreign: bytes) -> None:
        self.own: dict[bytes, list[Truth]] = {}
        for one in partition.truth:
            self.own.setdefault(one.content, []).append(one)
        self.foreign: dict[bytes, int] = {}
        """How many offsets are before the last one of each batch of the other topic."""
        reached = None
        for batch in framed(foreign):
            first = batch.offset
            if batch.is_wrapper:
                first = batch.offset if reached is None else reached + 1
            if batch.content not in self.own:
                self.foreign[batch.content] = batch.last - first
            reached = batch.last

    def place(self, number: int, batch: Batch) -> Place | None:
        """Return a batch with what is known of it; None if its content is unknown."""
        owners = self.own.get(batch.content)
        if owners is not None:
            span = owners[0].last - owners[0].first
            is_own = any(one.batch.offset == batch.offset for one in owners)
            return Place(number, batch.last - span, batch, False, is_own)
        if batch.content in self.foreign:
            return Place(number, batch.last - self.foreign[batch.content], batch, True, False)
        return None


def places_of(files: list[bytes], contents: Contents) -> list[Place]:
    """Return each known batch that is whole in some files, wherever it begins, in reading order.

    A batch within the content of another one is a part of that one, and is left out.
    """
    found = []
    for number, data in enumerate(files):
        own = [
            place
            for content in (*contents.own, *contents.foreign)
            for batch in _found(data, content)
            if (place := contents.place(number, batch)) is not None
        ]
        own.sort(key=lambda place: (place.batch.position, -place.batch.size))
        end = 0
        for place in own:
            if place.batch.position >= end:
                found.append(place)
                end = place.batch.end
    return found


def _found(data: bytes, content: bytes) -> Iterator[Batch]:
    """Yield the batches in a file that have a content, with the magic and the size that fit it."""
    lead = content[:SEARCHED_BYTES]
    at = data.find(lead)
    while at >= 0:
        for header in (17, SIZE_AND_OFFSET_BYTES):
            if at >= header and data.startswith(content, at):
                batch = read_batch(data, at - header)
                if batch is not None and batch.content == content:
                    yield batch
        at = data.find(lead, at + 1)


class Input:
    """A damaged partition, and the facts in it that tell its own batches from those of others.

    A batch is of another topic, or has a wrong offset, if one of these facts contradicts it where
    it lies in the damaged partition. The first one that does is named:

    - offset taken: a batch of the partition that is in its place has one of its offsets; one that
      was moved away itself tells of no place;
    - order: a whole batch before it has later offsets, or one after it has earlier ones;
    - room: more offsets are missing before or after it than bytes are there, LEFT_OUT_MIN at least
      if no byte is, and records have no key: a topic with keys may be compacted, and then it
      leaves offsets out, even if it left none out before the damage;
    - magic: its format is older than before it, or newer than after it; an upgrade explains others;
    - leader epoch: it is lower than before it, or higher than after it; neighbours whose own epoch
      is damaged tell nothing;
    - producer: a batch of the same producer has a sequence that contradicts;
    - time: it is earlier than the batch before it, or later than the one after it, by more than
      CLOCKS_APART_MS and by more than times go back elsewhere in this partition, and brokers wrote
      both times: a client may state any time;
    - index: an entry says another offset for its position. A greater one that differs in one bit
      tells nothing: the entry may be damaged as well as the batch.

    Its neighbours are batches of the longest row of rising offsets that the partition still has.
    """

    def __init__(self, partition: Partition, damaged: Damaged, others: Mapping[str, bytes]) -> None:
        self.partition, self.damaged = partition, damaged
        self.contents = Contents(partition, damaged.foreign)
        files = [bytes(one) for one in damaged.files]
        order = _by_contents(damaged.names, places_of(files, self.contents))
        self.files = [files[number] for number in order]
        self.names = [damaged.names[number] for number in order]
        self.places = places_of(self.files, self.contents)
        self.own = [place for place in self.places if place.is_own]
        self.row = _longest_rising(self.own)
        self._indexed = self._entries(others)
        times = [place.batch.timestamp for place in self.row]
        self._back_ms = max([CLOCKS_APART_MS, *(one - two for one, two in pairwise(times))])

    def _entries(self, others: Mapping[str, bytes]) -> dict[tuple[int, int], int]:
        """Return the offsets that indexes say, by file and position, where all agree with a log."""
        found = {}
        for number, name in enumerate(self.names):
            index = others.get(name[:20] + ".index", b"")
            entries = {at: offset for offset, at in index_entries(index, int(name[:20]))}
            own = {place.batch.position: place.last for place in self.own if place.number == number}
            if all(own.get(at, offset) == offset for at, offset in entries.items()):
                found.update({(number, at): offset for at, offset in entries.items()})
        return found

    @property
    def indexed_offsets(self) -> list[int]:
        """The offsets that indexes say."""
        return list(self._indexed.values())

    @cached_property
    def is_dense(self) -> bool:
        """Whether the partition had no gap before the damage."""
        return self.partition.is_dense

    def telling_fact(self, batch: Batch) -> str:
        """Return the fact that speaks against a batch of an output; empty if none does.

        It is what speaks against it where the batch was in the damaged partition, with this offset.
        If it was at several places, one without such a fact is enough.
        """
        facts = [
            self._fact(place)
            for place in self.places
            if (place.batch.content, place.batch.offset) == (batch.content, batch.offset)
        ]
        facts = facts or [*map(self._fact, self._behind_wrong_sizes(batch))]
        return min(facts, key=bool) if facts else "offset not in the input"

    def _behind_wrong_sizes(self, batch: Batch) -> Iterator[Place]:
        """Yield the places where a batch lies whole with its offset, but for its size or magic."""
        header = batch.size - len(batch.content)
        for number, data in enumerate(self.files):
            at = data.find(batch.content) - header
            if at >= 0 and data.startswith(batch.offset.to_bytes(8, signed=True), at):
                place = self.contents.place(number, batch._replace(position=at))
                yield from () if place is None else (place,)

    def _is_epoch_right(self, place: Place) -> bool:
        own = self.contents.own[place.batch.content]
        return any(one.batch.leader_epoch == place.batch.leader_epoch for one in own)

    def _fact(self, place: Place) -> str:
        before = [one for one in self.row if _key(one) < _key(place)]
        after = [one for one in self.row if _key(one) > _key(place)]
        one = before[-1] if before else None
        two = after[0] if after else None
        if any(place.first <= own.last and own.first <= place.last for own in self.row):
            return "offset taken"
        if (one and one.last >= place.first) or (two and two.first <= place.last):
            return "order"
        told = self._indexed.get((place.number, place.batch.position))
        if told is not None and told != place.last:
            is_even = told > place.last and (told ^ place.last).bit_count() == 1
            if not is_even:
                return "index"
        earlier = next(filter(self._is_epoch_right, reversed(before)), None)
        later = next(filter(self._is_epoch_right, after), None)
        facts = {
            "room": self.is_dense
            and not self.partition.is_compacted
            and (_lacks_room(one, place) or _lacks_room(place, two)),
            "magic": _is_older(place, one) or _is_older(two, place),
            "leader epoch": _falls(earlier, place) or _falls(place, later),
            "producer": self._is_out_of_sequence(place),
            "time": self._goes_back(one, place) or self._goes_back(place, two),
        }
        return next((name for name, speaks in facts.items() if speaks), "")

    def _goes_back(self, one: Place | None, two: Place | None) -> bool:
        if one is None or two is None or min(one.batch.timestamp, two.batch.timestamp) < 0:
            return False
        if not (one.batch.is_broker_time and two.batch.is_broker_time):
            return False
        return one.batch.timestamp - two.batch.timestamp > self._back_ms

    def _is_out_of_sequence(self, place: Place) -> bool:
        """Return whether sequences of its producer do not rise over this batch."""
        ident = (place.batch.producer_id, place.batch.producer_epoch)
        if place.batch.producer_id < 0 or place.batch.base_sequence < 0:
            return False
        same = [one for one in self.own
                if (one.batch.producer_id, one.batch.producer_epoch) == ident
                and one.batch.base_sequence >= 0]  # fmt: skip
        return any(
            (one.last < place.first) != (one.batch.base_sequence < place.batch.base_sequence)
            for one in same
        )


def _by_contents(names: list[str], places: list[Place]) -> list[int]:
    """Return the indexes of the files in the order of their contents; the names may be swapped."""
    middles = [int(name[:20]) for name in names]
    for number in range(len(names)):
        own = sorted(one.first for one in places if one.number == number and one.is_own)
        if own:
            middles[number] = own[len(own) // 2]
    return sorted(range(len(names)), key=lambda number: middles[number])


def _longest_rising(places: list[Place]) -> list[Place]:
    """Return the longest row of places whose offsets rise."""
    lasts: list[int] = []
    rows: list[list[Place]] = []
    for place in places:
        at = bisect_left(lasts, place.first)
        if at and lasts[at - 1] >= place.first:
            continue
        row = [*(rows[at - 1] if at else ()), place]
        if at == len(rows) or place.last < lasts[at]:
            lasts[at : at + 1] = [place.last]
            rows[at : at + 1] = [row]
    return rows[-1] if rows else []


def _key(place: Place) -> tuple[int, int]:
    return place.number, place.batch.position


def _lacks_room(one: Place | None, two: Place | None) -> bool:
    """Return whether more offsets are missing between two batches of a file than bytes."""
    if one is None or two is None or one.number != two.number:
        return False
    missing, room = two.first - one.last - 1, two.batch.position - one.batch.end
    return missing > room if room else missing >= LEFT_OUT_MIN


def _is_older(two: Place | None, one: Place | None) -> bool:
    """Return whether a batch has an older format than one before it."""
    return one is not None and two is not None and two.batch.magic < one.batch.magic


def _falls(one: Place | None, two: Place | None) -> bool:
    if one is None or two is None or min(one.batch.leader_epoch, two.batch.leader_epoch) < 0:
        return False
    return one.batch.leader_epoch > two.batch.leader_epoch


# --- the output


@dataclass
class Output:
    """What a salvage wrote."""

    logs: dict[str, bytes]
    aside: bytes
    """All other files, one after another."""


def read_output(folder: Path) -> Output:
    """Return the logs of the partition below a directory, and all else that is there."""
    found = Output({}, b"")
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.suffix == ".log" and path.stem.isdigit():
            found.logs[path.name] = path.read_bytes()
        else:
            found.aside += path.read_bytes()
    return found


def judge_partition(given: Input, output: Output, told: Told | None, verdict: Verdict) -> None:
    """Count what became of the batches, into the verdict."""
    counts, kept = verdict.counts, Counter[tuple[bytes, int]]()
    reached = -1
    for name, data in output.logs.items():
        end = 0
        for batch in framed(data):
            end = batch.end
            place = given.contents.place(0, batch)
            first = batch.offset if place is None else place.first
            counts["falling"] += first <= reached
            counts["below its name"] += first < int(name[:20])
            reached = max(reached, batch.last)
            kept[batch.content, batch.offset] += 1
            _count_kept(given, batch, place, name, verdict)
        counts["unframed"] += end != len(data)
    known = Counter((one.content, one.batch.offset) for one in given.partition.truth)
    counts["twice"] += sum(max(0, count - known.get(one, 1)) for one, count in kept.items())
    _count_truth(given, output, kept, verdict)
    counts["lost offsets"] = _lost(given, kept)
    if told is not None:
        untold = [(one.first, one.last) for one in verdict.untold]
        counts[_told(given, kept, untold, told)] += 1


def _count_kept(
    given: Input, batch: Batch, place: Place | None, name: str, verdict: Verdict
) -> None:
    """Count one batch of a new log as what it is.

    A compressed message of magic 0 or 1 has whole messages inside. After damage to the first bytes
    of it one of these may be found, at its own offset; that is not made up.
    """
    if place is not None and place.is_own:
        return
    if place is None:
        around = [one for one in given.partition.truth if batch.content in one.content]
        is_inner = any(one.first <= batch.offset <= one.last for one in around)
        kind = "message of a broken batch" if is_inner else "made up"
        fact = "" if is_inner else "message of a broken batch" if around else UNKNOWN
        found = Kept(name, batch.position, batch.offset, batch.last, fact)
        verdict.counts[kind if is_sound(batch) else "unsound"] += 1
        (verdict.untold if is_inner else verdict.wrong).append(found)
        return
    fact = given.telling_fact(batch)
    kind = "made up" if place.is_foreign else "wrong offset"
    verdict.counts[kind if fact else f"{kind}, no fact tells"] += 1
    found = Kept(name, batch.position, place.first, batch.last, fact)
    (verdict.wrong if fact else verdict.untold).append(found)


def _count_truth(
    given: Input, output: Output, kept: Counter[tuple[bytes, int]], verdict: Verdict
) -> None:
    """Count the batches that were there before the damage, and the other topic's that are whole."""
    there = {place.batch.content for place in given.places}
    in_logs = {content for content, _ in kept}
    for one in given.partition.truth:
        if (one.content, one.batch.offset) in kept:
            verdict.counts["right"] += 1
        elif one.content in in_logs:
            verdict.counts["elsewhere"] += 1
        elif one.content in there:
            verdict.counts["aside" if one.content in output.aside else "nowhere"] += 1
        else:
            verdict.counts["broken"] += 1
    for content in {place.batch.content for place in given.places if place.is_foreign}:
        if content not in in_logs and content not in output.aside:
            verdict.counts["foreign, in no file"] += 1


# --- what was told


def _lost(given: Input, kept: Counter[tuple[bytes, int]]) -> int:
    """Return how many offsets were in a batch that is not kept."""
    truth = given.partition.truth
    lost = [one for one in truth if (one.content, one.batch.offset) not in kept]
    return sum(one.last - one.first + 1 for one in lost)


def _told(
    given: Input, kept: Counter[tuple[bytes, int]], untold: list[tuple[int, int]], told: Told
) -> str:
    """Return whether the count of lost offsets is `exact`, `at least`, or wrong.

    What is kept though no fact tells it apart may say any offset, so then no count is too high.
    Nothing tells of some lost offsets: those before the first and after the last trace of the
    partition, if its last log ends with a whole batch, or with zeros after it; those of kept
    batches that no fact tells apart; and in a compacted topic any that compaction may have taken.
    """
    truth = given.partition.truth
    lost = [one for one in truth if (one.content, one.batch.offset) not in kept]
    begin, end = _traces(given)
    sure = sum(
        one.last - one.first + 1
        for one in lost
        if begin <= one.first and one.last <= end and not _overlaps(one, untold)
    )
    most = _lost(given, kept)
    if not given.is_dense:
        present = sum(one.last - one.first + 1 for one in truth) - most
        most = truth[-1].last - min(begin, *given.partition.logs) + 1 - present
    if told.lost > most and not untold:
        return "told too many"
    upper = told.lost if told.is_exact else told.at_most
    if upper is not None and upper < sure:
        return "told too few"
    return "told exactly" if told.is_exact else "told at least"


def _overlaps(one: Truth, ranges: list[tuple[int, int]]) -> bool:
    return any(one.first <= last and first <= one.last for first, last in ranges)


def _traces(given: Input) -> tuple[int, int]:
    """Return the first and last offset that the damaged partition surely has a trace of."""
    truth = given.partition.truth
    firsts = [int(name[:20]) for name in given.names] + [place.first for place in given.own]
    begin = min(firsts)
    last = max(given.own, key=lambda place: place.last, default=None)
    rest = given.files if last is None else [given.files[last.number][last.batch.end :]]
    if any(one.strip(b"\0") for one in rest):
        return begin, truth[-1].last
    if last is None:
        return begin, max([begin - 1, *given.indexed_offsets])
    return begin, max([last.last, *given.indexed_offsets])
