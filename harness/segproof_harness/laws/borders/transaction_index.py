# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of a transaction index."""

from segproof.findings import Severity
from segproof_harness.laws.borders.border import DIRECTORY, Border, Due, Files
from segproof_harness.laws.borders.log_files import (
    BASE,
    aborted,
    batch,
    marker,
    name,
    segment,
    with_byte,
)

ABORTED = name(BASE, ".txnindex")


def _of(offset: int, sequence: int = 0, producer_id: int = 7) -> bytes:
    """Return a batch of one record in a transaction."""
    return batch(
        offset, producer_id=producer_id, producer_epoch=0, base_sequence=sequence,
        is_transactional=True,
    )  # fmt: skip


PLAIN = batch(BASE)
LOG = PLAIN + _of(BASE + 1) + _of(BASE + 2, 1) + marker(BASE + 3) + batch(BASE + 4)
"""A transaction of producer 7 from offset 1001 on, aborted at 1003."""
TWO = _of(BASE) + marker(BASE + 1) + _of(BASE + 2, 1) + marker(BASE + 3)
"""Two transactions of producer 7, aborted at offsets 1001 and 1003."""
RIGHT = aborted(BASE + 1, BASE + 3)
OWN = "the offset of an ABORT marker of this producer"
VERSION = "the version of the entry, which the model's entries do not keep"


GAP = _of(BASE) + _of(BASE + 2, 1) + marker(BASE + 3)
"""The log lacks offset 1001."""
NO_MARKER = _of(BASE) + batch(BASE + 2)
LOST = name(BASE, ".log")


def _due_marker(offset: int) -> Due:
    """Return what is due where the marker at an offset is lost."""
    return Due(LOST, None, f"an ABORT marker at offset {offset}", "none", Severity.WARNING)


MARKER_DUE = _due_marker(BASE + 1)


UNSURE = _of(BASE) + with_byte(marker(BASE + 1), 20, marker(BASE + 1)[20] ^ 1) + batch(BASE + 2)
"""The marker may be right: its checksum is wrong."""
TORN = PLAIN + batch(BASE + 1)[:-1]
IN_DOUBT = "its law holds for what can be read"


def _index(*entries: bytes, log: bytes = LOG) -> Files:
    return segment(log, transactions=b"".join(entries))


def _range(first: int, last: int, stable: int | None = None) -> Files:
    return _index(aborted(first, last, stable))


def _due_end(following: int) -> Due:
    """Return what is due where the marker before a transaction is lost."""
    expected = f"a marker between the offsets {BASE} and {following}"
    return Due(LOST, None, expected, "none", Severity.WARNING)


def _two(first: int) -> Files:
    """Return two aborted transactions; by its entry, the second begins at offset `first`."""
    return _index(aborted(BASE, BASE + 1), aborted(first, BASE + 3), log=TWO)


def _spanning(*entries: bytes) -> Files:
    """Return a transaction that begins in one segment and is aborted in the next."""
    return {
        **segment(_of(BASE)),
        **segment(marker(BASE + 1), transactions=b"".join(entries), base=BASE + 1),
    }


def _beside_next(entry: bytes) -> Files:
    """Return a transaction without a marker, and the segment that begins two offsets after it."""
    return {
        **segment(_of(BASE), transactions=entry),
        **segment(batch(BASE + 2), base=BASE + 2),
    }


BORDERS = (
    # whole entries of version 0
    Border(
        "TXNIDX-1", "an entry, or one byte less",
        _index(RIGHT), _index(RIGHT[:-1]), Due(ABORTED, 0, 0, 33),
    ),
    Border(
        "TXNIDX-1", "an entry, or one byte more",
        _index(RIGHT), _index(RIGHT, b"\0"), Due(ABORTED, 34, 34, 35),
    ),
    Border(
        "TXNIDX-1", "version 0, or 1",
        _index(RIGHT), _index(b"\0\1" + RIGHT[2:]), Due(ABORTED, 0, 0, 1),
        not_by_the_model=VERSION,
    ),
    Border(
        "TXNIDX-1", "version 0, or -1",
        _index(RIGHT), _index(b"\xff\xff" + RIGHT[2:]), Due(ABORTED, 0, 0, -1),
        not_by_the_model=VERSION,
    ),
    Border(
        "TXNIDX-1", "version 0 in the second entry, or 256",
        _two(BASE + 2),
        _index(aborted(BASE, BASE + 1), b"\1\0" + aborted(BASE + 2, BASE + 3)[2:], log=TWO),
        Due(ABORTED, 34, 0, 256),
        not_by_the_model=VERSION,
    ),
    # range
    Border(
        "DISK-21", "the last offset is the base, or below",
        _range(0, BASE), _range(0, BASE - 1), Due(ABORTED, 0, "1000 or more", 999),
    ),
    Border(
        "DISK-21", "the last offset of the second entry is one more, or the same",
        _index(aborted(BASE, BASE + 1), aborted(BASE, BASE + 2)),
        _index(aborted(BASE, BASE + 1), aborted(BASE, BASE + 1)),
        Due(ABORTED, 34, "more than the entry before has", BASE + 1),
    ),
    Border(
        "DISK-21", "the first offset is 0, or below",
        _range(0, BASE + 3), _range(-1, BASE + 3),
        Due(ABORTED, 0, "0 to the last offset", -1),
    ),
    Border(
        "DISK-21", "the first offset is the last offset, or beyond",
        _range(BASE + 3, BASE + 3), _range(BASE + 4, BASE + 3),
        Due(ABORTED, 0, "0 to the last offset", BASE + 4),
    ),
    Border(
        "DISK-21", "the last stable offset is 0, or below",
        _range(BASE + 1, BASE + 3, 0), _range(BASE + 1, BASE + 3, -1),
        Due(ABORTED, 0, "0 to the last offset + 1", -1),
    ),
    Border(
        "DISK-21", "the last stable offset is the last offset + 1, or beyond",
        _range(BASE + 1, BASE + 3, BASE + 4), _range(BASE + 1, BASE + 3, BASE + 5),
        Due(ABORTED, 0, "0 to the last offset + 1", BASE + 5),
    ),
    # the marker of an entry
    Border(
        "DISK-11", "the last offset is the marker's, or one less",
        _range(BASE + 1, BASE + 3), _range(BASE + 1, BASE + 2), Due(ABORTED, 0, OWN, BASE + 2),
    ),
    Border(
        "DISK-11", "the last offset is the marker's, or one more",
        _range(BASE + 1, BASE + 3), _range(BASE + 1, BASE + 4), Due(ABORTED, 0, OWN, BASE + 4),
    ),
    Border(
        "DISK-11", "the entry is of the marker's producer, or the next one",
        _index(RIGHT), _index(aborted(BASE + 1, BASE + 3, producer_id=8)),
        Due(ABORTED, 0, OWN, BASE + 3),
    ),
    Border(
        "DISK-11", "the marker aborts, or commits",
        _index(aborted(BASE, BASE + 1), log=_of(BASE) + marker(BASE + 1)),
        _index(aborted(BASE, BASE + 1), log=_of(BASE) + marker(BASE + 1, "COMMIT")),
        Due(ABORTED, 0, OWN, BASE + 1),
    ),
    Border(
        "DISK-11", "the entry begins with the first batch of the transaction, or after",
        _range(BASE + 1, BASE + 3), _range(BASE + 2, BASE + 3),
        Due(ABORTED, 0, "0 to 1001", BASE + 2),
    ),
    Border(
        "DISK-11", "the entry begins after the producer's previous marker, or with it",
        _two(BASE + 2), _two(BASE + 1),
        Due(ABORTED, 34, f"{BASE + 2} to {BASE + 2}", BASE + 1),
    ),
    Border(
        "DISK-11", "the offset is one of a batch with a wrong checksum, or the next",
        _index(aborted(BASE, BASE + 1), log=UNSURE), _index(aborted(BASE, BASE + 2), log=UNSURE),
        Due(ABORTED, 0, OWN, BASE + 2), not_by_the_model=IN_DOUBT,
    ),
    Border(
        "DISK-11", "the offset is one of a batch with a wrong checksum, or the one before",
        _index(aborted(BASE, BASE + 1), log=UNSURE), _index(aborted(BASE, BASE), log=UNSURE),
        Due(ABORTED, 0, OWN, BASE), not_by_the_model=IN_DOUBT,
    ),
    Border(
        "DISK-11", "the offset lies behind what can be read of the log, or is the last read",
        _index(aborted(BASE, BASE + 1), log=TORN), _index(aborted(BASE, BASE), log=TORN),
        Due(ABORTED, 0, OWN, BASE), not_by_the_model=IN_DOUBT,
    ),
    # a marker that the log lacks
    Border(
        "DISK-74", "an entry begins with the transaction before a gap, or with a batch after it",
        _index(aborted(BASE, BASE + 3), log=GAP), _index(aborted(BASE + 2, BASE + 3), log=GAP),
        _due_end(BASE + 2),
    ),
    Border(
        "DISK-74", "an entry begins with the transaction before a gap, or in the gap",
        _index(aborted(BASE, BASE + 3), log=GAP), _index(aborted(BASE + 1, BASE + 3), log=GAP),
        _due_end(BASE + 1),
    ),
    Border(
        "DISK-74", "the offset of a marker is there, or missing",
        _index(aborted(BASE, BASE + 1), log=_of(BASE) + marker(BASE + 1) + batch(BASE + 2)),
        _index(aborted(BASE, BASE + 1), log=NO_MARKER),
        MARKER_DUE,
    ),
    Border(
        "DISK-74", "the log has no batch of the transaction without a marker, or one",
        _index(aborted(BASE, BASE + 1, producer_id=8), log=NO_MARKER),
        _index(aborted(BASE, BASE + 1), log=NO_MARKER),
        MARKER_DUE,
    ),
    Border(
        "DISK-74", "the marker is right, or its checksum is wrong",
        _index(aborted(BASE, BASE + 1), log=_of(BASE) + marker(BASE + 1) + batch(BASE + 2)),
        _index(aborted(BASE, BASE + 1), log=UNSURE),
        MARKER_DUE,
    ),
    Border(
        "DISK-74", "the log begins with the transaction without a marker, or after it",
        _index(aborted(BASE, BASE + 1), log=batch(BASE) + batch(BASE + 2)),
        _index(aborted(BASE - 1, BASE + 1), log=batch(BASE) + batch(BASE + 2)),
        MARKER_DUE,
    ),
    Border(
        "DISK-74", "the log ends with the marker, or before it",
        _index(aborted(BASE, BASE + 1), log=_of(BASE) + marker(BASE + 1)),
        _index(aborted(BASE, BASE + 1), log=_of(BASE)),
        MARKER_DUE,
    ),
    Border(
        "DISK-74", "an entry ends before the base offset, or at it",
        _index(aborted(BASE - 2, BASE - 1), log=batch(BASE + 1)),
        _index(aborted(BASE - 2, BASE), log=batch(BASE + 1)),
        _due_marker(BASE),
    ),
    Border(
        "DISK-74", "an entry ends with the first offset of the next segment, or before it",
        _beside_next(aborted(BASE, BASE + 2)), _beside_next(aborted(BASE, BASE + 1)),
        MARKER_DUE,
    ),
    # the entry of a marker
    Border(
        "DISK-12", "the entry is there, or the file is empty",
        _index(RIGHT), _index(), Due(ABORTED, None, BASE + 3),
    ),
    Border(
        "DISK-12", "the file is there, or not",
        _index(RIGHT), segment(LOG),
        Due(name(BASE, ".log"), None, f"{DIRECTORY}/{ABORTED}", "no file"),
    ),
    Border(
        "DISK-12", "the first of two transactions has its entry, or not",
        _two(BASE + 2), _index(aborted(BASE + 2, BASE + 3), log=TWO),
        Due(ABORTED, None, BASE + 1),
    ),
    Border(
        "DISK-12", "a marker without a batch of its transaction, or with one",
        _index(log=PLAIN + marker(BASE + 1)), _index(log=_of(BASE) + marker(BASE + 1)),
        Due(ABORTED, None, BASE + 1),
    ),
    Border(
        "DISK-12", "the transaction is committed, or aborted",
        _index(log=_of(BASE) + marker(BASE + 1, "COMMIT")),
        _index(log=_of(BASE) + marker(BASE + 1)),
        Due(ABORTED, None, BASE + 1),
    ),
    Border(
        "DISK-12", "the entry of a transaction from the segment before is there, or not",
        _spanning(aborted(BASE, BASE + 1)), _spanning(),
        Due(name(BASE + 1, ".txnindex"), None, BASE + 1),
    ),
)  # fmt: skip
