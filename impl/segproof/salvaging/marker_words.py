# SPDX-License-Identifier: Apache-2.0
"""What a salvage says of a transaction whose end may be among what is lost.

Laws: PROD-9, PROD-14.
"""

from enum import Enum

from segproof.integers import INT64_MAX
from segproof.kafka.transaction_index import AbortedTxn
from segproof.salvaging.saved_transactions import Break, Transaction

DECIDE = (
    "decide by another replica, or by what the application of the producer knows, before you serve"
    " this partition"
)
RECOVERED = "A broker that recovers this log after a crash reads only the log, and"


class Fate(Enum):
    """What the old files say of a transaction at a gap."""

    SPANS = "it goes on after the gap, or nobody could tell the difference"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "it ended in the gap, and nothing says how"
    KEPT = "it ended, as files say that were made after the loss: how, was decided then"
    UNSURE = "it may have ended in the gap"


def words_of(
    one: Transaction,
    place: Break,
    fate: Fate,
    entry: AbortedTxn | None,
    hidden_from: int | None,
    *,
    is_aborted: bool,
) -> str:
    """Return what is lost, what readers of committed data get, and how to decide.

    `hidden_from` is a record that a reader may skip where an entry without a marker is kept;
    `is_aborted` says how the next marker of the producer ends its transaction.
    """
    at_end = place.last == INT64_MAX
    where = f"an offset from {place.first} " + ("on" if at_end else f"to {place.last}")
    if place.first == place.last:
        where = f"offset {place.first}"
    verb = "may be lost" if fate is Fate.UNSURE else "is lost"
    begin = (
        f"the end of the transaction of producer {one.producer_id} that begins at offset"
        f" {one.first} {verb}, at {where}"
    )
    if entry is not None:
        return begin + _words_of_abort(one, entry, hidden_from, at_end=at_end)
    rest = f"its records from {one.first} to {place.before}"
    is_joined = place.after is not None and is_aborted
    if fate is Fate.COMMITTED:
        joined = f". {RECOVERED} would hide them" if is_joined else ""
        if one.end is None and not joined:
            joined = f". {RECOVERED} has it open"
        told = "by the old files it was committed. Readers of committed data get"
        return f"{begin}: {told} {rest}{joined}"
    if fate is Fate.KEPT:
        joined = f". {RECOVERED} would hide them" if is_joined else f". {RECOVERED} has it open"
        told = (
            "by the old files it had ended. These were made after the loss, as by a salvage, and so"
            " it stays. Readers of committed data get"
        )
        return f"{begin}: {told} {rest}{joined if one.end is None or is_joined else ''}"
    unknown = "it ended, and no file says whether it was committed or aborted"
    if fate is Fate.UNKNOWN and place.after is None and one.end is None:
        return (
            f"{begin}: {unknown}. It stays open, and readers of committed data get nothing from"
            f" {one.first} on: {DECIDE}. If it was aborted, end it with `kafka-transactions.sh"
            " abort` once the broker runs. If it was committed, that hides its records: read them"
            " with read_uncommitted before, and write them again"
        )
    if fate is Fate.UNSURE:
        unknown = "no file says whether it ended there, and whether it was committed"
    get = f"get {rest}"
    if is_joined:
        get += f", and not those from {place.after} to {one.end}"
    elif is_aborted and fate is Fate.UNSURE:
        get = f"do not get {rest}"
    elif one.end is None and fate is Fate.UNSURE:
        get = (
            f"get nothing from {one.first} on until it is ended; `kafka-transactions.sh abort`"
            " hides its records"
        )
    return f"{begin}: {unknown}. Readers of committed data {get}: {DECIDE}"


def words_of_more(first: int) -> str:
    """Return what is said where offsets are lost at so many places that not all were looked at.

    `first` is the first offset of them.
    """
    return (
        "offsets are lost at so many places that not all were looked at: at least the transactions"
        f" that are told here have lost their ends, or may have. From offset {first} on others may"
        f" have lost theirs: {DECIDE}"
    )


def _words_of_abort(
    one: Transaction, entry: AbortedTxn, hidden_from: int | None, *, at_end: bool
) -> str:
    """Return the words of a transaction that was aborted, by the old transaction index."""
    told = f": the old transaction index says that it was aborted at {entry.last_offset}"
    if at_end:
        return (
            f"{told}. Readers of committed data get nothing from {one.first} on until it is ended:"
            " end it with `kafka-transactions.sh abort` once the broker runs"
        )
    told += ". Its entry is kept, so readers of committed data do not get its records"
    if hidden_from is None:
        return told
    return (
        f"{told}. In the same fetch they may also skip committed records of this producer, from"
        f" {hidden_from} up to its next ABORT marker: a fetch from {entry.last_offset + 1} on gets"
        f" them. {RECOVERED} would show the aborted records: take this partition from another"
        " replica, if one is whole"
    )
