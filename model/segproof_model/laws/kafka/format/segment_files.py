# SPDX-License-Identifier: Apache-2.0
"""The laws of a segment's files: opening, checking, closing, renaming, removing, naming."""

import re

from segproof_model.kafka.format import log_segment_releases as older
from segproof_model.kafka.format.index_releases import DeletionNeedsChannel
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.log_segment_deviations import ClosedSegmentIsClosed
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import outcome_of
from segproof_model.laws.kafka.format.segment_views import segment_view
from segproof_model.laws.register import Transition, has, law

CLOSE = "Kafka LogSegment.close, closeHandlers, since 1.1.1"
FILES = "Kafka LogFileUtils, LogSegment, since 1.1.1"
CLOSED_MAY = (
    "open now close_handlers delete_if_exists change_file_suffixes has_suffix last_modified"
    " set_last_modified"
)
"""What is still done with a closed segment of segproof."""
FILE_NAME = re.compile(
    r"(.*/)?(-?[0-9]{20,}\.(log|index|timeindex|txnindex|snapshot)"
    r"|leader-epoch-checkpoint|partition\.metadata)(\.(deleted|cleaned|swap|tmp))?",
    re.ASCII,
)


@law("SEG-43", LogSegment, "Kafka LogSegment.sanityCheck, 2.3 on", on="sanity_check")
def sanity_check_needs_the_offset_index(step: Transition) -> bool:
    """sanity_check raises file-not-found without an offset index, empties a new time index, and
    checks only the transaction index; up to 2.2 it checks all three.
    """
    before, after = step.before, step.after
    if before.lazy_offset_index.name not in before.files:
        return step.refused(ErrorKind.FILE_NOT_FOUND) or segment_view(before).is_closed
    found = outcome_of(before.txn_index.sanity_check)
    is_new = step.arguments["time_index_file_newly_created"]
    if step.succeeded:
        return found is None and not (is_new and after.files.image(after.lazy_time_index.name))
    # A new time index that has entries can't be emptied.
    return (
        found == step.outcome
        or is_new
        or has(before, older.SanityChecksIndexes)
        or segment_view(before).is_closed
    )


@law("SEG-44", LogSegment, CLOSE, on="close")
def close_writes_the_last_entry(step: Transition) -> bool:
    """Up to 4.3 close writes the last time entry if the largest timestamp is known and the index
    takes it, and trims the log; since 4.4 it changes no file. Up to 4.0.0 it raises nothing."""
    before, after, view = step.before, step.after, segment_view(step.before)
    if not step.succeeded:
        return not has(before, older.CloseHidesErrors)
    if not has(before, older.ClosingWritesLastEntry):
        is_kept = has(before, older.ClosingLoadsIndexes) or after.files == before.files
        return not after.log.is_open and bool(is_kept)
    known, index, log = view.maximum, before.lazy_time_index.index, after.log
    has_room = index is not None and index.entries < index.max_entries
    lowest = view.times[-1][1] if view.times else view.base_offset
    is_taken = known is not None and view.can_hold(known.offset) and known.offset >= lowest
    is_judged = has_room and is_taken and view.is_true_of_times
    is_written = not is_judged or known.timestamp <= segment_view(after).last_time
    return is_written and (len(log.image) <= log.size or not before.log.is_open)


@law("SEG-45", LogSegment, CLOSE, on="close_handlers", unless=older.ClosingLoadsIndexes)
def handlers_close_without_a_trace(step: Transition) -> bool:
    """close_handlers neither writes nor trims."""
    return step.succeeded and bool(step.before.files == step.after.files)


@law("SEG-46", LogSegment, "Kafka LogSegment.changeFileSuffixes", on="change_file_suffixes")
def suffixes_change_together(step: Transition) -> bool:
    """change_file_suffixes renames all four files, and raises invalid-argument for a name that
    does not end with the old suffix."""
    names, files = step.before.names, step.before.files
    old, new = step.arguments["old_suffix"], step.arguments["new_suffix"]
    if not all(name.endswith(old) for name in names):
        return not step.succeeded
    renamed = {name: name[: len(name) - len(old)] + new for name in names}
    moved = {renamed[name]: files.image(name) for name in names if name in files}
    is_moved = step.after.names == tuple(renamed.values())
    return not step.succeeded or (is_moved and moved.items() <= step.after.files.images.items())


@law("SEG-47", LogSegment, "Kafka LogSegment.deleteIfExists", on="delete_if_exists")
def deletion_leaves_no_file(step: Transition) -> bool:
    """delete_if_exists removes every file of the segment, and no other.

    In 0.11 a transaction index that is not open stays (TXNIDX-17).
    """
    before = step.before
    stays = has(before, DeletionNeedsChannel) and not before.txn_index.is_open
    removed = before.names[:3] if stays else before.names
    left = {name: data for name, data in before.files.images.items() if name not in removed}
    return not step.succeeded or step.after.files.images == left


@law("SEG-48", LogSegment, "Kafka LogSegment.flush, since 2.3.0", on="flush")
def flush_loads_the_indexes(step: Transition) -> bool:
    """flush loads indexes that are not loaded, and so creates their files."""
    after = step.after
    is_there = all(name in after.files for name in after.names[:3])
    return not step.succeeded or (is_there and None not in segment_view(after).indexes)


@law("SEG-49", LogSegment, "Kafka LogSegment, since 1.1.1", on="max_timestamp_so_far")
def opened_segment_trusts_its_last_entry(step: Transition) -> bool:
    """A segment opened over existing files takes the last time entry for its maximum, until
    recovery, truncation or a larger timestamp; without an entry, -1.
    """
    before, after = segment_view(step.before), segment_view(step.after)
    is_judged = step.succeeded and before.maximum is None and after.is_last_time_known
    return not is_judged or step.outcome == after.last_time


@law("SEG-51", LogSegment, "segproof", only=ClosedSegmentIsClosed)
def closed_segment_is_closed(step: Transition) -> bool:
    """Every use of a closed segment of segproof raises the unmapped error and changes nothing; a
    second close does nothing.
    """
    if step.operation in CLOSED_MAY.split() or not step.before.is_closed:
        return True
    return step.is_unchanged and (step.operation == "close" or step.raised(ErrorKind.UNMAPPED))


# --- which files there are -----------------------------------------------------------------------


def _new_files(step: Transition) -> set[str]:
    """Return the names of the files that a step created."""
    before, after = (getattr(state, "files", state).images for state in (step.before, step.after))
    return set() if after is before else set(after.keys() - before.keys())


@law("FILE-3", LogSegment, FILES)
def transactions_make_their_file(step: Transition) -> bool:
    """The first aborted transaction creates the file of the transaction index; no other operation
    does.
    """
    is_new = any(".txnindex" in name for name in _new_files(step))
    if step.operation == "update_txn_index":
        return not is_new or step.arguments["completed_txn"].is_aborted is True
    return not is_new or step.operation in ("change_file_suffixes", "recover")


@law("FILE-4", LogSegment, "Kafka LogSegment.open, since 2.3.0", on="open")
def opening_creates_the_log_only(step: Transition) -> bool:
    """Opening a segment creates its log and no other file; up to 2.2 both indexes as well."""
    if not step.succeeded:
        return True
    names, count = step.after.names, 3 if has(step.after, older.IndexesOpenAtOnce) else 1
    return names[0] in step.after.files and _new_files(step) <= set(names[:count])


@law("FILE-5", LogSegment, FILES)
def no_other_file_appears(step: Transition) -> bool:
    """No operation creates a file whose name is not that of a segment's or partition's file, with
    the endings .deleted, .cleaned, .swap and .tmp at most, unless a rename names it so."""
    new = _new_files(step)
    if not new or step.operation == "change_file_suffixes":
        return True
    own = getattr(step.before, "names", ())
    return all(FILE_NAME.fullmatch(name) is not None for name in new if name not in own)
