# SPDX-License-Identifier: Apache-2.0
"""The laws of the transaction index.

An opening is a `Transition` with the operation "open", no state before, and the arguments `file`,
`start_offset`, `writable`, `directory`, `profile` and `structure`.

Used by: the harness, `verify`'s tests, the generated pages.
"""

from dataclasses import replace
from typing import Any, NamedTuple

from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.judging import (
    ABORTED_TXN,
    is_rising,
    raised,
    refused,
    succeeded,
)
from segproof_model.laws.registry import Transition, law

STRUCTURE = "transaction-index"
CLASS = "Kafka TransactionIndex, since 1.1.1"
CODEC = "Kafka AbortedTxn, since 1.1.1"
APPEND = "Kafka TransactionIndex.append, since 1.1.1"
COLLECT = "Kafka TransactionIndex.collectAbortedTxns, since 1.1.1"
TRUNCATE = "Kafka TransactionIndex.truncateTo, since 1.1.1"


class Slot(NamedTuple):
    """The numbers of one entry as they are stored."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def _slots(image: bytes) -> list[Slot]:
    whole = len(image) // ABORTED_TXN.size * ABORTED_TXN.size
    return [Slot(*numbers) for numbers in ABORTED_TXN.iter_unpack(image[:whole])]


def _listed(index: Any) -> list[Slot]:
    """Return the whole entries that the channel reaches, the version as the profile reads it."""
    slots = _slots(index.image[: index.position]) if index.is_open else []
    if index.profile.txn_version_exact:
        return slots
    image = index.image
    first_bytes = [image[34 * number] for number in range(len(slots))]
    signed = [byte - 256 if byte > 127 else byte for byte in first_bytes]
    return [slot._replace(version=byte) for slot, byte in zip(slots, signed, strict=True)]


def _is_known(index: Any, slot: Slot) -> bool:
    """Return whether reading passes the version of an entry."""
    return slot.version == 0 or (slot.version < 0 and not index.profile.txn_version_exact)


def _all_known(index: Any, slots: list[Slot]) -> bool:
    return all(_is_known(index, slot) for slot in slots)


def _is_refused(index: Any) -> bool:
    return bool(index.profile.closed_is_closed and index.is_closed)


def _is_in_order(transition: Transition) -> bool:
    """Return whether an append is acceptable to the remembered last offset and the version."""
    before, appended = transition.before, transition.arguments["aborted_txn"]
    if before.profile.txn_version_exact and appended.version != 0:
        return False
    return before.last_offset is None or bool(before.last_offset < appended.last_offset)


def _position_to_append(index: Any) -> int:
    return int(index.position) if index.is_open else len(index.image)


@law("TXNIDX-1", structure=STRUCTURE, scope="file", source=CODEC)
def file_is_whole_entries(image: bytes, base_offset: int) -> bool:
    """The file is entries of 34 bytes, their version 0, and nothing else."""
    return len(image) % 34 == 0 and all(slot.version == 0 for slot in _slots(image))


@law("TXNIDX-2", structure=STRUCTURE, scope="step", source=CODEC)
def newer_version_is_refused(transition: Transition) -> bool:
    """Reading takes the first byte for the version, and stops with an error above 0.

    segproof takes both bytes, and knows only 0.
    """
    index = transition.before
    if transition.operation != "all_aborted_txns" or _is_refused(index):
        return True
    slots = _listed(index)
    if not _all_known(index, slots):
        return raised(transition, ErrorKind.KAFKA_ERROR)
    outcome = transition.outcome
    if not isinstance(outcome, list):
        return False
    return [entry[0] for entry in outcome] == [slot.version for slot in slots]


@law("TXNIDX-3", structure=STRUCTURE, scope="step", source=CLASS)
def first_append_creates_the_file(transition: Transition) -> bool:
    """Opening never creates a file; the first append does."""
    if transition.operation == "open" and "start_offset" in transition.arguments:
        return bool(transition.after.directory == transition.arguments["directory"])
    if transition.operation == "append" and succeeded(transition):
        return transition.after.name in transition.after.directory
    return True


@law("TXNIDX-4", structure=STRUCTURE, scope="step", source=CLASS)
def nothing_is_remembered_from_the_file(transition: Transition) -> bool:
    """After opening no last offset is remembered, so the first append is not tested.

    segproof remembers that of the last whole entry.
    """
    if transition.operation != "open" or "start_offset" not in transition.arguments:
        return True
    slots = _slots(transition.after.image)
    if transition.arguments["profile"].txn_follows_file and slots:
        return bool(transition.after.last_offset == slots[-1].last_offset)
    return transition.after.last_offset is None


@law("TXNIDX-5", structure=STRUCTURE, scope="step", source=APPEND)
def last_offset_must_grow(transition: Transition) -> bool:
    """An append is refused exactly when its last offset is not above the remembered one.

    First offset and last stable offset are not looked at. segproof refuses a version too.
    """
    if transition.operation != "append" or _is_refused(transition.before):
        return True
    if _is_in_order(transition):
        return not raised(transition, ErrorKind.INVALID_ARGUMENT)
    return refused(transition, ErrorKind.INVALID_ARGUMENT)


@law("TXNIDX-6", structure=STRUCTURE, scope="step", source=APPEND)
def remembering_comes_before_writing(transition: Transition) -> bool:
    """An append that fails to write has remembered its last offset; in segproof it has not."""
    before, after = transition.before, transition.after
    if transition.operation != "append" or succeeded(transition):
        return True
    if before.profile.checks_before_changing:
        return bool(after == before)
    if not _is_in_order(transition):
        return bool(after.last_offset == before.last_offset)
    return bool(after.last_offset == transition.arguments["aborted_txn"].last_offset)


@law("TXNIDX-7", structure=STRUCTURE, scope="step", source=CLASS)
def listing_is_what_was_appended(transition: Transition) -> bool:
    """What is appended is what is listed, in this order, byte for byte."""
    before, after = transition.before, transition.after
    if transition.operation == "append" and succeeded(transition):
        appended = transition.arguments["aborted_txn"]
        image = before.image[: _position_to_append(before)] + ABORTED_TXN.pack(*appended)
        remembered = after.last_offset == appended.last_offset
        return bool(after.image == image and after.position == len(image)) and remembered
    if transition.operation == "all_aborted_txns" and isinstance(transition.outcome, list):
        listed = [tuple(entry)[1:] for entry in transition.outcome]
        return listed == [slot[1:] for slot in _listed(before)]
    return True


@law("TXNIDX-8", structure=STRUCTURE, scope="step", source=CLASS)
def partial_tail_is_not_listed(transition: Transition) -> bool:
    """The listing has one entry for each 34 bytes before the channel's position."""
    index, outcome = transition.before, transition.outcome
    if transition.operation != "all_aborted_txns" or not isinstance(outcome, list):
        return True
    return len(outcome) == (index.position // 34 if index.is_open else 0)


@law("TXNIDX-9", structure=STRUCTURE, scope="step", source=CLASS)
def nothing_is_listed_without_a_channel(transition: Transition) -> bool:
    """Without a channel nothing is listed, even if there is a file; an append opens it again.

    In segproof a closed index raises the unmapped error in either case.
    """
    before, after = transition.before, transition.after
    if transition.operation not in ("all_aborted_txns", "append") or before.is_open:
        return True
    if _is_refused(before):
        return refused(transition, ErrorKind.UNMAPPED)
    if transition.operation == "all_aborted_txns":
        return transition.outcome == []
    return not succeeded(transition) or after.is_open is True


def _visited(index: Any, upper_bound_offset: int) -> tuple[list[Slot], bool]:
    """Return the entries up to the first that is stable at the bound, and whether there is one."""
    slots = _listed(index)
    stable = [n for n, slot in enumerate(slots) if slot.last_stable_offset >= upper_bound_offset]
    return (slots[: stable[0] + 1], True) if stable else (slots, False)


@law("TXNIDX-10", structure=STRUCTURE, scope="step", source=COLLECT)
def collecting_finds_what_meets_the_range(transition: Transition) -> bool:
    """Of the entries up to the first whose last stable offset reaches the bound, those are found
    that end at or behind the fetch offset and begin before the bound.
    """
    index = transition.before
    if transition.operation != "collect_aborted_txns" or _is_refused(index):
        return True
    fetch_offset = transition.arguments["fetch_offset"]
    upper_bound_offset = transition.arguments["upper_bound_offset"]
    visited, _ = _visited(index, upper_bound_offset)
    if not _all_known(index, visited):
        return raised(transition, ErrorKind.KAFKA_ERROR)
    wanted = [
        slot
        for slot in visited
        if slot.last_offset >= fetch_offset and slot.first_offset < upper_bound_offset
    ]
    outcome = transition.outcome
    return isinstance(outcome, tuple) and list(outcome[0]) == wanted


@law("TXNIDX-11", structure=STRUCTURE, scope="step", source=COLLECT)
def collecting_is_complete_at_the_bound(transition: Transition) -> bool:
    """Collecting is complete exactly when the last stable offset of a visited entry is the bound
    or above it."""
    index, outcome = transition.before, transition.outcome
    if transition.operation != "collect_aborted_txns" or isinstance(outcome, Raised):
        return True
    _, is_complete = _visited(index, transition.arguments["upper_bound_offset"])
    return isinstance(outcome, tuple) and outcome[1] is is_complete


def _cut_at(transition: Transition) -> int | None:
    """Return the number of the first entry that truncate_to removes, or None."""
    offset = transition.arguments["offset"]
    slots = _listed(transition.before)
    return next((n for n, slot in enumerate(slots) if slot.last_offset >= offset), None)


@law("TXNIDX-12", structure=STRUCTURE, scope="step", source=TRUNCATE)
def truncation_cuts_at_the_first_above(transition: Transition) -> bool:
    """truncate_to cuts the file at the first entry whose last offset is not below the offset.

    The last offset of the entry before it is remembered, or none.
    """
    before = transition.before
    if transition.operation != "truncate_to" or _is_refused(before) or not before.writable:
        return True
    number = _cut_at(transition)
    if number is None:
        return True
    slots = _listed(before)
    if not _all_known(before, slots[: number + 1]):
        return refused(transition, ErrorKind.KAFKA_ERROR)
    directory = before.directory.write(before.name, before.image[: 34 * number])
    last_offset = slots[number - 1].last_offset if number else None
    cut = replace(before, directory=directory, position=34 * number, last_offset=last_offset)
    return succeeded(transition) and bool(transition.after == cut)


@law("TXNIDX-13", structure=STRUCTURE, scope="step", source=TRUNCATE)
def truncation_above_all_changes_nothing(transition: Transition) -> bool:
    """truncate_to above every last offset changes neither the file nor what is remembered."""
    if transition.operation != "truncate_to" or _cut_at(transition) is not None:
        return True
    return bool(transition.after == transition.before)


@law("TXNIDX-14", structure=STRUCTURE, scope="step", source="Kafka TransactionIndex.reset")
def reset_empties_the_file(transition: Transition) -> bool:
    """A reset empties the file if there is a channel, and remembers nothing."""
    before = transition.before
    if transition.operation != "reset" or _is_refused(before) or not before.writable:
        return True
    left = replace(before, last_offset=None)
    if before.is_open:
        left = replace(left, directory=before.directory.write(before.name, b""), position=0)
    return succeeded(transition) and bool(transition.after == left)


@law("TXNIDX-15", structure=STRUCTURE, scope="step", source="Kafka TransactionIndex.sanityCheck")
def sanity_check_compares_with_the_start(transition: Transition) -> bool:
    """sanity_check refuses an entry whose last offset is below the start, and no partial tail.

    segproof also refuses a partial tail, a version, and last offsets that don't increase.
    """
    index = transition.before
    if transition.operation != "sanity_check" or _is_refused(index):
        return True
    slots, kind = _listed(index), index.profile.sanity_kind
    if index.profile.sanity_checks_all:
        whole = not index.is_open or index.position % 34 == 0
        is_sane = (
            whole
            and _all_known(index, slots)
            and is_rising([slot.last_offset for slot in slots])
            and all(slot.last_offset >= index.start_offset for slot in slots)
        )
        return transition.outcome is None if is_sane else raised(transition, kind)
    for slot in slots:
        if not _is_known(index, slot):
            return raised(transition, ErrorKind.KAFKA_ERROR)
        if slot.last_offset < index.start_offset:
            return raised(transition, kind)
    return transition.outcome is None


CORRUPT = ErrorKind.CORRUPT_INDEX


@law("TXNIDX-16", structure=STRUCTURE, scope="step", source=APPEND)
def partial_tail_misaligns_what_follows(transition: Transition) -> bool:
    """An append behind a partial tail is written there, and misaligned; segproof refuses it."""
    before, after = transition.before, transition.after
    if transition.operation != "append" or _is_refused(before) or not before.writable:
        return True
    start = _position_to_append(before)
    if start % 34 == 0 or not _is_in_order(transition):
        return True
    if before.profile.txn_refuses_partial_tail:
        return refused(transition, CORRUPT)
    written = ABORTED_TXN.pack(*transition.arguments["aborted_txn"])
    return succeeded(transition) and bool(after.image == before.image[:start] + written)


@law("TXNIDX-17", structure=STRUCTURE, scope="step", source="Kafka TransactionIndex.deleteIfExists")
def deletion_keeps_what_is_remembered(transition: Transition) -> bool:
    """Deleting closes and removes the file, and tells whether there was one.

    The remembered last offset stays, so a smaller append to the same object is refused. In 0.11
    nothing happens without a channel, and the answer is that there was a file.
    """
    before, after = transition.before, transition.after
    if transition.operation != "delete_if_exists":
        return True
    if before.profile.txn_deletion_needs_channel and not before.is_open:
        return transition.outcome is True and bool(after == before)
    others = tuple(pair for pair in before.directory.files if pair[0] != before.name)
    return (
        transition.outcome is (others != before.directory.files)
        and after.directory.files == others
        and (after.is_open, after.last_offset) == (False, before.last_offset)
    )


@law("TXNIDX-18", structure=STRUCTURE, scope="step", source="Kafka TransactionIndex.renameTo")
def rename_always_changes_the_path(transition: Transition) -> bool:
    """Renaming moves the file if there is one, and changes the remembered path in any case.

    An index of segproof that is not closed and had no file opens what is at the new path.
    """
    before, after = transition.before, transition.after
    if transition.operation != "rename_to":
        return True
    target = transition.arguments["file"]
    there = dict(before.directory.files)
    if before.name in there:
        there[target] = there.pop(before.name)
    moved = succeeded(transition) and bool(after.name == target)
    opens = before.profile.txn_follows_file and not before.is_closed and not before.is_open
    is_open = target in there if opens else before.is_open
    return moved and dict(after.directory.files) == there and after.is_open is is_open
