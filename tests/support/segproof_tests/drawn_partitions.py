# SPDX-License-Identifier: Apache-2.0
"""Partitions with drawn damages, and a judge of what a salvage made of them.

The truth is known: every batch of the partition before the damage, and its offsets. The judge reads
batches by their size fields alone and compares bytes; it uses nothing of segproof.
"""

import os
import struct
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

BLOCKS = (512, 512, 4096)


class Truth(NamedTuple):
    """One batch before the damage."""

    first: int
    """The first offset; of a compressed message of magic 0 or 1 the one after the batch before."""
    last: int
    content: bytes
    """The bytes that the checksum covers, and the checksum."""


def framed(log: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the position and the bytes of each batch, as sizes lead, up to the first cut off."""
    at = 0
    while at + 17 <= len(log):
        size = 12 + struct.unpack_from(">i", log, at + 8)[0]
        if size < 26 or at + size > len(log):
            return
        yield at, log[at : at + size]
        at += size


def content_of(batch: bytes) -> bytes:
    """Return the bytes that the checksum of a batch covers, and the checksum."""
    return batch[17:] if batch[16] == 2 else batch[12:]


def offsets_of(batch: bytes, reached: int) -> tuple[int, int]:
    """Return the first and the last offset that a batch says; `reached` is the one before it."""
    base = struct.unpack_from(">q", batch)[0]
    if batch[16] == 2:
        return base, base + struct.unpack_from(">i", batch, 23)[0]
    return (reached + 1 if batch[17] & 7 else base), base


@dataclass
class Drawn:
    """A partition that is being damaged."""

    names: list[str]
    logs: list[bytearray]
    starts: list[list[int]]
    """Where batches began before the damage, for each log."""
    truth: list[Truth]
    foreign: bytes
    """A log of another topic."""
    kinds: list[str] = field(default_factory=list)
    is_dense: bool = False
    """Whether no offset was left out before the damage."""


def drawn_of(paths: Sequence[Path], foreign: bytes = b"") -> Drawn:
    """Return a partition of some logs, without a damage so far."""
    drawn = Drawn([], [], [], [], foreign)
    reached = int(paths[0].stem) - 1
    for path in paths:
        data = path.read_bytes()
        drawn.names.append(path.name)
        drawn.logs.append(bytearray(data))
        drawn.starts.append([])
        for at, batch in framed(data):
            first, last = offsets_of(batch, reached)
            drawn.starts[-1].append(at)
            drawn.truth.append(Truth(first, last, content_of(batch)))
            reached = last
    drawn.is_dense = all(two.first == one.last + 1 for one, two in pairwise(drawn.truth))
    return drawn


def write_drawn(drawn: Drawn, target: Path) -> None:
    """Write the logs of a partition into a new directory."""
    target.mkdir(parents=True)
    for name, log in zip(drawn.names, drawn.logs, strict=True):
        (target / name).write_bytes(log)


def draw(random: Random, partitions: Sequence[Path], target: Path) -> Drawn:
    """Write a partition with one to three damages into `target`; return what is known of it."""
    source = random.choice(partitions)
    paths = sorted(path for path in source.glob("*.log") if path.stat().st_size)
    count = min(len(paths), random.choice((1, 2, 2, 3)))
    begin = random.randrange(len(paths) - count + 1)
    paths = paths[begin : begin + count]
    other = random.choice([one for one in partitions if one.parent != source.parent])
    foreign = max(other.glob("*.log"), key=lambda path: random.random() * path.stat().st_size)
    drawn = drawn_of(paths, foreign.read_bytes())
    for _ in range(random.choice((1, 1, 2, 3))):
        kind = random.choice(list(DAMAGES))
        drawn.kinds.append(kind)
        DAMAGES[kind](drawn, random)
    write_drawn(drawn, target)
    for path in paths:
        for suffix in (".index", ".timeindex"):
            beside = path.with_suffix(suffix)
            if random.random() < 0.6 and beside.exists():
                (target / beside.name).write_bytes(beside.read_bytes())
    return drawn


# --- damages


def _a_log(drawn: Drawn, random: Random) -> tuple[int, bytearray]:
    number = random.randrange(len(drawn.logs))
    return number, drawn.logs[number]


def _a_batch(drawn: Drawn, random: Random) -> tuple[bytearray, int, int]:
    number, log = _a_log(drawn, random)
    starts = [at for at in drawn.starts[number] if at + 26 < len(log)] or [0]
    place = random.randrange(len(starts))
    end = starts[place + 1] if place + 1 < len(starts) else len(log)
    return log, starts[place], end


def _a_place(log: bytearray, random: Random, size: int) -> int:
    return random.randrange(0, max(1, len(log)), size)


def _flip(offset: int, count: int) -> Callable[[Drawn, Random], None]:
    def apply(drawn: Drawn, random: Random) -> None:
        log, start, _ = _a_batch(drawn, random)
        place = start + offset + random.randrange(count)
        if place < len(log):
            log[place] ^= 1 << random.randrange(8)

    return apply


def _wild_offset(drawn: Drawn, random: Random) -> None:
    log, start, _ = _a_batch(drawn, random)
    log[start : start + 8] = (
        random.randbytes(8) if random.random() < 0.5 else (bytes(4) + random.randbytes(4))
    )


def _content(drawn: Drawn, random: Random) -> None:
    _, log = _a_log(drawn, random)
    if log:
        log[random.randrange(len(log))] ^= 1 << random.randrange(8)


def _over(make: Callable[[Random, int], bytes]) -> Callable[[Drawn, Random], None]:
    def apply(drawn: Drawn, random: Random) -> None:
        _, log = _a_log(drawn, random)
        block = random.choice(BLOCKS)
        at = _a_place(log, random, block)
        size = min(block * random.choice((1, 1, 3)), len(log) - at)
        log[at : at + size] = make(random, size)

    return apply


def _block(drawn: Drawn, random: Random, *, is_swap: bool, is_other: bool) -> None:
    _, log = _a_log(drawn, random)
    other = random.choice(drawn.logs) if is_other else log
    block = random.choice(BLOCKS)
    here, there = _a_place(log, random, block), _a_place(other, random, block)
    size = min(block * random.choice((1, 1, 2, 8)), len(log) - here, len(other) - there)
    one, two = bytes(log[here : here + size]), bytes(other[there : there + size])
    log[here : here + size] = two
    if is_swap:
        other[there : there + size] = one


def _foreign(drawn: Drawn, random: Random) -> None:
    _, log = _a_log(drawn, random)
    block = random.choice(BLOCKS)
    here = _a_place(log, random, block)
    there = _a_place(bytearray(drawn.foreign), random, block)
    data = drawn.foreign[there : there + block * random.choice((1, 1, 2, 8))]
    log[here : here + len(data)] = data[: max(0, len(log) - here)]


def _foreign_near(drawn: Drawn, random: Random) -> None:
    """Put a block of another topic there whose offsets are those of the block that it replaces."""
    number, log = _a_log(drawn, random)
    block = random.choice(BLOCKS)
    at = _a_place(log, random, block)
    near = [struct.unpack_from(">q", log, one)[0] for one in drawn.starts[number]
            if at <= one < at + block and one + 8 <= len(log)]  # fmt: skip
    places = [one for one, batch in framed(drawn.foreign)
              if near and abs(struct.unpack_from(">q", batch)[0] - near[0]) < 20]  # fmt: skip
    if not places:
        _foreign(drawn, random)
        return
    there = random.choice(places) // block * block
    data = drawn.foreign[there : there + min(block, len(log) - at)]
    log[at : at + len(data)] = data


def _torn(drawn: Drawn, random: Random) -> None:
    _, log = _a_log(drawn, random)
    del log[random.randrange(max(1, len(log))) :]


def _cut_between(drawn: Drawn, random: Random) -> None:
    log, start, _ = _a_batch(drawn, random)
    del log[start:]


def _deleted(drawn: Drawn, random: Random) -> None:
    _, log = _a_log(drawn, random)
    at = random.randrange(max(1, len(log)))
    del log[at : at + random.randint(1, 5000)]


def _inserted(drawn: Drawn, random: Random) -> None:
    _, log = _a_log(drawn, random)
    at = random.randrange(max(1, len(log)))
    log[at:at] = random.randbytes(random.randint(1, 5000))


def _twice(drawn: Drawn, random: Random) -> None:
    log, start, end = _a_batch(drawn, random)
    log[end:end] = log[start:end]


def _batches_swap(drawn: Drawn, random: Random) -> None:
    log, start, end = _a_batch(drawn, random)
    later = next((at + len(one) for at, one in framed(bytes(log)) if at == end), end)
    log[start:later] = log[end:later] + log[start:end]


def _names(drawn: Drawn, random: Random) -> None:
    if len(drawn.logs) > 1:
        one, two = random.sample(range(len(drawn.logs)), 2)
        drawn.logs[one], drawn.logs[two] = drawn.logs[two], drawn.logs[one]
        drawn.starts[one], drawn.starts[two] = drawn.starts[two], drawn.starts[one]


def _name(drawn: Drawn, random: Random) -> None:
    number, _ = _a_log(drawn, random)
    if number == len(drawn.logs) - 1:
        drawn.names[number] = f"{int(drawn.names[number][:20]) + random.randint(1, 10**7):020d}.log"


DAMAGES: dict[str, Callable[[Drawn, Random], None]] = {
    "base offset, one bit": _flip(0, 8),
    "base offset, low bit": _flip(6, 2),
    "base offset, wild": _wild_offset,
    "size": _flip(8, 4),
    "leader epoch": _flip(12, 4),
    "magic": _flip(16, 1),
    "content": _content,
    "zeros": _over(lambda random, size: bytes(size)),
    "garbage": _over(lambda random, size: random.randbytes(size)),
    "block": lambda drawn, random: _block(drawn, random, is_swap=False, is_other=False),
    "blocks swapped": lambda drawn, random: _block(drawn, random, is_swap=True, is_other=False),
    "block of another segment": lambda drawn, random: _block(
        drawn, random, is_swap=random.random() < 0.5, is_other=True
    ),
    "foreign block": _foreign,
    "foreign block, near offsets": _foreign_near,
    "torn": _torn,
    "cut between batches": _cut_between,
    "deleted": _deleted,
    "inserted": _inserted,
    "batch twice": _twice,
    "batches swapped": _batches_swap,
    "names swapped": _names,
    "name too high": _name,
}


# --- the judge


@dataclass
class Outcome:
    """What became of the batches of a drawn partition."""

    counts: Counter[str]
    kept: list[Truth]
    """What stands in the new logs, in order."""

    @property
    def faults(self) -> dict[str, int]:
        """What no salvage may do."""
        names = ("made up", "wrong offset", "twice", "falling", "unframed", "nowhere")
        return {name: self.counts[name] for name in names if self.counts[name]}


def judge(drawn: Drawn, target: Path, aside: Path) -> Outcome:
    """Compare the logs in `target`, and the batches in `aside`, with the truth."""
    counts, kept, reached = Counter[str](), list[Truth](), -1
    spans = {one.content: one.last - one.first for one in drawn.truth}
    for path in sorted(target.glob("*.log")) if target.exists() else ():
        data, end = path.read_bytes(), 0
        for at, batch in framed(data):
            first, last = offsets_of(batch, reached)
            content = content_of(batch)
            if batch[16] < 2 and batch[17] & 7:
                first = last - spans.get(content, 0)
            counts["falling"] += first <= reached
            kept.append(Truth(first, last, content))
            reached, end = max(reached, last), at + len(batch)
        counts["unframed"] += end != len(data)
    known, contents = Counter(drawn.truth), {one.content for one in drawn.truth}
    got = Counter(kept)
    for one, count in got.items():
        if one in known:
            counts["twice"] += max(0, count - known[one])
        else:
            counts["wrong offset" if one.content in contents else "made up"] += count
    beside = aside.read_bytes() if aside.exists() else b""
    for one in drawn.truth:
        if one in got:
            counts["right"] += 1
        elif one.content in beside or any(one.content == other.content for other in got):
            counts["aside"] += 1
        elif any(_stands_in(bytes(log), one, drawn.truth) for log in drawn.logs):
            counts["nowhere"] += 1
    return Outcome(counts, kept)


def _stands_in(log: bytes, batch: Truth, truth: Sequence[Truth]) -> bool:
    """Return whether a batch stands in a log whose size and magic are right."""
    content = batch.content
    at = log.find(content)
    while at >= 0:
        for magic, start in ((2, at - 17), (content[4], at - 12)):
            if start >= 0 and log[start + 16] == magic and magic <= 2:
                size = 12 + struct.unpack_from(">i", log, start + 8)[0]
                if start + size == at + len(content):
                    return not any(_covers(log, one.content, start) for one in truth)
        at = log.find(content, at + 1)
    return False


def _covers(log: bytes, content: bytes, position: int) -> bool:
    """Return whether the bytes of another batch stand at a position."""
    begin = max(0, position - len(content) + 1)
    return log.find(content, begin, position + len(content)) in range(begin, position + 1)


def lost_between(kept: Sequence[Truth], drawn: Drawn) -> int:
    """Return how many true offsets up to the last kept one are in no kept batch."""
    if not kept:
        return 0
    there, last = set[int](), kept[-1].last
    for one in kept:
        there.update(range(one.first, one.last + 1))
    true = {at for one in drawn.truth for at in range(one.first, one.last + 1)}
    return len({at for at in true if at <= last} - there)


def partitions_in(roots: Sequence[Path]) -> list[Path]:
    """Return the directories with logs below some others, in order."""
    found = {Path(folder) for root in roots for folder, _, names in os.walk(root)
             if any(one.endswith(".log") for one in names)}  # fmt: skip
    return sorted(one for one in found if not one.name.startswith("__"))
