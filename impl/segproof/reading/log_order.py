# SPDX-License-Identifier: Apache-2.0
"""The logs of a partition in the order of their contents, where their names say another one.

The name of a log is the offset that it begins with, and no checksum covers a name. So where two
logs have changed names, or one has a name above its contents, the batches say where each belongs.

Laws: DISK-13, DISK-65, LOG-4.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import pairwise
from typing import NamedTuple

from segproof.errors import SegproofError
from segproof.files import Files, ReadOnlyFile
from segproof.integers import INT64_MAX
from segproof.stretches.kafka.facts import UNKNOWN_NAME
from segproof.stretches.kafka.framing import LogSource
from segproof.stretches.kafka.in_place import place_log
from segproof.stretches.kafka.single_batch import batch_at


class NamedLog(NamedTuple):
    """A log, and the offset that the name says, or would say if it were right."""

    path: str
    base_offset: int


class _Range(NamedTuple):
    """The offsets of the sound batches of a log."""

    first: int
    last: int
    batches: int = 0
    sure_last: int = -1
    """The last offset without a lone last batch after a hole: its base offset may be wrong."""


def in_order(
    logs: Sequence[NamedLog], open_log: Callable[[str], ReadOnlyFile], *, batches_min: int = 1
) -> list[NamedLog]:
    """Return the logs of a partition in the order of their contents, each with a base offset.

    A log whose batches lie within its name is as it is, and so is one that begins inside the log
    before it, if that ends where its name says. The others get, in the order of their contents, the
    names that they have together; a name above the contents becomes their first offset. If contents
    overlap in this order, by more than lone last batches, each of the others gets its first offset
    as name, and the logs are sorted by that; so does one whose name lies in the log before it then.
    If contents overlap then too, the order of the names stays. A log of less than `batches_min`
    batches gets no name but one of those that are there: no checksum covers an offset either, and
    that of the batch may be the wrong one. It gets its first offset as name if exactly its offsets
    are missing between two other logs, or before all, and the name differs from that in more than
    one bit. A log without a sound batch gets the one name that is left over if another log begins
    with its own.
    Cost: one batch of each log is read; a log, and the one before it, is read whole where that
    batch is broken or does not lie within its name. Raises: OSError.
    """
    nexts = [log.base_offset for log in logs[1:]]
    odd: dict[int, _Range] = {}
    for number, log in enumerate(logs):
        following = nexts[number] if number < len(nexts) else INT64_MAX
        found = _odd_range(log, following, open_log)
        if found is None:
            continue
        if found.first < log.base_offset and number and number - 1 not in odd:
            before = _range_of(logs[number - 1].path, open_log)
            is_end = before is not None and before.last + 1 == log.base_offset
            if is_end and before is not None and before.first <= found.first:
                continue  # the name is right: what begins the log is not its own
        odd[number] = found
    if not odd:
        return list(logs)
    proven = {n for n, one in odd.items() if one.batches >= batches_min}
    proven |= _fitting(odd, logs, open_log)
    odd |= _emptied(odd, logs, open_log)
    by_contents = sorted(odd, key=lambda number: odd[number])
    placed = list(logs)
    ranges = [_Range(log.base_offset, log.base_offset) for log in logs]
    sure = list(ranges)
    for number, name in zip(by_contents, sorted(odd), strict=True):
        first = odd[number].first
        base = logs[name].base_offset
        is_own = number == name and number not in proven
        base = base if is_own else min(base, first)
        placed[name] = NamedLog(logs[number].path, base)
        ranges[name] = _Range(placed[name].base_offset, odd[number].last)
        sure[name] = ranges[name]._replace(last=odd[number].sure_last)
    if _rises(ranges) or _rises(sure):
        return placed
    odd = {number: found for number, found in odd.items() if number in proven}
    own = [NamedLog(logs[n].path, odd[n].first) if n in odd else log for n, log in enumerate(logs)]
    firsts = [odd[n].first if n in odd else _first_of(log, open_log) for n, log in enumerate(logs)]
    order = sorted(range(len(logs)), key=firsts.__getitem__)
    if order == sorted(order):
        return list(logs)
    placed, ranges, last = [], [], -1
    for n, following in zip(order, [*order[1:], -1], strict=True):
        base, found = own[n].base_offset, odd.get(n)
        if n not in odd and (base <= last or following in odd):
            found = _range_of(logs[n].path, open_log)
        if base <= last and found is not None and found.batches >= batches_min:
            base = firsts[n]
        last = firsts[n] if found is None else max(firsts[n], found.last)
        placed.append(NamedLog(own[n].path, base))
        ranges.append(_Range(base, last))
    return placed if _rises(ranges) else list(logs)


def _emptied(
    odd: Mapping[int, _Range], logs: Sequence[NamedLog], open_log: Callable[[str], ReadOnlyFile]
) -> dict[int, _Range]:
    """Return the log without a sound batch whose name another one has a right to.

    Its range begins with the only name that no log has a right to then. A lone batch gives a log no
    right, and one that has the offset in its name keeps that: what begins it is another topic's.
    """
    if any(
        one.batches < 2 or one.first <= logs[number].base_offset <= one.last
        for number, one in odd.items()
    ):
        return {}
    names = {log.base_offset: number for number, log in enumerate(logs)}
    firsts = {one.first for one in odd.values()}
    left = {logs[number].base_offset for number in odd} - firsts
    taken = [names[first] for first in firsts & names.keys() if names[first] not in odd]
    if len(left) != 1 or len(taken) != 1:
        return {}
    is_empty = _range_of(logs[taken[0]].path, open_log) is None
    (name,) = left
    return {taken[0]: _Range(name, name, sure_last=name)} if is_empty else {}


def _rises(ranges: Sequence[_Range]) -> bool:
    return all(one.last < other.first for one, other in pairwise(ranges))


def _fitting(
    odd: Mapping[int, _Range], logs: Sequence[NamedLog], open_log: Callable[[str], ReadOnlyFile]
) -> set[int]:
    """Return which of the logs have exactly the offsets missing between two others, or before all.

    Not those whose name is one bit off: that bit may be wrong in the batch, too.
    """
    asked = [n for n in odd if (odd[n].first ^ logs[n].base_offset).bit_count() > 1]
    if not asked:
        return set()
    firsts = [odd[n].first if n in odd else _first_of(log, open_log) for n, log in enumerate(logs)]
    order = sorted(range(len(logs)), key=firsts.__getitem__)
    beside = dict(zip(order, zip([None, *order], [*order[1:], None], strict=False), strict=True))
    found = set[int]()
    for n in asked:
        before, after = beside[n]
        if after is None or firsts[after] != odd[n].last + 1:
            continue
        known = None
        if before is not None:
            known = odd.get(before) or _range_of(logs[before].path, open_log)
        if before is None or (known is not None and known.last + 1 == firsts[n]):
            found.add(n)
    return found


def _first_of(log: NamedLog, open_log: Callable[[str], ReadOnlyFile]) -> int:
    """Return the first offset of a log; that of its name if its first batch is not sound."""
    first = first_offset_of(log.path, open_log)
    return log.base_offset if first is None else first


def first_offset_of(path: str, open_log: Callable[[str], ReadOnlyFile]) -> int | None:
    """Return the first offset of a log; None if its first batch is not sound, or can't be read."""
    try:
        with closing(open_log(path)) as file:
            first = batch_at(file, 0, file.size())
    except OSError:
        return None
    return None if first is None else first.first


def offsets_of(path: str, files: Files) -> tuple[int, int] | None:
    """Return the first and the last offset of a log's sound batches; None without one.

    Raises: OSError.
    """
    found = _range_of(path, files.open)
    return None if found is None else (found.first, found.last)


def _range_of(
    path: str, open_log: Callable[[str], ReadOnlyFile], name: range = range(0)
) -> _Range | None:
    """Return the offsets of a log's sound batches; None if it has none, or can't be read.

    Also None if most bytes have offsets within `name`.
    """
    try:
        placed = place_log(LogSource(UNKNOWN_NAME, None, partial(open_log, path)))
    except (OSError, SegproofError):
        return None  # the caller reports it
    rows = placed.rows[placed.is_sound]
    if not len(rows):
        return None
    sizes = placed.rows["end"] - placed.rows["start"]
    fits = (placed.rows["first"] >= name.start) & (placed.rows["last"] < name.stop)
    if 2 * sizes[fits].sum() > sizes.sum():
        return None
    is_lone = len(rows) > 1 and rows["batches"][-1] == 1
    is_lone &= bool((rows["first"][1:] > rows["last"][:-1] + 1)[-1:].any())
    first, last = int(rows["first"][0]), int(rows["last"][-1])
    sure_last = int(rows["last"][-2]) if is_lone else last
    return _Range(first, last, int(rows["batches"].sum()), sure_last)


def _odd_range(
    log: NamedLog, following: int, open_log: Callable[[str], ReadOnlyFile]
) -> _Range | None:
    """Return the offsets of a log that does not lie within its name; else None.

    `following` is the name of the next log. A block at the begin of a log with later offsets may be
    another topic's: what most bytes say counts then.
    """
    try:
        file = open_log(log.path)
    except OSError:
        return None  # the caller reports it
    with closing(file):
        first = batch_at(file, 0, file.size())
        if first is not None and log.base_offset <= first.first < following:
            return None
        second = None if first is None else batch_at(file, first.end, file.size())
    if first is not None and second is not None:
        due = log.base_offset + first.last - first.first + 1
        if second.first == due:
            return None  # the base offset of the first batch alone is wrong
    is_later = first is not None and first.first >= following
    name = range(log.base_offset, following) if is_later else range(0)
    found = _range_of(log.path, open_log, name)
    is_odd = found is not None and not log.base_offset <= found.first < following
    return found if is_odd else None
