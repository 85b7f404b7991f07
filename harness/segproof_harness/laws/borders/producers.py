# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws along a whole log: leader epochs, producers and markers."""

from typing import Any

from segproof.findings import Severity
from segproof.kafka import write_empty_batch
from segproof_harness.laws.borders.border import Border, Due, Files
from segproof_harness.laws.borders.log_files import (
    BASE,
    batch,
    batch_of,
    marker,
    name,
    patched,
    segment,
    with_byte,
)

LOG_NAME, NEXT_NAME = name(BASE, ".log"), name(BASE + 1, ".log")
PRODUCER = 7
DAY_MS, HANGING_MS = 86_400_000, 20 * 60_000
SEQUENCE_MAX = 2147483647
HALF = 1 << 30
FIRST_OF: dict[str, Any] = {"base_sequence": 0}
NOTE, WARNING = Severity.NOTE, Severity.WARNING


def _led(offset: int, epoch: int) -> bytes:
    """Return a batch of a leader epoch."""
    return batch(offset, partition_leader_epoch=epoch)


def _of(
    offset: int, sequence: int, *, epoch: int = 0, time: int = 1, is_transactional: bool = False
) -> bytes:
    """Return a batch of one record of producer 7."""
    return batch(
        offset, time, producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence,
        is_transactional=is_transactional,
    )  # fmt: skip


def _begun(offset: int, sequence: int = 0, **options: int) -> bytes:
    return _of(offset, sequence, is_transactional=True, **options)


def _log(*batches: bytes) -> Files:
    return segment(b"".join(batches))


def _two_logs(first: bytes, second: bytes) -> Files:
    """Return two segments of one batch each."""
    return {**segment(first), **segment(second, base=BASE + 1)}


def _second(
    batches: tuple[bytes, bytes], expected: object, actual: object,
    severity: Severity = Severity.ERROR,
) -> Due:  # fmt: skip
    """Return the finding of the second batch of a log."""
    return Due(LOG_NAME, len(batches[0]), expected, actual, severity)


def _pair(
    law: str, bound: str, lawful: tuple[bytes, bytes], unlawful: tuple[bytes, bytes],
    expected: object, actual: object, severity: Severity = Severity.ERROR,
) -> list[Border]:  # fmt: skip
    """Return a border of two batches: in one log, and in two."""
    due = _second(unlawful, expected, actual, severity)
    beyond = Due(NEXT_NAME, 0, expected, actual, severity)
    return [
        Border(law, bound, _log(*lawful), _log(*unlawful), due),
        Border(law, f"{bound}, in two logs", _two_logs(*lawful), _two_logs(*unlawful), beyond),
    ]


def _severe(
    law: str, bound: str, milder: tuple[bytes, bytes], worse: tuple[bytes, bytes],
    expected: object, actual: object, severities: tuple[Severity, Severity],
) -> Border:  # fmt: skip
    still = _second(milder, expected, actual, severities[0])
    due = _second(worse, expected, actual, severities[1])
    return Border(law, bound, _log(*milder), _log(*worse), due, still)


def _control(key: bytes, value: bytes = b"\0\0\0\0\0\0") -> bytes:
    """Return a control batch of producer 7."""
    return batch(
        BASE, key=key, value=value, producer_id=PRODUCER, producer_epoch=0, is_control=True,
        is_transactional=True,
    )  # fmt: skip


def _wide_control(size: int) -> bytes:
    """Return a control batch of that many bytes; later versions of its value may be longer."""
    made = _control(END_KEY, bytes(size - 100))
    made = _control(END_KEY, bytes(2 * size - 100 - len(made)))
    assert len(made) == size
    return made


def _open(offset: int, *, last_marker_ms: int) -> Files:
    """Return an open transaction of producer 7 before two markers of producer 8."""
    return _log(
        _begun(offset),
        marker(offset + 1, "COMMIT", producer_id=8, timestamp=0),
        marker(offset + 2, "COMMIT", producer_id=8, timestamp=last_marker_ms),
    )


def _of_coordinator(epoch: int, offset: int) -> bytes:
    return marker(offset, "COMMIT", coordinator_epoch=epoch)


def _broken(data: bytes) -> bytes:
    """Return a batch with a wrong checksum."""
    return with_byte(data, 20, data[20] ^ 1)


def _without_records(offset: int, sequence: int) -> bytes:
    """Return a batch of producer 7 whose record compaction took."""
    return write_empty_batch(
        offset, offset, 1, producer_id=PRODUCER, producer_epoch=0, base_sequence=sequence
    )


def _none(offset: int, producer_id: int) -> bytes:
    """Return a batch with a sequence number, 5 or 7, of that producer."""
    return patched(_of(offset, 5 + 2 * (offset - BASE)), producer_id=producer_id)


END_KEY = b"\0\0\0\0"
A_MARKER = "a marker that ends it"
EMPTIED = write_empty_batch(
    BASE, BASE, 1, producer_id=PRODUCER, producer_epoch=9, base_sequence=-1, is_control=True
)
IN_TRANSACTION = "a batch of the transaction, or its marker"
NUMBERS = {f"../__consumer_offsets-0/{LOG_NAME}": b"".join((_of(BASE, 5), _of(BASE + 1, 7)))}
"""A coordinator's log, in whose partition no sequence number is judged."""

BORDERS = (
    # leader epochs
    *_pair(
        "DISK-28", "the second leader epoch is the same, or one less",
        (_led(BASE, 5), _led(BASE + 1, 5)), (_led(BASE, 5), _led(BASE + 1, 4)),
        "5 or more", 4,
    ),
    Border(
        "DISK-28", "after a batch without an epoch the epoch is as before, or one less",
        _log(_led(BASE, 5), _led(BASE + 1, -1), _led(BASE + 2, 5)),
        _log(_led(BASE, 5), _led(BASE + 1, -1), _led(BASE + 2, 4)),
        Due(LOG_NAME, 2 * len(_led(BASE, 5)), "5 or more", 4),
    ),
    Border(
        "DISK-28", "the epoch is unknown, or 0",
        _log(_led(BASE, 1), _led(BASE + 1, -1)), _log(_led(BASE, 1), _led(BASE + 1, 0)),
        Due(LOG_NAME, len(_led(BASE, 1)), "1 or more", 0),
    ),
    # producer epochs
    *_pair(
        "DISK-29", "the second epoch is the same, or one less",
        (_of(BASE, 0, epoch=1), _of(BASE + 1, 1, epoch=1)),
        (_of(BASE, 0, epoch=1), _of(BASE + 1, 0)), "1 or more", 0,
    ),
    *_pair(
        "DISK-29", "the epoch of a marker is the same, or one less",
        (_begun(BASE, epoch=1), marker(BASE + 1, producer_epoch=1)),
        (_begun(BASE, epoch=1), marker(BASE + 1)), "1 or more", 0,
    ),
    Border(
        "DISK-29", "a marker of epoch 9 is without its record, or whole",
        _log(EMPTIED, _of(BASE + 1, 0)),
        _log(marker(BASE, producer_epoch=9), _of(BASE + 1, 0)),
        Due(LOG_NAME, len(marker(BASE)), "9 or more", 0),
    ),
    Border(
        "DISK-29", "the lower epoch is of another producer, or of the same",
        _log(_of(BASE, 0, epoch=1), batch(BASE + 1, producer_id=8, producer_epoch=0, **FIRST_OF)),
        _log(_of(BASE, 0, epoch=1), _of(BASE + 1, 0)),
        _second((_of(BASE, 0), b""), "1 or more", 0),
    ),
    Border(
        "DISK-29", "the batch of the lower epoch has a wrong checksum, or the right one",
        _log(_of(BASE, 0, epoch=1), _broken(_of(BASE + 1, 0)), batch(BASE + 2)),
        _log(_of(BASE, 0, epoch=1), _of(BASE + 1, 0), batch(BASE + 2)),
        _second((_of(BASE, 0), b""), "1 or more", 0),
    ),
    _severe(
        "DISK-29", "the timestamps are a day apart, or one millisecond less",
        (_of(BASE, 0, epoch=1), _of(BASE + 1, 0, time=1 + DAY_MS)),
        (_of(BASE, 0, epoch=1), _of(BASE + 1, 0, time=DAY_MS)),
        "1 or more", 0, (WARNING, Severity.ERROR),
    ),
    # sequence numbers that come again
    *_pair(
        "DISK-30", "the second sequence number is one more, or the same",
        (_of(BASE, 5), _of(BASE + 1, 6)), (_of(BASE, 5), _of(BASE + 1, 5)), 6, 5,
    ),
    Border(
        "DISK-30", "the producer begins again with 0, or with 1",
        _log(_of(BASE, 5), _of(BASE + 1, 0)), _log(_of(BASE, 5), _of(BASE + 1, 1)),
        _second((_of(BASE, 5), b""), 6, 1),
    ),
    Border(
        "DISK-30", "0 follows 1, or the same batch of 0 comes again",
        _log(_of(BASE, 1), _of(BASE + 1, 0)), _log(_of(BASE, 0), _of(BASE + 1, 0)),
        _second((_of(BASE, 0), b""), 1, 0),
    ),
    Border(
        "DISK-30", "the number is half of all before, or less",
        _log(_of(BASE, HALF + 1), _of(BASE + 1, 1)), _log(_of(BASE, HALF + 1), _of(BASE + 1, 2)),
        _second((_of(BASE, 1), b""), HALF + 2, 2),
    ),
    Border(
        "DISK-30", "the number comes again in the next epoch, or in the same",
        _log(_of(BASE, 5), _of(BASE + 1, 5, epoch=1)), _log(_of(BASE, 5), _of(BASE + 1, 5)),
        _second((_of(BASE, 5), b""), 6, 5),
    ),
    Border(
        "DISK-30", "a batch whose records compaction took is followed, or repeated",
        _log(_without_records(BASE, 5), _of(BASE + 1, 6)),
        _log(_without_records(BASE, 5), _of(BASE + 1, 5)),
        Due(LOG_NAME, len(_without_records(BASE, 5)), 6, 5),
    ),
    Border(
        "DISK-30", "the producer begins again with a shorter batch, or with the same",
        _log(patched(_of(BASE, 0), last_offset_delta=1), _of(BASE + 2, 0)),
        _log(_of(BASE, 0), _of(BASE + 1, 0)), _second((_of(BASE, 0), b""), 1, 0),
    ),
    _severe(
        "DISK-30", "the timestamps are a day apart, or one millisecond less",
        (_of(BASE, 5), _of(BASE + 1, 5, time=1 + DAY_MS)),
        (_of(BASE, 5), _of(BASE + 1, 5, time=DAY_MS)), 6, 5, (WARNING, Severity.ERROR),
    ),
    # sequence numbers that go on
    *_pair(
        "DISK-31", "the second sequence number is one more, or two",
        (_of(BASE, 5), _of(BASE + 1, 6)), (_of(BASE, 5), _of(BASE + 1, 7)), 6, 7, WARNING,
    ),
    *_pair(
        "DISK-31", "a new epoch begins with 0, or with 1",
        (_of(BASE, 5), _of(BASE + 1, 0, epoch=1)), (_of(BASE, 5), _of(BASE + 1, 1, epoch=1)),
        0, 1, WARNING,
    ),
    *_pair(
        "DISK-31", "0 follows 2147483647, or 1 does",
        (_of(BASE, SEQUENCE_MAX), _of(BASE + 1, 0)), (_of(BASE, SEQUENCE_MAX), _of(BASE + 1, 1)),
        0, 1, WARNING,
    ),
    *_pair(
        "DISK-31", "the second sequence number is one more, or 0",
        (_of(BASE, 5), _of(BASE + 1, 6)), (_of(BASE, 5), _of(BASE + 1, 0)), 6, 0, WARNING,
    ),
    *_pair(
        "DISK-31", "the second sequence number is the same, or two more",
        (_of(BASE, 5), _of(BASE + 1, 5)), (_of(BASE, 5), _of(BASE + 1, 7)), 6, 7, WARNING,
    ),
    *_pair(
        "DISK-31", "the next epoch is lower, or the same",
        (_of(BASE, 5, epoch=1), _of(BASE + 1, 7)), (_of(BASE, 5), _of(BASE + 1, 7)),
        6, 7, WARNING,
    ),
    *_pair(
        "DISK-31", "there is no producer, or producer 0",
        (_none(BASE, -1), _none(BASE + 1, -1)), (_none(BASE, 0), _none(BASE + 1, 0)),
        6, 7, WARNING,
    ),
    *_pair(
        "DISK-31", "the second batch is of another producer, or of the same",
        (_of(BASE, 5), patched(_of(BASE + 1, 7), producer_id=8)),
        (_of(BASE, 5), _of(BASE + 1, 7)), 6, 7, WARNING,
    ),
    Border(
        "DISK-31", "a marker stands before the first batch, or another batch",
        _two_logs(marker(BASE), _of(BASE + 1, 5)), _two_logs(_of(BASE, 3), _of(BASE + 1, 5)),
        Due(NEXT_NAME, 0, 4, 5, WARNING),
    ),
    Border(
        "DISK-31", "the third log goes on from the second, or leaves a number out",
        {**_two_logs(_of(BASE, 5), _of(BASE + 1, 6)), **segment(_of(BASE + 2, 7), base=BASE + 2)},
        {**_two_logs(_of(BASE, 5), _of(BASE + 1, 6)), **segment(_of(BASE + 2, 8), base=BASE + 2)},
        Due(name(BASE + 2, ".log"), 0, 7, 8, WARNING),
    ),
    Border(
        "DISK-31", "a batch of two records needs two numbers, or is followed by the second",
        _log(patched(_of(BASE, 5), last_offset_delta=1), _of(BASE + 2, 7)),
        _log(patched(_of(BASE, 5), last_offset_delta=1), _of(BASE + 2, 8)),
        _second((_of(BASE, 5), b""), 7, 8, WARNING),
    ),
    _severe(
        "DISK-31", "an offset is missing between, or none is",
        (_of(BASE, 5), _of(BASE + 2, 7)), (_of(BASE, 5), _of(BASE + 1, 7)), 6, 7,
        (NOTE, WARNING),
    ),
    Border(
        "DISK-31", "the partition is of __consumer_offsets, or another one",
        NUMBERS, {**NUMBERS, **_log(_of(BASE, 5), _of(BASE + 1, 7))},
        _second((_of(BASE, 5), b""), 6, 7, WARNING), below="..",
        not_by_the_model="it does not know the name of the topic",
    ),
    # batches outside of their transaction
    *_pair(
        "DISK-44", "the next batch is of the transaction, or of none",
        (_begun(BASE), _begun(BASE + 1, 1)), (_begun(BASE), _of(BASE + 1, 1)),
        IN_TRANSACTION, "neither",
    ),
    Border(
        "DISK-44", "a marker lies between, or not",
        _log(_begun(BASE), marker(BASE + 1), _of(BASE + 2, 1)),
        _log(_begun(BASE), batch(BASE + 1), _of(BASE + 2, 1)),
        Due(LOG_NAME, len(_begun(BASE)) + len(batch(BASE + 1)), IN_TRANSACTION, "neither"),
    ),
    _severe(
        "DISK-44", "an offset is missing between, or none is",
        (_begun(BASE), _of(BASE + 2, 1)), (_begun(BASE), _of(BASE + 1, 1)),
        IN_TRANSACTION, "neither", (WARNING, Severity.ERROR),
    ),
    # markers
    *_pair(
        "DISK-34", "the second coordinator epoch is the same, or one less",
        (_of_coordinator(7, BASE), _of_coordinator(7, BASE + 1)),
        (_of_coordinator(7, BASE), _of_coordinator(6, BASE + 1)), "7 or more", 6, WARNING,
    ),
    Border(
        "DISK-34", "the lower epoch is of another producer, or of the same",
        _log(_of_coordinator(7, BASE), marker(BASE + 1, producer_id=8, coordinator_epoch=6)),
        _log(_of_coordinator(7, BASE), _of_coordinator(6, BASE + 1)),
        _second((marker(BASE), b""), "7 or more", 6, WARNING),
    ),
    Border(
        "DISK-33", "a batch of the transaction precedes the marker, or not",
        _log(_begun(BASE), marker(BASE + 1)), _log(marker(BASE)), Due(LOG_NAME, 0, 0, 1, NOTE),
    ),
    Border(
        "DISK-33", "one of two markers ends no transaction, or both",
        _log(marker(BASE), _begun(BASE + 1), marker(BASE + 2)),
        _log(marker(BASE), marker(BASE + 1, producer_id=8)), Due(LOG_NAME, 0, 0, 2, NOTE),
        still=Due(LOG_NAME, 0, 0, 1, NOTE),
    ),
    Border(
        "DISK-33", "the second marker has a batch of its own, or not",
        _log(_begun(BASE), marker(BASE + 1), _begun(BASE + 2, 1), marker(BASE + 3)),
        _log(_begun(BASE), marker(BASE + 1), marker(BASE + 2)),
        Due(LOG_NAME, len(_begun(BASE)) + len(marker(BASE)), 0, 1, NOTE),
    ),
    Border(
        "DISK-33", "the batch is in the segment before, or of another producer",
        _two_logs(_begun(BASE), marker(BASE + 1)),
        _two_logs(_begun(BASE), marker(BASE + 1, producer_id=8)), Due(NEXT_NAME, 0, 0, 1, NOTE),
    ),
    Border(
        "DISK-32", "a marker follows the transaction, or not",
        _log(_begun(BASE), marker(BASE + 1)), _log(_begun(BASE)),
        Due(LOG_NAME, None, A_MARKER, BASE, NOTE),
    ),
    Border(
        "DISK-32", "the marker is of the producer, or of the next one",
        _log(_begun(BASE), marker(BASE + 1)), _log(_begun(BASE), marker(BASE + 1, producer_id=8)),
        Due(LOG_NAME, None, A_MARKER, BASE, NOTE),
    ),
    Border(
        "DISK-32", "the marker is in the next segment, or in none",
        _two_logs(_begun(BASE), marker(BASE + 1)), _two_logs(_begun(BASE), batch(BASE + 1)),
        Due(LOG_NAME, None, A_MARKER, BASE, NOTE),
    ),
    Border(
        "DISK-32", "the batch that begins it has a wrong checksum, or the right one",
        _log(_broken(_begun(BASE)), batch(BASE + 1)), _log(_begun(BASE), batch(BASE + 1)),
        Due(LOG_NAME, None, A_MARKER, BASE, NOTE),
    ),
    Border(
        "DISK-32", "the markers after the beginning are 20 minutes apart, or less",
        _open(BASE, last_marker_ms=HANGING_MS - 1), _open(BASE, last_marker_ms=HANGING_MS),
        Due(LOG_NAME, None, A_MARKER, BASE, WARNING),
        still=Due(LOG_NAME, None, A_MARKER, BASE, NOTE),
    ),
    Border(
        "BATCH-19", "the key has 4 bytes, or 3",
        _log(_control(END_KEY)), _log(_control(END_KEY[:3])), Due(LOG_NAME, 0),
    ),
    Border(
        "BATCH-19", "the value has 6 bytes, or 5",
        _log(_control(END_KEY)), _log(_control(END_KEY, bytes(5))), Due(LOG_NAME, 0),
    ),
    Border(
        "BATCH-19", "the batch has 1 MiB, or one byte more",
        _log(_wide_control(1 << 20)), _log(_wide_control((1 << 20) + 1)), Due(LOG_NAME, 0),
        not_by_the_model="it reads a batch of each size",
    ),
    Border(
        "BATCH-19", "the version of the key is 0, or -1",
        _log(_control(END_KEY)), _log(_control(b"\xff\xff\0\0")), Due(LOG_NAME, 0),
    ),
    Border(
        "BATCH-19", "the version of the value is 0, or -1",
        _log(_control(END_KEY)), _log(_control(END_KEY, b"\xff\xff" + bytes(4))),
        Due(LOG_NAME, 0),
    ),
    Border(
        "BATCH-19", "the value is of another type, or of an end of a transaction",
        _log(_control(b"\0\0\0\2", b"")), _log(_control(b"\0\0\0\1", b"")), Due(LOG_NAME, 0),
    ),
    Border(
        "BATCH-19", "the batch has one record, or two",
        _log(marker(BASE)),
        _log(
            batch_of(
                BASE, marker(BASE)[61:] * 2, record_count=2, last_offset_delta=1,
                attributes=0x30, producer_id=PRODUCER, producer_epoch=0,
            )
        ),
        Due(LOG_NAME, 0),
    ),
)  # fmt: skip
