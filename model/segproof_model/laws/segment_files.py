# SPDX-License-Identifier: Apache-2.0
"""The laws of a segment's end, of searches by time, and of its files as files.

Used by: the harness, the generated pages.
"""

import re
from typing import Any

from segproof_model.directory import Directory
from segproof_model.kafka.log_segment import LogSegment
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.language.integers import INT64_MIN
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.judging import TIME_ENTRY, greatest_not_above, is_rising, raised, succeeded
from segproof_model.laws.log_segment import next_offset_of
from segproof_model.laws.registry import Transition, law
from segproof_model.laws.segment_judging import (
    CLASS,
    STRUCTURE,
    after_of,
    are_trimmed,
    can_hold,
    has_regular_times,
    has_sound_offsets,
    is_judged,
    log_image,
    offset_entries,
    time_entries,
)
from segproof_model.values import replace

ROLL = "Kafka LogSegment.shouldRoll, since 1.1.1"
CLOSE = "Kafka LogSegment.close, since 1.1.1"
FILES = "Kafka LogFileUtils, LogSegment, since 1.1.1"
FILE_NAME = re.compile(
    r"(.*/)?(-?[0-9]{20,}\.(log|index|timeindex|txnindex|snapshot)"
    r"|leader-epoch-checkpoint|partition\.metadata)(\.(deleted|cleaned|swap|tmp))?",
    re.ASCII,
)


def _first_timestamp(segment: LogSegment) -> int | None | Raised:
    """Return the timestamp that the age is counted from, as far as a batch gives one."""
    if segment.rolling_based_timestamp is not None:
        return segment.rolling_based_timestamp
    scan = segment.log.batches()
    return scan.batches[0].max_timestamp if scan.batches else scan.error


def _waited(segment: LogSegment, now: int, message_timestamp: int) -> int | None:
    """Return the age, or None where the first batch can't be read."""
    first = _first_timestamp(segment)
    if isinstance(first, Raised):
        return None
    by_clock = first is None or first < 0
    waited = now - segment.created_ms if by_clock else message_timestamp - (first or 0)
    return _wrapped(segment, waited)


def _wrapped(segment: LogSegment, milliseconds: int) -> int:
    """Return the time in 64 bits, where it is cut to them."""
    wraps = segment.profile.age_wraps
    return (milliseconds + 2**63) % 2**64 - 2**63 if wraps else milliseconds


@law("SEG-36", structure=STRUCTURE, scope="step", source="Kafka LogSegment.timeWaitedForRoll")
def age_counts_from_the_first_batch(transition: Transition) -> bool:
    """time_waited_for_roll is the message's timestamp minus the largest of the first batch (up to
    4.0 of the first call), where that is 0 or more; else now minus the time of creation."""
    if not is_judged(transition, "time_waited_for_roll"):
        return True
    arguments = transition.arguments
    waited = _waited(transition.before, arguments["now"], arguments["message_timestamp"])
    return not succeeded(transition) if waited is None else transition.outcome == waited


@law("SEG-37", structure=STRUCTURE, scope="step", source=ROLL)
def segment_rolls_for_four_reasons(transition: Transition) -> bool:
    """should_roll is: too large with what comes, or not empty and too old, or an index is full, or
    the largest offset is too far from the base. Only the times overflow, and not in segproof."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "should_roll") or not succeeded(transition):
        return True
    what = transition.arguments["roll_params"]
    waited = _waited(before, what.now, what.max_timestamp_in_messages)
    if waited is None:
        return False
    is_large = before.size > what.max_segment_bytes - what.messages_size
    limit_ms = _wrapped(before, what.max_segment_ms - before.roll_jitter_ms)
    is_old = before.size > 0 and waited > limit_ms
    offsets, times = after.offset_index, after.time_index
    is_full = offsets is not None and offsets.entries >= offsets.max_entries
    is_full = is_full or (times is not None and times.entries >= times.max_entries - 1)
    is_far = not can_hold(before, what.max_offset_in_messages)
    return transition.outcome is (is_large or is_old or is_full or is_far)


@law("SEG-38", structure=STRUCTURE, scope="step", source="Kafka LogSegment.onBecomeInactiveSegment")
def inactive_segment_is_trimmed(transition: Transition) -> bool:
    """on_become_inactive_segment writes the last time entry, into the reserved slot too, and leaves
    the log and both indexes trimmed."""
    after = after_of(transition)
    if not is_judged(transition, "on_become_inactive_segment") or not succeeded(transition):
        return True
    if not has_regular_times(transition.before):
        return True
    times = time_entries(after)
    last = times[-1][0] if times else -1
    is_written = after.max_pair is not None and after.max_pair.timestamp <= last
    is_trimmed = are_trimmed(after) and len(after.log.image) == after.size
    return is_written and (is_trimmed or not after.profile.inactive_segment_is_trimmed)


@law("SEG-39", structure=STRUCTURE, scope="step", source="Kafka LogSegment.findOffsetByTimestamp")
def search_by_time_finds_the_first(transition: Transition) -> bool:
    """find_offset_by_timestamp returns the first record in the order of the file, from where the
    indexes point, that is at or after both the timestamp and the offset; or nothing. 0.10 knows no
    offset."""
    if not is_judged(transition, "find_offset_by_timestamp") or not succeeded(transition):
        return True
    # The search has loaded what it used.
    after = after_of(transition)
    times, offsets = time_entries(after), offset_entries(after)
    if not is_rising([key for key, _ in times]) or not is_rising([key for key, _ in offsets]):
        return True
    timestamp, start = (transition.arguments[n] for n in ("timestamp_ms", "starting_offset"))
    if not after.profile.time_search_has_start:
        start = INT64_MIN
    slot = greatest_not_above([key for key, _ in times], timestamp)
    start_offset = max(start, times[slot][1] if slot >= 0 else after.base_offset)
    slot = greatest_not_above([key for key, _ in offsets], start_offset)
    position = offsets[slot][1] if slot >= 0 else 0
    for batch in after.log.batches(position).batches:
        found = _first_record(batch, timestamp, start)
        if found is not None:
            outcome = transition.outcome
            return isinstance(outcome, tuple) and outcome[:2] == found
    return transition.outcome is None


def _first_record(batch: RecordBatch, timestamp: int, offset: int) -> tuple[int, int] | None:
    """Return the first record of a batch at or after both, if its header promises one."""
    largest = batch.max_timestamp
    if isinstance(largest, Raised) or largest < timestamp:
        return None
    times = batch.times_until_error(batch.profile.time_search_is_streamed).times
    found = ((at, where) for at, where in times if at >= timestamp and where >= offset)
    return next(found, None)


@law("SEG-40", structure=STRUCTURE, scope="step", source="Kafka LogSegment.largestTimestamp")
def largest_timestamp_falls_back_on_the_file(transition: Transition) -> bool:
    """largest_timestamp is the largest timestamp if that is 0 or more, else the log's time of
    modification."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "largest_timestamp") or not succeeded(transition):
        return True
    timestamp = after.max_pair.timestamp
    modified = before.modified_ms if before.names[0] in before.directory else 0
    return transition.outcome == (timestamp if timestamp >= 0 else modified)


@law("SEG-41", structure=STRUCTURE, scope="step", source="Kafka LogSegment.hasOverflow")
def overflow_is_a_far_last_offset(transition: Transition) -> bool:
    """has_overflow holds exactly when the next offset is above the base and the one before it too
    far from the base."""
    before = transition.before
    if not is_judged(transition, "has_overflow") or not has_sound_offsets(before):
        return True
    if not succeeded(transition):
        return True
    next_offset = next_offset_of(before)
    is_far = next_offset > before.base_offset and not can_hold(before, next_offset - 1)
    return transition.outcome is is_far


@law("SEG-42", structure=STRUCTURE, scope="step", source="Kafka LogSegment.appendFromFile")
def copying_stops_at_a_far_offset(transition: Transition) -> bool:
    """append_from_file copies batches as they are, while their last offset is near enough to the
    base, and returns the bytes copied."""
    before, after, copied = transition.before, after_of(transition), transition.outcome
    if not is_judged(transition, "append_from_file") or not isinstance(copied, int):
        return True
    source, start = transition.arguments["records"], transition.arguments["start"]
    if log_image(after) != log_image(before) + source.image[start : start + copied]:
        return False
    for batch in replace(source, profile=before.profile).batches(start).batches:
        last_offset = batch.last_offset
        is_copied = batch.position < start + copied
        if not is_copied:
            return isinstance(last_offset, Raised) or not can_hold(before, last_offset)
        if isinstance(last_offset, Raised) or not can_hold(before, last_offset):
            return False
    return True


@law("SEG-43", structure=STRUCTURE, scope="step", source="Kafka LogSegment.sanityCheck, 2.3 on")
def sanity_check_needs_the_offset_index(transition: Transition) -> bool:
    """sanity_check raises file-not-found without an offset index, empties a new time index, and
    checks the transaction index alone; up to 2.2 the other two as well."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "sanity_check"):
        return True
    if before.names[1] not in before.directory:
        return raised(transition, ErrorKind.FILE_NOT_FOUND) and bool(after == before)
    if succeeded(transition):
        is_new = transition.arguments["time_index_file_newly_created"]
        is_empty = after.directory.read(after.names[2]) == b""
        return before.txn_index.sanity_check() is None and (is_empty or not is_new)
    checks_all = not before.profile.sanity_checks_transactions_only
    is_txn = before.txn_index.sanity_check() == transition.outcome
    # A new time index that has entries can't be emptied.
    is_resize = bool(transition.arguments["time_index_file_newly_created"])
    return is_txn or is_resize or checks_all


@law("SEG-44", structure=STRUCTURE, scope="step", source=CLOSE)
def close_writes_the_last_entry(transition: Transition) -> bool:
    """Up to 4.3 close writes the last time entry if the largest timestamp is known (up to 2.5
    always) and trims the log; since 4.4 it changes no file. Up to 4.0.0 it raises nothing. A closed
    segment of segproof refuses any use."""
    before, after = transition.before, after_of(transition)
    if not isinstance(before, LogSegment):
        return True
    if before.is_closed:
        return _closed_is_closed(transition)
    if transition.operation != "close":
        return True
    if not succeeded(transition):
        return bool(before.profile.segment_close_raises and after.is_closed)
    if not before.profile.close_writes:
        return after.is_closed and bool(after.directory == before.directory)
    times = time_entries(after)
    last = times[-1][0] if times else -1
    pair = before.max_pair
    is_written = pair is None or not _had_room(before) or pair.timestamp <= last
    has_log = before.log.is_open and before.log.writable
    return after.is_closed and is_written and (not has_log or len(after.log.image) <= after.size)


def _had_room(segment: LogSegment) -> bool:
    """Return whether the last time entry can be written."""
    index, pair = segment.time_index, segment.max_pair
    if index is None or pair is None:
        return False
    is_free = (
        index.is_mapped
        and has_regular_times(segment)
        and index.position + TIME_ENTRY.size <= index.length
    )
    last = index.last_entry
    if isinstance(last, Raised) or not is_free:
        return False
    return can_hold(segment, pair.offset) and pair.offset >= last.offset


CLOSED_MAY = ("close", "close_handlers", "delete_if_exists", "change_file_suffixes")
CLOSED_TELLS = ("has_suffix", "last_modified", "set_last_modified")


def _closed_is_closed(transition: Transition) -> bool:
    before = transition.before
    if not before.profile.closed_is_closed or transition.operation in CLOSED_TELLS:
        return True
    if transition.operation == "close":
        return transition.outcome is None and bool(transition.after == before)
    if transition.operation in CLOSED_MAY:
        return True
    return raised(transition, ErrorKind.UNMAPPED) and bool(after_of(transition) == before)


@law("SEG-45", structure=STRUCTURE, scope="step", source="Kafka LogSegment.closeHandlers")
def handlers_close_without_a_trace(transition: Transition) -> bool:
    """close_handlers neither writes nor trims; up to 2.5 it loads the indexes."""
    before, after = transition.before, after_of(transition)
    if not isinstance(before, LogSegment) or transition.operation != "close_handlers":
        return True
    kept = [after.directory.read(name) == before.directory.read(name) for name in before.directory]
    creates = not before.profile.unloaded_index_stays_unloaded
    return succeeded(transition) and all(kept) and (creates or after.directory == before.directory)


@law("SEG-46", structure=STRUCTURE, scope="step", source="Kafka LogSegment.changeFileSuffixes")
def suffixes_change_together(transition: Transition) -> bool:
    """change_file_suffixes renames all four files, and raises invalid-argument for a name that
    does not end with the old suffix. In segproof one that fails has renamed none."""
    before, after = transition.before, after_of(transition)
    if not isinstance(before, LogSegment) or transition.operation != "change_file_suffixes":
        return True
    old, new = transition.arguments["old_suffix"], transition.arguments["new_suffix"]
    if not before.has_suffix(old):
        safe = before.profile.checks_before_changing
        return not succeeded(transition) and (not safe or after.names == before.names)
    if not succeeded(transition):
        loads = not before.profile.unloaded_index_stays_unloaded
        is_missing = before.names[0] not in before.directory
        return is_missing or before.offset_index is not None or loads
    expected = tuple(name[: len(name) - len(old)] + new for name in before.names)
    moved = zip(before.names, expected, strict=True)
    return after.names == expected and all(
        after.directory.read(target) == before.directory.read(source)
        for source, target in moved
        if source in before.directory
    )


@law("SEG-47", structure=STRUCTURE, scope="step", source="Kafka LogSegment.deleteIfExists")
def deletion_leaves_no_file(transition: Transition) -> bool:
    """delete_if_exists removes every file of the segment that there is, and no other.

    In 0.11 a transaction index stays that is not open (TXNIDX-17).
    """
    before, after = transition.before, after_of(transition)
    if not isinstance(before, LogSegment) or transition.operation != "delete_if_exists":
        return True
    if not succeeded(transition):
        return True
    stays = before.profile.txn_deletion_needs_channel and not before.txn_index.is_open
    removed = [name for name in before.names if not (stays and name == before.txn_index.name)]
    left = {name: before.directory.read(name) for name in before.directory}
    return {name: data for name, data in left.items() if name not in removed} == {
        name: after.directory.read(name) for name in after.directory
    }


@law("SEG-48", structure=STRUCTURE, scope="step", source="Kafka LogSegment.flush, since 2.3.0")
def flush_loads_the_indexes(transition: Transition) -> bool:
    """flush loads indexes that are not loaded, and so creates their files."""
    after = after_of(transition)
    if not is_judged(transition, "flush") or not succeeded(transition):
        return True
    names = after.names[:3]
    return after.offset_index is not None and all(name in after.directory for name in names)


@law("SEG-49", structure=STRUCTURE, scope="step", source=CLASS)
def opened_segment_trusts_its_last_entry(transition: Transition) -> bool:
    """A segment opened over files that exist takes the last time entry for its maximum, until
    recovery, truncation or a larger timestamp; without an entry, -1."""
    before, after = transition.before, after_of(transition)
    if not is_judged(transition, "max_timestamp_so_far") or before.max_pair is not None:
        return True
    if not succeeded(transition) or not has_regular_times(after):
        return True
    times = time_entries(after)
    return transition.outcome == (times[-1][0] if times else -1)


# --- file names --------------------------------------------------------------------------------


def _directories(transition: Transition) -> tuple[Directory, Directory] | None:
    """Return the directory before and after an operation of a segment, or its opening."""
    after: Any = after_of(transition)
    seen = after if isinstance(after, Directory) else getattr(after, "directory", None)
    if transition.operation == "open" and "base_offset" in transition.arguments:
        before = transition.arguments.get("directory")
    else:
        before = getattr(transition.before, "directory", None)
    return None if before is None or seen is None else (before, seen)


@law("FILE-3", structure=STRUCTURE, scope="step", source=FILES)
def transactions_make_their_file(transition: Transition) -> bool:
    """The transaction index has no file before the first aborted transaction is entered, whatever
    else was done with the segment."""
    both = _directories(transition)
    if both is None or transition.operation in ("change_file_suffixes", "recover"):
        return True
    new = [name for name in both[1] if name not in both[0] and ".txnindex" in name]
    completed = transition.arguments.get("completed_txn")
    return not new or (completed is not None and completed.is_aborted)


@law("FILE-4", structure=STRUCTURE, scope="step", source="Kafka LogSegment.open, since 2.3.0")
def opening_creates_the_log_only(transition: Transition) -> bool:
    """Opening a segment creates its log and no other file; up to 2.2 both indexes as well."""
    both, after = _directories(transition), after_of(transition)
    if transition.operation != "open" or both is None or not isinstance(after, LogSegment):
        return True
    new = {name for name in both[1] if name not in both[0]}
    count = 1 if after.profile.indexes_open_lazily else 3
    return new <= set(after.names[:count]) and after.names[0] in both[1]


@law("FILE-5", structure=STRUCTURE, scope="step", source=FILES)
def no_other_file_appears(transition: Transition) -> bool:
    """No operation creates a file whose name is not that of a segment's or partition's file, with
    the endings .deleted, .cleaned, .swap and .tmp at most, unless a rename names it so."""
    both = _directories(transition)
    if both is None or transition.operation in ("change_file_suffixes", "rename_to"):
        return True
    before = transition.before
    own = before.names if isinstance(before, LogSegment) else (getattr(before, "name", None),)
    new = [name for name in both[1] if name not in both[0] and name not in own]
    return all(FILE_NAME.fullmatch(name) is not None for name in new)
