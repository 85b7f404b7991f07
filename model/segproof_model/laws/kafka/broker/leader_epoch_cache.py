# SPDX-License-Identifier: Apache-2.0
"""The laws of the leader epoch cache."""

from typing import Any

from segproof_model.kafka.broker import epoch_releases as older
from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.arithmetic import is_rising
from segproof_model.laws.kafka.broker.checkpoint_file import text_lines
from segproof_model.laws.register import Transition, has, law

CACHE = "LeaderEpochFileCache, since 2.7"
ASSIGN = "LeaderEpochFileCache.assign, since 2.0"
END = "LeaderEpochFileCache.endOffsetFor, since 2.0"
CUT = "LeaderEpochFileCache.truncateFromEnd, truncateFromStart"
LOOSE = (older.LoadedEpochsAreNotChecked, older.EpochThatConflictsIsIgnored)
WRITING = "assign clear_and_flush truncate_from_end truncate_from_start run_scheduled_write"


def is_strict(cache: Any) -> bool:
    """Return whether epochs and start offsets both strictly increase."""
    return all(map(is_rising, zip(*cache.entries, strict=True)))


def _assigned(step: Transition) -> tuple[int, int]:
    """Return the assigned entry."""
    return step.arguments["leader_epoch"], step.arguments["start_offset"]


def _is_ignored(step: Transition) -> bool:
    """Return whether the assigned epoch is the latest one, which has already begun."""
    epoch, start_offset = _assigned(step)
    return any(epoch == one[0] and start_offset >= one[1] for one in step.before.entries[-1:])


@law("EPOCH-1", LeaderEpochFileCache, CACHE, unless=LOOSE)
def entries_strictly_increase(state: Any) -> bool:
    """Cached epochs strictly increase and start offsets strictly increase (releases >= 2.7, after
    every operation and after load).
    """
    return is_strict(state)


@law("EPOCH-2", LeaderEpochFileCache, CACHE, on="assign", unless=older.LoadedEpochsAreNotChecked)
def negative_numbers_are_refused(step: Transition) -> bool:
    """assign raises invalid-argument for a negative epoch or start."""
    epoch, start_offset = _assigned(step)
    is_right = 0 <= epoch < 2**31 and 0 <= start_offset < 2**63
    return step.succeeded if is_right else step.refused(ErrorKind.INVALID_ARGUMENT)


@law("EPOCH-3", LeaderEpochFileCache, ASSIGN, on="assign", unless=older.EpochThatConflictsIsIgnored)
def latest_epoch_is_ignored(step: Transition) -> bool:
    """assign(e, s) changes nothing exactly when e = latest epoch and s >= latest start."""
    return not step.succeeded or _is_ignored(step) is (step.after.entries == step.before.entries)


@law("EPOCH-4", LeaderEpochFileCache, ASSIGN, on="assign", unless=older.EpochThatConflictsIsIgnored)
def assign_drops_conflicts(step: Transition) -> bool:
    """A needed assign(e, s) removes from the end every entry with epoch >= e or start >= s and then
    adds (e, s).
    """
    if not step.succeeded or _is_ignored(step) or not is_strict(step.before):
        return True
    added = _assigned(step)
    kept = [one for one in step.before.entries if one[0] < added[0] and one[1] < added[1]]
    return list(step.after.entries) == [*kept, added]


@law("EPOCH-5", LeaderEpochFileCache, END, on="end_offset_for")
def undefined_epoch_has_no_end(step: Transition) -> bool:
    """end_offset_for(-1) is (-1, -1), also when the cache is empty."""
    return step.arguments["requested_epoch"] != -1 or step.outcome == (-1, -1)


@law("EPOCH-6", LeaderEpochFileCache, END, on="end_offset_for")
def latest_epoch_ends_at_log_end(step: Transition) -> bool:
    """end_offset_for(latest) is (latest, log end)."""
    asked = step.arguments["requested_epoch"], step.arguments["log_end_offset"]
    is_latest = asked[0] in dict(step.before.entries[-1:])
    return not is_latest or asked[0] == -1 or step.outcome == asked


@law(
    "EPOCH-7", LeaderEpochFileCache, END, on="end_offset_for", unless=older.RequestedEpochIsAnswered
)
def epochs_end_where_the_next_begins(step: Transition) -> bool:
    """end_offset_for(e) without a higher epoch is (-1, -1); with a higher epoch but no floor it is
    (e, start of the higher epoch); else (floor epoch, start of the next higher epoch).

    EPOCH-5 and EPOCH-6 judge -1 and the latest epoch.
    """
    requested, entries = step.arguments["requested_epoch"], step.before.entries
    if requested == -1 or requested in dict(entries[-1:]) or not is_strict(step.before):
        return True
    higher = [one.start_offset for one in entries if one.epoch > requested]
    floor = max((one.epoch for one in entries if one.epoch <= requested), default=requested)
    return step.outcome == ((floor, min(higher)) if higher else (-1, -1))


@law("EPOCH-8", LeaderEpochFileCache, CUT, on="truncate_from_end")
def truncation_leaves_earlier_starts(step: Transition) -> bool:
    """truncate_from_end(x) with x >= 0 leaves exactly the entries with start < x; negative x
    changes nothing.
    """
    end, before = step.arguments["end_offset"], step.before
    kept = [one for one in before.entries if one.start_offset < end or end < 0]
    return not step.succeeded or not is_strict(before) or list(step.after.entries) == kept


@law(
    "EPOCH-9",
    LeaderEpochFileCache,
    CUT,
    on="truncate_from_start",
    unless=older.FirstEpochDecidesOnTruncation,
)
def truncation_moves_one_entry(step: Transition) -> bool:
    """truncate_from_start(x) leaves the entries with start > x, preceded by the last entry with
    start <= x moved to start x, if there was one.
    """
    start, before = step.arguments["start_offset"], step.before.entries
    moved = [(epoch, start) for epoch, offset in before if offset <= start][-1:]
    kept = [one for one in before if one.start_offset > start]
    return not step.succeeded or list(step.after.entries) == moved + kept


@law("EPOCH-10", LeaderEpochFileCache, CACHE, on="epoch_for_offset")
def epoch_of_an_offset_began_before_it(step: Transition) -> bool:
    """epoch_for_offset(o) is the epoch of the last entry with start <= o, or none."""
    offset, entries = step.arguments["offset"], step.before.entries
    begun = [None, *(one.epoch for one in entries if one.start_offset <= offset)]
    return bool(step.outcome == begun[-1])


@law("EPOCH-11", LeaderEpochFileCache, CACHE, on=WRITING)
def file_follows_the_cache(step: Transition) -> bool:
    """After every assign the file's entries equal the cache; up to 3.7 this holds after truncations
    as well, from 3.8 once the scheduled write has run.

    An operation that changes nothing writes nothing.
    """
    before, after, name = step.before, step.after, step.operation
    is_now = not name.startswith("truncate") or has(before, older.EpochTruncationIsWritten)
    is_due = name == "run_scheduled_write" and before.is_write_pending
    if not is_due and (after.entries == before.entries or not is_now):
        return True
    rows = [f"{epoch} {start_offset}" for epoch, start_offset in after.entries]
    is_written = text_lines(after.to_bytes()) == ["0", str(len(rows)), *rows]
    return is_written or not step.succeeded or after.checkpoint is None
