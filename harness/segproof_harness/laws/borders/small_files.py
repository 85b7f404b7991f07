# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of the small files in a partition and in a data directory."""

from segproof.checksums import crc32c
from segproof.findings import Severity
from segproof.layouts import kafka as layouts
from segproof_harness.laws.borders.border import Border, Content, Due, Files, Zeros
from segproof_harness.laws.borders.log_files import BASE, batch, name, segment

LOG_NAME = name(BASE, ".log")
EPOCHS, METADATA = "leader-epoch-checkpoint", "partition.metadata"
RECOVERY, START, HIGH_WATERMARK, CLEANER = (
    f"../{one}-offset-checkpoint"
    for one in ("recovery-point", "log-start", "replication", "cleaner")
)
SHUTDOWN = "../.kafka_cleanshutdown"
END = BASE + 3
"""The offset after the last batch of the log."""
PLAIN = b"".join(batch(BASE + number) for number in range(3))
NOTE, WARNING = Severity.NOTE, Severity.WARNING


# --- snapshots of the producers ------------------------------------------------------------------


def _of(offset: int, sequence: int, *, is_transactional: bool = False) -> bytes:
    return batch(
        offset, producer_id=7, producer_epoch=2, base_sequence=sequence,
        is_transactional=is_transactional,
    )  # fmt: skip


PRODUCED = _of(BASE, 0) + _of(BASE + 1, 1) + _of(BASE + 2, 2)
BEGUN = batch(BASE) + _of(BASE + 1, 0, is_transactional=True)
BEGUN += _of(BASE + 2, 1, is_transactional=True)
"""A transaction of producer 7 is open from offset 1001 on."""


def _entry(
    producer_id: int = 7, epoch: int = 2, sequence: int = 2, last: int = END - 1, first: int = -1
) -> bytes:
    """Return an entry of a snapshot; `first` is where its open transaction begins."""
    return layouts.SNAPSHOT_ENTRY.pack(producer_id, epoch, sequence, last, 0, 1, 0, first)


def _snapshot(*entries: bytes, version: int = 1, count: int | None = None) -> bytes:
    stored = len(entries) if count is None else count
    data = bytearray(layouts.SNAPSHOT.pack(version, 0, stored) + b"".join(entries))
    layouts.SNAPSHOT["crc"].put(data, crc32c(data[layouts.SNAPSHOT["crc"].end :]))
    return bytes(data)


def _with_snapshot(data: Content, log: bytes = PRODUCED, offset: int = END) -> Files:
    return {**segment(log), name(offset, ".snapshot"): data}


SNAPSHOT = name(END, ".snapshot")
RIGHT = _snapshot(_entry())


def _read(bound: str, data: bytes, expected: object, actual: object) -> Border:
    """Return the border between a right snapshot and one that can't be read."""
    due = Due(SNAPSHOT, None, expected, actual, WARNING)
    return Border("PROD-3", bound, _with_snapshot(RIGHT), _with_snapshot(data), due)


def _told(
    bound: str, entry: bytes, log: bytes = PRODUCED, right: bytes = _entry()
) -> Border:  # fmt: skip
    """Return the border between a right entry and one that the log denies."""
    return Border(
        "PROD-14", bound, _with_snapshot(_snapshot(right), log),
        _with_snapshot(_snapshot(entry), log), Due(SNAPSHOT, 10, None, 7, WARNING),
    )  # fmt: skip


def _from_zero(entry: bytes, batches: int = 2) -> Files:
    """Return a log from offset 0 on with batches of one record, and a snapshot at its end."""
    log = b"".join(_of(number, number) for number in range(batches))
    return {**segment(log, base=0), name(batches, ".snapshot"): _snapshot(entry)}


OPEN = _entry(sequence=1, first=BASE + 1)
BROKEN_SUM = RIGHT[:5] + bytes([RIGHT[5] ^ 1]) + RIGHT[6:]
ONE_MORE = _snapshot(_entry(), count=2)

SNAPSHOTS = (
    Border(
        "PROD-3", "an empty snapshot of 10 bytes, or of 9",
        _with_snapshot(_snapshot()), _with_snapshot(_snapshot()[:-1]),
        Due(SNAPSHOT, None, None, 9, WARNING),
    ),
    _read("the snapshot is whole, or lacks its last byte", RIGHT[:-1], 56, 55),
    _read("the version is 1, or 2", _snapshot(_entry(), version=2), 1, 2),
    _read("the version is 1, or 0", _snapshot(_entry(), version=0), 1, 0),
    _read(
        "the checksum is right, or one bit of it is wrong", BROKEN_SUM,
        crc32c(RIGHT[6:]), crc32c(RIGHT[6:]) ^ 1,
    ),
    _read(
        "the last byte is right, or one bit of it is wrong", RIGHT[:-1] + b"\xfe",
        crc32c(RIGHT[6:-1] + b"\xfe"), crc32c(RIGHT[6:]),
    ),
    _read("the count is that of the entries, or one more", ONE_MORE, 102, 56),
    _read("the count is not negative, or is", _snapshot(count=-1), -36, 10),
    Border(
        "PROD-3", "a file of 6 MiB is read, or one byte more is not",
        _with_snapshot(Zeros(6 << 20)), _with_snapshot(Zeros((6 << 20) + 1)),
        Due(SNAPSHOT, None, 6 << 20, (6 << 20) + 1, WARNING), Due(SNAPSHOT, None, 1, 0, WARNING),
        not_by_the_model="it is given bytes",
    ),
    Border(
        "PROD-3", "a snapshot that is verified alone is whole, or lacks its last byte",
        _with_snapshot(RIGHT), _with_snapshot(RIGHT[:-1]), Due(SNAPSHOT, None, 56, 55, WARNING),
        below=SNAPSHOT,
    ),
    # what is before it
    Border(
        "DISK-35", "the last offset is below the snapshot's, or the same",
        _with_snapshot(RIGHT), _with_snapshot(_snapshot(_entry(last=END))),
        Due(SNAPSHOT, None, f"below {END}", END),
    ),
    Border(
        "DISK-35", "the transaction begins below the snapshot's offset, or with it",
        _with_snapshot(_snapshot(_entry(first=END - 1))),
        _with_snapshot(_snapshot(_entry(first=END))), Due(SNAPSHOT, None, f"below {END}", END),
    ),
    Border(
        "DISK-36", "the snapshot is of the end of the log, or of one offset more",
        _with_snapshot(RIGHT), _with_snapshot(_snapshot(), offset=END + 1),
        Due(name(END + 1, ".snapshot"), None, f"{END} or less", END + 1, WARNING),
    ),
    # what the log says
    _told("the last sequence is that of the log, or one more", _entry(sequence=3)),
    _told("the last sequence is that of the log, or one less", _entry(sequence=1)),
    _told("the epoch is that of the log, or one less", _entry(epoch=1)),
    _told("the epoch is that of the log, or one more", _entry(epoch=3)),
    _told("the last offset is that of the log, or the one before", _entry(1 + 6, 2, 1, END - 2)),
    Border(
        "PROD-14", "the last offset is before the log, or the first in it",
        _with_snapshot(_snapshot(_entry(last=BASE - 1)), PLAIN),
        _with_snapshot(_snapshot(_entry(last=BASE)), PLAIN), Due(SNAPSHOT, 10, None, 7, WARNING),
    ),
    Border(
        "PROD-14", "the second entry is right, or has another sequence",
        _with_snapshot(_snapshot(_entry(5, last=-1), _entry())),
        _with_snapshot(_snapshot(_entry(5, last=-1), _entry(sequence=3))),
        Due(SNAPSHOT, 56, None, 7, WARNING),
    ),
    Border(
        "PROD-14", "the last offset is 1, the second of the log, or 0",
        _from_zero(_entry(sequence=1, last=1)), _from_zero(_entry(sequence=0, last=0)),
        Due(name(2, ".snapshot"), 10, None, 7, WARNING),
    ),
    Border(
        "PROD-14", "the sequence of offset 0, all that the log has, is right, or one more",
        _from_zero(_entry(sequence=0, last=0), 1), _from_zero(_entry(sequence=1, last=0), 1),
        Due(name(1, ".snapshot"), 10, None, 7, WARNING),
    ),
    _told("the transaction begins as in the log, or later", _entry(7, 2, 1, END - 1, BASE + 2),
          BEGUN, OPEN),
    _told("the transaction begins as in the log, or is none of a producer without batches",
          _entry(sequence=-1, last=-1), BEGUN, OPEN),
    Border(
        "DISK-74", "a transaction of the log is open, or has ended by a snapshot that knows its"
        " last batch",
        _with_snapshot(_snapshot(OPEN), BEGUN),
        _with_snapshot(_snapshot(_entry(sequence=1)), BEGUN),
        Due(SNAPSHOT, 10, f"a marker after offset {BASE + 1}", "none", WARNING),
        not_by_the_model="it is given a log and its transaction index",
    ),
    _told("no transaction is open, or one that the log does not have", _entry(first=BASE)),
    Border(
        "PROD-14", "the producer with an open transaction has an entry, or none",
        _with_snapshot(_snapshot(OPEN), BEGUN),
        _with_snapshot(_snapshot(_entry(8, last=-1)), BEGUN),
        Due(SNAPSHOT, None, None, 7, WARNING),
    ),
)  # fmt: skip


# --- checkpoints and texts -----------------------------------------------------------------------


def _epochs(text: str) -> Files:
    return {**segment(PLAIN), EPOCHS: text.encode("ascii")}


def _text(
    law: str, bound: str, lawful: str, unlawful: str,
    expected: object = None, actual: object = None,
) -> Border:  # fmt: skip
    """Return the border between two texts of a leader epoch checkpoint."""
    due = Due(EPOCHS, None, expected, actual)
    return Border(law, bound, _epochs(lawful), _epochs(unlawful), due)


def _rise(bound: str, second: str, words: str = "an epoch above 1 and an offset above 5") -> Border:
    return _text(
        "EPOCH-1", bound, "0\n2\n1 5\n2 6\n", f"0\n2\n1 5\n{second}\n", words, second
    )  # fmt: skip


def _metadata(text: bytes) -> Files:
    return {**segment(PLAIN), METADATA: text}


def _id(bound: str, lawful: bytes, unlawful: bytes) -> Border:
    return Border("META-2", bound, _metadata(lawful), _metadata(unlawful), Due(METADATA))


def _offset(checkpoint: str, offset: int) -> Files:
    return {**segment(PLAIN), checkpoint: f"0\n1\nt 0 {offset}\n".encode("ascii")}


def _beyond(checkpoint: str, severity: Severity) -> Border:
    """Return the border of an offset in a checkpoint of the data directory."""
    return Border(
        "DISK-38", f"{checkpoint[3:]} has the end of the log, or one more",
        _offset(checkpoint, END), _offset(checkpoint, END + 1),
        Due("", None, f"{END} or less", END + 1, severity),
    )  # fmt: skip


def _marker(bound: str, lawful: bytes, unlawful: bytes) -> Border:
    due = Due(
        SHUTDOWN, None, '{"version": 0, "brokerEpoch": NUMBER}', unlawful.decode("ascii"), NOTE
    )
    sides = [{**segment(PLAIN), SHUTDOWN: text} for text in (lawful, unlawful)]
    return Border("DISK-40", bound, sides[0], sides[1], due, below="..")


TOPIC_ID = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"
ZERO_ID = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"
EPOCH_JSON = b'{"version": 0, "brokerEpoch": 1}'

TEXTS = (
    _text("CKPT-3", "the version is 0, or 1", "0\n0\n", "1\n0\n", 0, 1),
    _text("CKPT-3", "the version is 0, or -1", "0\n0\n", "-1\n0\n", 0, -1),
    _text("CKPT-3", "the version is a number, or a letter", "0\n0\n", "x\n0\n"),
    _text("CKPT-3", "the count is a number, or a letter", "0\n0\n", "0\nx\n"),
    Border(
        "CKPT-3", "the count is 0, or negative", _epochs("0\n0\n"), _epochs("0\n-1\n"),
        Due(EPOCHS), not_by_the_model="its law is about I/O errors, and Kafka's is another",
    ),
    _text("CKPT-3", "the count is that of the lines, or one more",
          "0\n1\n0 0\n", "0\n2\n0 0\n", 2, 1),
    _text("CKPT-3", "the count is that of the lines, or one less",
          "0\n1\n0 0\n", "0\n0\n0 0\n", 0, 1),
    _text("CKPT-3", "a line has two fields, or three", "0\n1\n0 0\n", "0\n1\n0 0 0\n"),
    _text("CKPT-3", "a line has two fields, or one", "0\n1\n0 0\n", "0\n1\n0\n"),
    _text("CKPT-4", "the epoch is a number, or a letter", "0\n1\n0 0\n", "0\n1\nx 0\n"),
    _text("CKPT-4", "the offset is a number, or a letter", "0\n1\n0 0\n", "0\n1\n0 x\n"),
    _text("CKPT-4", "the epoch is the largest of 32 bits, or one more",
          f"0\n1\n{(1 << 31) - 1} 0\n", f"0\n1\n{1 << 31} 0\n"),
    _text("CKPT-4", "the offset is the largest of 64 bits, or one more",
          f"0\n1\n0 {(1 << 63) - 1}\n", f"0\n1\n0 {1 << 63}\n"),
    _rise("the second epoch is one more, or the same", "1 6"),
    _rise("the second epoch is one more, or one less", "0 6"),
    _rise("the second offset is one more, or one less", "2 4"),
    Border(
        "EPOCH-1", "the second entry has the offset of the first, or its epoch too",
        _epochs("0\n2\n1 5\n2 5\n"), _epochs("0\n2\n1 5\n1 5\n"),
        Due(EPOCHS, None, "an epoch above 1 and an offset above 5", "1 5"),
        still=Due(EPOCHS, None, "an epoch above 1 and an offset above 5", "2 5", WARNING),
    ),
    Border(
        "EPOCH-1", "the second offset is one more, or the same",
        _epochs("0\n2\n1 5\n2 6\n"), _epochs("0\n2\n1 5\n2 5\n"),
        Due(EPOCHS, None, "an epoch above 1 and an offset above 5", "2 5", WARNING),
    ),
    _text("EPOCH-1", "the first epoch is 0, or below", "0\n1\n0 0\n", "0\n1\n-1 0\n",
          "numbers from 0 on", "-1 0"),
    _text("EPOCH-1", "the first offset is 0, or below", "0\n1\n0 0\n", "0\n1\n0 -1\n",
          "numbers from 0 on", "0 -1"),
    _id("one bit of the topic id is set, or none", TOPIC_ID, ZERO_ID),
    _id("the version is 0, or -1", TOPIC_ID, TOPIC_ID.replace(b": 0", b": -1")),
    _id("the topic id has 22 characters, or 21", TOPIC_ID, TOPIC_ID[:-1]),
    _id("the topic id has 22 characters, or 23", TOPIC_ID, TOPIC_ID + b"A"),
    _marker("the marker is empty, or one letter", b"", b"x"),
    _marker("the marker has an epoch, or none", EPOCH_JSON, b'{"version": 0}'),
    _marker("the marker has a version, or none", EPOCH_JSON, b'{"brokerEpoch": 1}'),
    _marker("the epoch is an integer, or true", EPOCH_JSON, b'{"version": 0, "brokerEpoch": true}'),
    Border(
        "META-2", "a file that is verified alone has an id, or zero",
        _metadata(TOPIC_ID), _metadata(ZERO_ID), Due(METADATA), below=METADATA,
    ),
    Border(
        "CKPT-3", "a checkpoint that is verified alone is of version 0, or 1",
        _epochs("0\n0\n"), _epochs("1\n0\n"), Due(EPOCHS, None, 0, 1), below=EPOCHS,
    ),
    Border(
        "CKPT-3", "a checkpoint of offsets that is verified alone is of version 0, or 1",
        {**segment(PLAIN), RECOVERY: b"0\n0\n"}, {**segment(PLAIN), RECOVERY: b"1\n0\n"},
        Due(RECOVERY, None, 0, 1), below=RECOVERY,
        not_by_the_model="it is given the files of a partition",
    ),
    Border(
        "DISK-40", "a marker that is verified alone is empty, or one letter",
        {**segment(PLAIN), SHUTDOWN: b""}, {**segment(PLAIN), SHUTDOWN: b"x"},
        Due(SHUTDOWN, None, '{"version": 0, "brokerEpoch": NUMBER}', "x", NOTE), below=SHUTDOWN,
    ),
    # what a data directory says of its partitions
    _beyond(RECOVERY, WARNING), _beyond(HIGH_WATERMARK, WARNING), _beyond(CLEANER, WARNING),
    Border(
        "DISK-43", "the log start is the end of the log, or one more",
        _offset(START, END), _offset(START, END + 1), Due("", None, f"{END + 1} or more", END),
    ),
    Border(
        "DISK-39", "the partition in the checkpoint is there, or the next one is not",
        {**segment(PLAIN), RECOVERY: b"0\n1\nt 0 0\n"},
        {**segment(PLAIN), RECOVERY: b"0\n1\nt 1 0\n"},
        Due(RECOVERY, None, 0, 1, NOTE), below="..",
    ),
    Border(
        "DISK-39", "both partitions in the checkpoint are there, or one is",
        {**segment(PLAIN), f"../t-1/{LOG_NAME}": b"", CLEANER: b"0\n2\nt 0 0\nt 1 0\n"},
        {**segment(PLAIN), CLEANER: b"0\n2\nt 0 0\nt 1 0\n"},
        Due(CLEANER, None, 0, 1, NOTE), below="..",
    ),
)  # fmt: skip

BORDERS = SNAPSHOTS + TEXTS
