# SPDX-License-Identifier: Apache-2.0
"""The laws of the transaction index."""

import struct
from typing import Any, NamedTuple

from segproof_model.kafka.format import index_deviations as ours
from segproof_model.kafka.format import index_releases as older
from segproof_model.kafka.format.transaction_index import TransactionIndex
from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.arithmetic import is_rising
from segproof_model.laws.register import Transition, has, law, retired

CLASS = "Kafka TransactionIndex, since 1.1.1"
CODEC = "Kafka AbortedTxn, since 1.1.1"
APPEND = "Kafka TransactionIndex.append, since 1.1.1"
COLLECT = "Kafka TransactionIndex.collectAbortedTxns, since 1.1.1"
DELETE = "Kafka TransactionIndex.deleteIfExists"
TRUNCATE = "Kafka TransactionIndex.truncateTo, since 1.1.1"
ABORTED_TXN = struct.Struct(">hqqqq")


class Slot(NamedTuple):
    """The numbers of one entry as they are stored."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def slots_of(image: bytes) -> list[Slot]:
    """Return the whole entries of a file."""
    whole = len(image) // ABORTED_TXN.size * ABORTED_TXN.size
    return [Slot(*numbers) for numbers in ABORTED_TXN.iter_unpack(image[:whole])]


def _listed(index: Any) -> list[Slot]:
    """Return the whole entries that the channel reaches, the version as the release reads it."""
    slots = slots_of(index.image[: index.position]) if index.is_open else []
    if not has(index, older.VersionIsFirstByte):
        return slots
    return [slot._replace(version=slot.version >> 8) for slot in slots]


def _are_known(index: Any, slots: list[Slot]) -> bool:
    """Return whether reading passes the versions of these entries."""
    below = has(index, older.VersionIsFirstByte)
    return all(slot.version == 0 or (slot.version < 0 and below) for slot in slots)


@law("TXNIDX-1", TransactionIndex, CODEC)
def file_is_whole_entries(transaction_index: bytes) -> bool:
    """The file is entries of 34 bytes, their version 0, and nothing else."""
    is_whole = len(transaction_index) % 34 == 0
    return is_whole and all(slot.version == 0 for slot in slots_of(transaction_index))


@law("TXNIDX-2", TransactionIndex, CODEC, on="all_aborted_txns")
def newer_version_is_refused(step: Transition) -> bool:
    """An entry of a version other than 0 is not read; up to 4.3 the version is only the first byte,
    and a negative one is read.
    """
    return _are_known(step.before, _listed(step.before)) or not step.succeeded


@law("TXNIDX-3", TransactionIndex, CLASS, on="open append")
def first_append_creates_the_file(step: Transition) -> bool:
    """Opening never creates a file; the first append does."""
    if step.operation == "open":
        return bool(step.after.files == step.before)
    return not step.succeeded or step.after.name in step.after.files


@law("TXNIDX-4", TransactionIndex, CLASS, on="open")
def nothing_is_remembered_from_the_file(step: Transition) -> bool:
    """After opening no last offset is remembered, so the first append is unchecked.

    segproof remembers the last offset of the last whole entry.
    """
    slots = slots_of(step.after.image) if has(step.after, ours.TransactionsFollowFile) else []
    return bool(step.after.last_offset == (slots[-1].last_offset if slots else None))


@law("TXNIDX-5", TransactionIndex, APPEND, on="append")
def last_offset_must_grow(step: Transition) -> bool:
    """An append is refused if its last offset is not above the remembered one.

    First offset and last stable offset are not checked. Since 4.4 a version other than 0 is refused
    too.
    """
    before, appended = step.before, step.arguments["aborted_txn"]
    grows = before.last_offset is None or before.last_offset < appended.last_offset
    if grows and (appended.version == 0 or has(before, older.VersionIsFirstByte)):
        return not step.raised(ErrorKind.INVALID_ARGUMENT)
    return not step.succeeded and step.is_unchanged


@law("TXNIDX-6", TransactionIndex, APPEND, on="append")
def remembering_comes_before_writing(step: Transition) -> bool:
    """An append that fails to write still remembers its last offset; in segproof it does not."""
    if step.succeeded or not has(step.before, ours.FailedIndexChangeIsUndone):
        return step.changed_only("files is_open position last_offset")
    return step.is_unchanged


@law("TXNIDX-7", TransactionIndex, CLASS, on="append all_aborted_txns")
def listing_is_what_was_appended(step: Transition) -> bool:
    """The listing has the appended entries, in order, byte for byte."""
    before, after = step.before, step.after
    if not step.succeeded:
        return True
    if step.operation == "all_aborted_txns":
        assert isinstance(step.outcome, list)
        return list(step.outcome) == _listed(before)
    appended = step.arguments["aborted_txn"]
    kept = before.image[: before.position] if before.is_open else before.image
    is_end = after.position == len(after.image) and after.last_offset == appended.last_offset
    return is_end and bool(after.image == kept + ABORTED_TXN.pack(*appended))


@law("TXNIDX-8", TransactionIndex, CLASS, on="all_aborted_txns")
def partial_tail_is_not_listed(step: Transition) -> bool:
    """The listing has one entry for each 34 bytes before the channel's position."""
    index, outcome = step.before, step.outcome
    count = index.position // 34 if index.is_open else 0
    return not isinstance(outcome, list) or len(outcome) == count


@law("TXNIDX-9", TransactionIndex, CLASS, on="all_aborted_txns append")
def nothing_is_listed_without_a_channel(step: Transition) -> bool:
    """Without a channel the listing is empty, even with a file; an append opens the file again.

    In segproof a closed index raises the unmapped error in both cases.
    """
    if step.before.is_open:
        return True
    if has(step.before, ours.ClosedIndexIsClosed) and step.before.is_closed:
        return step.refused(ErrorKind.UNMAPPED)
    if step.operation == "append":
        return not step.succeeded or step.after.is_open is True
    return step.outcome == []


def _visited(index: Any, upper_bound_offset: int) -> tuple[list[Slot], bool]:
    """Return the entries up to the first that is stable at the bound, and whether there is one."""
    slots = _listed(index)
    stable = [n for n, slot in enumerate(slots) if slot.last_stable_offset >= upper_bound_offset]
    return (slots[: stable[0] + 1], True) if stable else (slots, False)


@law("TXNIDX-10", TransactionIndex, COLLECT, on="collect_aborted_txns")
def collecting_finds_what_meets_the_range(step: Transition) -> bool:
    """A search visits the entries up to the first whose last stable offset reaches the bound, and
    collects those that end at or after the fetch offset and begin before the bound.
    """
    fetch, bound = step.arguments["fetch_offset"], step.arguments["upper_bound_offset"]
    visited, _ = _visited(step.before, bound)
    if not isinstance(step.outcome, tuple):
        return not step.succeeded
    wanted = [slot for slot in visited if slot.last_offset >= fetch and slot.first_offset < bound]
    return _are_known(step.before, visited) and list(step.outcome[0]) == wanted


@law("TXNIDX-11", TransactionIndex, COLLECT, on="collect_aborted_txns")
def collecting_is_complete_at_the_bound(step: Transition) -> bool:
    """Collecting is complete exactly when the last stable offset of a visited entry is the bound
    or above it."""
    _, is_complete = _visited(step.before, step.arguments["upper_bound_offset"])
    return not isinstance(step.outcome, tuple) or step.outcome[1] is is_complete


@law("TXNIDX-12", TransactionIndex, TRUNCATE, on="truncate_to")
def truncation_cuts_at_the_first_above(step: Transition) -> bool:
    """truncate_to cuts the file at the first entry whose last offset reaches the offset.

    It remembers the last offset of the entry before, or None.
    """
    before, after, slots = step.before, step.after, _listed(step.before)
    ends = [slot.last_offset for slot in slots]
    number = next((n for n, end in enumerate(ends) if end >= step.arguments["offset"]), None)
    if number is None or not step.succeeded:
        return True
    is_cut = after.image == before.image[: 34 * number] and after.position == 34 * number
    remembered = ends[number - 1] if number else None
    is_known = _are_known(before, slots[: number + 1])
    return is_known and is_cut and bool(after.last_offset == remembered)


@law("TXNIDX-13", TransactionIndex, TRUNCATE, on="truncate_to")
def truncation_above_all_changes_nothing(step: Transition) -> bool:
    """truncate_to above every last offset changes neither the file nor the remembered offset."""
    ends = [slot.last_offset for slot in _listed(step.before)]
    return step.is_unchanged or any(end >= step.arguments["offset"] for end in ends)


@law("TXNIDX-14", TransactionIndex, "Kafka TransactionIndex.reset", on="reset")
def reset_empties_the_file(step: Transition) -> bool:
    """A reset empties the file if there is a channel, and forgets the last offset."""
    before, after = step.before, step.after
    image = b"" if before.is_open else before.image
    is_reset = after.last_offset is None and after.position == 0 and after.image == image
    return not step.succeeded or (is_reset and step.changed_only("files position last_offset"))


@law("TXNIDX-15", TransactionIndex, "Kafka TransactionIndex.sanityCheck", on="sanity_check")
def sanity_check_compares_with_the_start(step: Transition) -> bool:
    """sanity_check refuses an entry whose last offset is below the start.

    segproof also refuses a partial entry, a version other than 0, and last offsets that don't
    increase.
    """
    index, slots = step.before, _listed(step.before)
    ends = [slot.last_offset for slot in slots]
    is_broken = any(end < index.start_offset for end in ends) or not _are_known(index, slots)
    if has(index, ours.SanityChecksAll):
        is_broken |= bool(index.is_open and index.position % 34) or not is_rising(ends)
    return step.is_unchanged and not (is_broken and step.succeeded)


retired(
    "TXNIDX-16",
    TransactionIndex,
    "An append behind a partial tail is written there, and misaligned; segproof refuses it.",
    ours.PartialTailIsRefused.TransactionIndex.put,
)


@law(
    "TXNIDX-17", TransactionIndex, DELETE, on="delete_if_exists", unless=older.DeletionNeedsChannel
)
def deletion_keeps_what_is_remembered(step: Transition) -> bool:
    """Deleting closes and removes the file, and returns whether it existed.

    The remembered last offset stays, so a smaller append to the same object is refused. In 0.11
    deleting without a channel does nothing and returns True.
    """
    before, after = step.before, step.after
    others = {name: data for name, data in before.files.images.items() if name != before.name}
    is_kept = (after.is_open, after.last_offset) == (False, before.last_offset)
    is_gone = after.files.images == others
    return is_kept and is_gone and step.outcome is (before.name in before.files)


@law("TXNIDX-18", TransactionIndex, "Kafka TransactionIndex.renameTo", on="rename_to")
def rename_always_changes_the_path(step: Transition) -> bool:
    """Renaming moves the file if there is one, and changes the remembered path in any case.

    An index of segproof that is not closed and had no file opens what is at the new path.
    """
    before, after, target = step.before, step.after, step.arguments["file"]
    there = dict(before.files.images)
    if before.name in there:
        there[target] = there.pop(before.name)
    is_moved = after.name == target and after.files.images == there
    opens = has(before, ours.TransactionsFollowFile) and not before.is_closed and target in there
    return step.succeeded and is_moved and after.is_open is (before.is_open or opens)
