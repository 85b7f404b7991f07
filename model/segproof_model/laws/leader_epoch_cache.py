# SPDX-License-Identifier: Apache-2.0
"""The laws of the leader epoch cache.

The first judges a state, the others a transition whose states are caches.

Used by: the harness, the generated pages.
"""

from itertools import pairwise

from segproof_model.kafka.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.checkpoint_file import text_lines
from segproof_model.laws.registry import Transition, law

INVALID_ARGUMENT = Raised(ErrorKind.INVALID_ARGUMENT)
STRUCTURE = "leader-epoch-cache"
Pairs = list[tuple[int, int]]


def pairs_of(cache: LeaderEpochFileCache) -> Pairs:
    """Return (epoch, start offset) of each entry."""
    return [(entry.epoch, entry.start_offset) for entry in cache.entries]


def is_strict(cache: LeaderEpochFileCache) -> bool:
    """Return whether epochs and start offsets both strictly increase."""
    return all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(pairs_of(cache)))


def _assigned(step: Transition) -> tuple[int, int] | None:
    """Return what is assigned where the rules since 2.7 hold, or None."""
    if step.operation != "assign" or step.before.profile.epoch_rules != "2.7":
        return None
    return step.arguments["leader_epoch"], step.arguments["start_offset"]


def _is_ignored(before: Pairs, epoch: int, start_offset: int) -> bool:
    return bool(before) and epoch == before[-1][0] and start_offset >= before[-1][1]


@law("EPOCH-1", structure=STRUCTURE, scope="state", source="LeaderEpochFileCache (2.7 on)")
def entries_strictly_increase(cache: LeaderEpochFileCache) -> bool:
    """Cached epochs strictly increase and start offsets strictly increase (releases >= 2.7, after
    every operation and after load)."""
    return cache.profile.epoch_rules != "2.7" or is_strict(cache)


@law("EPOCH-2", structure=STRUCTURE, scope="step", source="LeaderEpochFileCache.assign")
def negative_numbers_are_refused(step: Transition) -> bool:
    """assign raises invalid-argument for a negative epoch or start."""
    if (pair := _assigned(step)) is None:
        return True
    if min(pair) < 0:
        return step.outcome == INVALID_ARGUMENT and bool(step.after == step.before)
    return isinstance(step.outcome, Raised) == (pair[0] >= 2**31 or pair[1] >= 2**63)


@law("EPOCH-3", structure=STRUCTURE, scope="step", source="LeaderEpochFileCache.assign (2.0 on)")
def latest_epoch_is_ignored(step: Transition) -> bool:
    """assign(e, s) changes nothing exactly when e = latest epoch and s >= latest start."""
    pair = _assigned(step)
    if pair is None or isinstance(step.outcome, Raised):
        return True
    before = pairs_of(step.before)
    return _is_ignored(before, *pair) == bool(step.after.entries == step.before.entries)


@law("EPOCH-4", structure=STRUCTURE, scope="step", source="LeaderEpochFileCache.assign (2.7 on)")
def assign_drops_conflicts(step: Transition) -> bool:
    """A needed assign(e, s) removes from the end every entry with epoch >= e or start >= s and then
    adds (e, s)."""
    pair = _assigned(step)
    if pair is None or isinstance(step.outcome, Raised):
        return True
    kept = pairs_of(step.before)
    if _is_ignored(kept, *pair):
        return True
    while kept and (kept[-1][0] >= pair[0] or kept[-1][1] >= pair[1]):
        kept.pop()
    return pairs_of(step.after) == [*kept, pair]


@law("EPOCH-5", structure=STRUCTURE, scope="step", source="LeaderEpochFileCache.endOffsetFor")
def undefined_epoch_has_no_end(step: Transition) -> bool:
    """end_offset_for(-1) is (-1, -1), also when the cache is empty."""
    if step.operation != "end_offset_for" or step.arguments["requested_epoch"] != -1:
        return True
    return step.outcome == (-1, -1)


@law("EPOCH-6", structure=STRUCTURE, scope="step", source="LeaderEpochFileCache.endOffsetFor")
def latest_epoch_ends_at_log_end(step: Transition) -> bool:
    """end_offset_for(latest) is (latest, log end)."""
    if step.operation != "end_offset_for" or not step.before.entries:
        return True
    latest = step.before.entries[-1].epoch
    if step.arguments["requested_epoch"] != latest or latest == -1:
        return True
    return step.outcome == (latest, step.arguments["log_end_offset"])


@law(
    "EPOCH-7",
    structure=STRUCTURE,
    scope="step",
    source="LeaderEpochFileCache.endOffsetFor (2.0 on)",
)
def epochs_end_where_the_next_begins(step: Transition) -> bool:
    """end_offset_for(e) with no higher epoch is (-1, -1); with a higher epoch but no floor it is
    (e, start of the higher); else (floor epoch, start of the next higher).

    The latest epoch and -1 are left to the two laws before.
    """
    if step.operation != "end_offset_for" or step.before.profile.epoch_rules != "2.7":
        return True
    requested, pairs = step.arguments["requested_epoch"], pairs_of(step.before)
    if requested == -1 or (pairs and requested == pairs[-1][0]):
        return True
    higher = [pair for pair in pairs if pair[0] > requested]
    if not higher:
        return step.outcome == (-1, -1)
    floor = max((epoch for epoch, _ in pairs if epoch <= requested), default=requested)
    return step.outcome == (floor, min(higher)[1])


@law("EPOCH-8", structure=STRUCTURE, scope="step", source="LeaderEpochFileCache.truncateFromEnd")
def truncation_leaves_earlier_starts(step: Transition) -> bool:
    """truncate_from_end(x) with x >= 0 leaves exactly the entries with start < x; negative x
    changes nothing."""
    if step.operation != "truncate_from_end" or isinstance(step.outcome, Raised):
        return True
    end, before = step.arguments["end_offset"], step.before.entries
    if not is_strict(step.before):
        return True
    kept = before if end < 0 else tuple(entry for entry in before if entry.start_offset < end)
    return bool(step.after.entries == kept)


@law("EPOCH-9", structure=STRUCTURE, scope="step", source="LeaderEpochFileCache.truncateFromStart")
def truncation_moves_one_entry(step: Transition) -> bool:
    """truncate_from_start(x) leaves the entries with start > x, preceded by the last entry with
    start <= x moved to start x, if there was one."""
    if step.operation != "truncate_from_start" or isinstance(step.outcome, Raised):
        return True
    if step.before.profile.epoch_rules == "1.1":
        return True
    start, moved, kept = step.arguments["start_offset"], [], []
    for epoch, offset in pairs_of(step.before):
        if offset > start:
            kept.append((epoch, offset))
        else:
            moved = [(epoch, start)]
    return pairs_of(step.after) == moved + kept


@law("EPOCH-10", structure=STRUCTURE, scope="step", source="LeaderEpochFileCache.epochForOffset")
def epoch_of_an_offset_began_before_it(step: Transition) -> bool:
    """epoch_for_offset(o) is the epoch of the last entry with start <= o, or none."""
    if step.operation != "epoch_for_offset":
        return True
    found = None
    for epoch, offset in pairs_of(step.before):
        if offset <= step.arguments["offset"]:
            found = epoch
    return step.outcome == found


@law("EPOCH-11", structure=STRUCTURE, scope="step", source="LeaderEpochFileCache.writeToFile")
def file_follows_the_cache(step: Transition) -> bool:
    """After every assign the file's entries equal the cache; up to 3.7 this holds after truncations
    as well, from 3.8 once the scheduled write has run.

    An operation that changes nothing writes nothing.
    """
    written = ["assign", "clear_and_flush"]
    if step.before is not None and not step.before.profile.epoch_truncation_is_deferred:
        written += ["truncate_from_end", "truncate_from_start"]
    has_run = step.operation == "run_scheduled_write" and step.before.is_write_pending
    if step.operation not in written and not has_run:
        return True
    is_changed = step.after.entries != step.before.entries or has_run
    if isinstance(step.outcome, Raised) or step.after.name is None or not is_changed:
        return True
    lines = text_lines(step.after.to_bytes())
    rows = [f"{epoch} {start_offset}" for epoch, start_offset in pairs_of(step.after)]
    return lines == ["0", str(len(rows)), *rows]
