# SPDX-License-Identifier: Apache-2.0
"""Hold plain records against the older model where they are damaged: inside of compressed blocks
and of wrappers, in sizes near 2^31, in files shorter than believed, in slices far outside.

    python -m segproof_harness.plain.records_damaged [--seeds 300] [--release NAME ...] [--alone]
        [--laws]
"""

import argparse
import random
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from segproof_harness.codecs import CODECS as OLD_CODECS
from segproof_harness.outcomes import normalise
from segproof_harness.plain.batches import (
    CODECS,
    field_of,
    read_of,
    read_of_old,
    until_refused,
)
from segproof_harness.plain.record_file import PLACE, place, shown
from segproof_harness.plain.records_alone import FLAGS
from segproof_model.directory import Directory
from segproof_model.kafka import record_batch as old_batches
from segproof_model.kafka import record_file as old
from segproof_model.kafka.format.batch_writing import HeaderToWrite
from segproof_model.kafka.format.compression import crc32, crc32c, deflate
from segproof_model.kafka.format.legacy_record import encode_message
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record, RecordHeader, encode_record
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import frozen, outcome_of
from segproof_model.laws.kafka.format.record_file import scan_of
from segproof_model.laws.register import Transition, broken_state_laws, broken_step_laws
from segproof_model.profiles import NEWEST_KAFKA, Profile, profile_named
from segproof_model.releases import BEHAVIOURS, KAFKA, RELEASES
from segproof_model.releases import NEWEST_KAFKA as NEWEST

NUMBERS = (0, 1, 2, 13, 14, 16, 17, 18, 60, 61, 62, 100, 2**30, INT32_MAX - 12, INT32_MAX)


class Draw(random.Random):
    """What is drawn of one seed."""

    def near(self, *more: int) -> int:
        """Return a number at a border, or beside one."""
        return self.choice((*NUMBERS, *more)) + self.choice((0, 0, 1, -1, -12, 5))

    def damaged(self, data: bytes) -> bytes:
        """Return data with a byte changed, cut, or longer; often as it is."""
        kind = self.randrange(6)
        place = self.randrange(len(data) + 1)
        if kind == 0 and data:
            return data[: place - 1] + self.randbytes(1) + data[place:] if place else data
        if kind == 1:
            return data[:place]
        if kind == 2:
            return data + self.randbytes(self.randrange(1, 4))
        if kind == 3:
            return data[:place] + b"\xff" * self.randrange(6) + data[place:]
        return data

    def record(self, offset: int) -> Record:
        """Return a record."""
        header = RecordHeader("h", self.choice((None, b"", b"x")))
        key, value = self.choice((None, b"", b"key")), self.choice((None, b"value" * 3))
        return Record(offset, self.randrange(-1, 99), key, value, (header,) * self.randrange(3))

    def block(self) -> tuple[int, bytes]:
        """Return how many records, and their bytes."""
        count = self.randrange(4)
        body = b"".join(
            self.damaged(encode_record(self.record(number), 0, 0))
            if self.randrange(4) == 0
            else encode_record(self.record(number), 0, 0)
            for number in range(count)
        )
        return self.choice((count, count, count, 0, 1, -1, 3)), self.damaged(body)

    def default_batch(self) -> bytes:
        """Return a batch of magic 2."""
        codec = self.choice((0, 0, 1, 2, 3, 4))
        count, body = self.block()
        stored = body if codec == 0 else self.damaged(deflate(codec, body, 2, CODECS))
        header = HeaderToWrite(
            base_offset=self.choice((0, 5, 2**40, -3, 2**63 - 1)),
            last_offset=self.choice((5, 9)),
            base_timestamp=self.choice((0, 10, -1)),
            max_timestamp=self.choice((0, 20, 2**63 - 1)),
            timestamp_type=self.choice(("CreateTime", "LogAppendTime")),
            producer_id=self.randrange(-1, 3),
            base_sequence=self.choice((-1, 0, INT32_MAX, INT32_MAX - 1)),
            partition_leader_epoch=self.randrange(-1, 3),
            is_control=self.random() < 0.1,
        )
        return header.to_bytes(codec if self.randrange(9) else self.randrange(8), count, stored)

    def message(self, offset: int, magic: int) -> bytes:
        """Return a message."""
        attributes = self.choice((0, 0, 8, self.randrange(16)))
        _, timestamp, key, value, *_ = self.record(0)
        return encode_message(magic, offset, timestamp, attributes, key, value)

    def legacy_batch(self) -> bytes:
        """Return a message, mostly one around others."""
        magic, codec = self.randrange(2), self.choice((0, 1, 2, 3, 4, 5))
        inner = b"".join(
            self.message(self.choice((number, number, 2**40)), self.choice((magic,) * 5 + (0, 1)))
            for number in range(self.randrange(4))
        )
        if self.randrange(3) == 0:
            inner = self.damaged(inner)
        value = inner if codec in (0, 5) else deflate(codec, inner, magic, CODECS)
        value = self.damaged(value) if self.randrange(5) == 0 else value
        offset = self.choice((0, 1, 2, 3, 2**40, 2**63 - 1, -1))
        attributes = codec + self.choice((0, 0, 8))
        timestamp = self.choice((0, 7, -1))
        whole = encode_message(
            magic, offset, timestamp, attributes, None, self.choice((value,) * 7 + (None,))
        )
        return whole if self.randrange(9) else whole[:16] + self.randbytes(1) + whole[17:]

    def batch(self) -> bytes:
        """Return a batch, its checksum right or wrong, its size mostly right."""
        data = self.choice((self.default_batch, self.legacy_batch))()
        kind = self.randrange(12)
        if kind == 0:
            data = self.damaged(data)
        if kind == 1:
            data = data[:16] + bytes([self.choice((0, 1, 2, 3, 127, 128, 255))]) + data[17:]
        if kind == 2:
            data = data[:8] + (self.near() % 2**32).to_bytes(4, "big") + data[12:]
        if kind == 3:
            data = data[: max(26, self.randrange(len(data)))]
            data = data[:8] + (len(data) - 12).to_bytes(4, "big") + data[12:]
        if self.randrange(3) == 0 and len(data) > 21:
            crc = crc32c(data[21:]) if data[16] == 2 else crc32(data[16:])
            at = 17 if data[16] == 2 else 12
            data = data[:at] + crc.to_bytes(4, "big") + data[at + 4 :]
        return data


def answer_of_old(found: Any) -> Any:
    """Return an answer of the older model, or its kind of error."""
    return ("error", str(found.kind)) if isinstance(found, Raised) else normalise(found)


def answer_of(ask: Any) -> Any:
    """Return an answer of the plain model, or its kind of error."""
    return answer_of_old(outcome_of(ask))


def scan_of_old(scan: Any) -> Any:
    """Return where the batches of a scan of the older model are."""
    places = tuple(
        tuple(answer_of_old(getattr(one, name)) for name in PLACE) for one in scan.batches
    )
    return places, None if scan.error is None else str(scan.error.kind)


def shown_old(view: Any) -> Any:
    """Return what a slice of the older model holds."""
    content = answer_of_old(view.read()) if view.is_open else None
    return view.start, view.size_in_bytes(), content, scan_of_old(view.batches())


def in_memory(draw: Draw, release: Release, profile: Profile) -> Iterator[tuple[str, Any, Any]]:
    """Yield what both models make of records in memory."""
    data = draw.batch()
    if len(data) >= 17:
        kind = type(MemoryRecords(data).batch_of(data, 0, len(data), in_file=False))
        one = old_batches.RecordBatch(data, 0, len(data), codecs=OLD_CODECS, profile=profile)
        plain = release.kind(kind)(data, 0, len(data), codecs=CODECS)
        yield "batch", read_of_old(one), read_of(plain)
    data = draw.damaged(b"".join(draw.batch() for _ in range(draw.randrange(4))))
    largest = draw.choice((INT32_MAX, INT32_MAX, draw.near()))
    records = release.kind(MemoryRecords)(data, largest, codecs=CODECS)
    scan = old.scan_memory(data, largest, codecs=OLD_CODECS, profile=profile)
    yield "scan in memory", scan_of_old(scan), until_refused(records.batches(), place)
    found = old_batches.read_batch(data, codecs=OLD_CODECS, profile=profile)
    expected = answer_of_old(found) if isinstance(found, Raised) else found.data
    first = release.kind(MemoryRecords)(data, codecs=CODECS)
    yield "first batch", expected, answer_of(lambda: first.first_batch().data)


def in_file(draw: Draw, release: Release, profile: Profile) -> Iterator[tuple[str, Any, Any]]:
    """Yield what both models make of a record file."""
    data = draw.damaged(b"".join(draw.batch() for _ in range(draw.randrange(5))))
    name, believed = "0.log", draw.choice((0, 0, 0, 3, 20, 70, -9))
    image, is_open = data[: len(data) - max(0, believed)], bool(draw.randrange(20))
    size = max(0, len(data) + min(0, believed))
    one: Any = old.RecordFile.open(name, profile=profile, codecs=OLD_CODECS).after
    one = replace(one, directory=Directory(((name, image),)), size=size, is_open=is_open)
    plain: Any = release.kind(RecordFile)(Files({name: image}), name, codecs=CODECS)
    plain.size, plain.is_open = size, is_open
    for _ in range(draw.randrange(3)):
        place_, length = draw.near(size), draw.near(size)
        found, view = one.slice(place_, length), outcome_of(plain.slice, place_, length)
        yield (
            f"slice {place_} {length}",
            answer_of_old(found) if isinstance(found, Raised) else (shown_old(found)),
            answer_of_old(view) if isinstance(view, Raised) else shown(view),
        )
        if isinstance(found, Raised):
            break
        one, plain = found, view
    start = draw.choice((None, draw.near(size)))
    if start is not None and size:
        start = draw.choice((start, draw.randrange(size)))
    yield (
        f"batches {start}",
        scan_of_old(one.batches(start)),
        until_refused(plain.batches(start), place),
    )
    for batch, other in zip(one.batches().batches, _batches(plain), strict=False):
        if len(batch.data) >= 17:
            yield "batch in file", read_fields(batch, True), read_fields(other, False)
    offset, time = draw.choice((0, 1, 3, 5, 9, 2**40)), draw.choice((-1, 0, 7, 20, 50))
    begin = draw.choice((0, one.start, start or 0))
    calls = {
        "search_for_offset_with_size": (offset, begin),
        "search_for_timestamp": (time, begin, offset),
        "largest_timestamp_after": (begin,),
    }
    for call, given in calls.items():
        found = answer_of_old(getattr(one, call)(*given))
        yield f"{call} {given}", found, answer_of(partial(getattr(plain, call), *given))


def _batches(plain: Any) -> list[Any]:
    found: list[Any] = []
    until_refused(plain.batches(), found.append)
    return found


def read_fields(batch: Any, is_old: bool) -> Any:
    """Return fields and records of a batch where it lies in its file."""
    names = ("base_offset", "last_offset", "crc", "compression", "record_count", "is_control")
    if is_old:
        found = batch.records_until_error()
        error = None if found.error is None else str(found.error.kind)
        fields = tuple(answer_of_old(getattr(batch, name)) for name in names)
        whole = batch.loaded()
        data = answer_of_old(whole) if isinstance(whole, Raised) else whole.data
        count = batch.record_count
        is_long = isinstance(count, int) and count > 999
        return fields, data, None if is_long else (normalise(found.records), error)
    fields = tuple(field_of(batch, name) for name in names)
    count = outcome_of(lambda: batch.record_count)
    is_long = isinstance(count, int) and count > 999
    records = None if is_long else until_refused(batch.records())
    return fields, answer_of(lambda: batch.loaded().data), records


def judged(draw: Draw, release: Release, profile: Profile) -> Iterator[tuple[str, Any, Any]]:
    """Yield the laws that are broken by the same records in memory, in a file, and in slices."""
    data = draw.damaged(b"".join(draw.batch() for _ in range(draw.randrange(5))))
    largest = draw.choice((INT32_MAX, INT32_MAX, draw.near()))
    records: list[Any] = [release.kind(MemoryRecords)(data, largest, codecs=CODECS)]
    image = data[: len(data) - draw.choice((0, 0, 0, 3, 20, 70))]
    file: Any = release.kind(RecordFile)(Files({"0.log": image}), "0.log", codecs=CODECS)
    file.size, file.is_open = max(0, len(data) + draw.choice((0, -9))), bool(draw.randrange(20))
    records.append(frozen(file))
    for _ in range(draw.randrange(3)):
        near = [min(draw.near(file.size), INT32_MAX) for _ in range(2)]
        given = dict(zip(("position", "size"), near, strict=True))
        view = outcome_of(records[-1].slice, **given)
        step = Transition(type(records[-1]), records[-1], "slice", given, records[-1], view)
        yield f"slice {given}", [], broken_step_laws(step)
        if isinstance(view, Raised):
            break
        records.append(view)
    for one in records:
        yield f"{one!r:.80}", [], broken_state_laws(one)
        for batch in scan_of(one).batches:
            yield f"{batch!r:.80}", [], broken_state_laws(batch)
    first: Any = outcome_of(release.kind(MemoryRecords)(draw.batch(), codecs=CODECS).first_batch)
    if not isinstance(first, Raised):
        yield f"{first!r}", [], broken_state_laws(first)


def compared(
    release: Release, profile: Profile, seeds: range, judges: Any = (in_memory, in_file)
) -> tuple[int, list[str]]:
    """Return how many answers were compared, and the differences."""
    count, bad = 0, []
    for seed in seeds:
        for judge in judges:
            for what, expected, actual in judge(Draw(seed), release, profile):
                count += 1
                if expected != actual:
                    bad.append(f"{release.name}, seed {seed}, {what}\n  {expected}\n  {actual}")
                    break
    return count, bad


def main() -> None:
    """Compare, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument(
        "--release", nargs="*", default=["segproof", *(f"kafka-{n}" for n in KAFKA)]
    )
    parser.add_argument("--alone", action="store_true", help="move one behaviour of the newest")
    parser.add_argument("--laws", action="store_true", help="ask the laws alone")
    given = parser.parse_args()
    judges = (judged,) if given.laws else (in_memory, in_file)
    seeds = range(given.first, given.first + given.seeds)
    pairs = [(name, RELEASES[name], profile_named(name)) for name in given.release]
    if given.alone:
        flags = {one: FLAGS[one.__name__] for one in BEHAVIOURS if one.__name__ in FLAGS}
        pairs = [
            (one.__name__, NEWEST.flipped(one), replace(NEWEST_KAFKA, **{flag: value}))
            for one, (flag, value, _) in flags.items()
        ]
    total, wrong = 0, 0
    for name, release, profile in pairs:
        count, bad = compared(release, profile, seeds, judges)
        total, wrong = total + count, wrong + len(bad)
        print(f"{name}: {count} answers, {len(bad)} differences", *bad[:1], sep="\n", flush=True)
    print(f"{total} answers, {wrong} differences")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
