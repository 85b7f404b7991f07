# SPDX-License-Identifier: Apache-2.0
"""How to break a law: for each law that `verify` checks, a small damage to a real file.

A damage is done to a private copy of one of the directories that ship with the package.
Not covered: laws that need rights (DISK-1), a file that changes meanwhile (DISK-2), a file of
gigabytes (DISK-7) or a batch that inflates to more than memory (DISK-18).
"""

import gzip
import os
import shutil
import tempfile
from dataclasses import fields, replace
from functools import partial
from pathlib import Path
from typing import Any

from segproof.findings import Finding
from segproof.kafka import Record, write_batch, write_end_transaction_marker
from segproof.kafka.producer_snapshot import (
    BatchMetadata,
    ProducerStateEntry,
    read_snapshot,
    write_snapshot,
)
from segproof.kafka.record_batch import read_batch
from segproof.verification import verify
from segproof_harness.files.shipped_directories import KAFKA, partition_of
from segproof_harness.laws.broken_stores import STORE_EXAMPLES
from segproof_harness.laws.file_damages import (
    Example,
    add,
    cut,
    flip,
    int16,
    int32,
    int64,
    later,
    overwrite,
    remove,
    rename,
    sum_again,
    swap,
    write,
)

DATA = KAFKA
PLAIN, TRANSACTIONS, LEGACY, KEYLESS = "plain", "txn-a", "v1-gzip", "unclean-before"
FIRST = "00000000000000000000"
SECOND = "00000000000000000060"
THIRD = "00000000000000000162.log"
LOG, INDEX, TIMES, ABORTED = (
    FIRST + suffix for suffix in (".log", ".index", ".timeindex", ".txnindex")
)

SNAPSHOT = "00000000000000001014.snapshot"
METADATA_SNAPSHOT = "00000000000000000060-0000000001.checkpoint"
EPOCHS, METADATA = "leader-epoch-checkpoint", "partition.metadata"
RECOVERY, START = "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"
FAR = b"0\n1\nplain 0 999999\n"
ZERO_TOPIC = b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA"


@later
def patch_batch(folder: Path, name: str, field: int, data: bytes) -> None:
    """Replace bytes in the first batch of a log, of magic 2, and make its checksum right again."""
    path = folder / name
    log = path.read_bytes()
    size = read_batch(log).size_bytes
    batch = bytearray(log[:size])
    batch[field : field + len(data)] = data
    sum_again(batch)
    path.write_bytes(bytes(batch) + log[size:])


@later
def replace_log(folder: Path, name: str, *batches: bytes) -> None:
    """Let a log hold exactly these batches, and remove its indexes."""
    (folder / name).write_bytes(b"".join(batches))
    for suffix in (".index", ".timeindex", ".txnindex"):
        (folder / name).with_suffix(suffix).unlink(missing_ok=True)


def _batch(base_offset: int, timestamps: tuple[int, ...] = (1, 2)) -> bytes:
    records = [
        Record(base_offset + number, timestamp, None, b"value")
        for number, timestamp in enumerate(timestamps)
    ]
    return write_batch(records, base_offset=base_offset)


def _compressed_messages(magic: int) -> bytes:
    timestamp = 1 if magic else -1
    records = [Record(offset, timestamp, None, b"value") for offset in range(3)]
    return write_batch(records, base_offset=0, magic=magic, compression="gzip")


def _zstd_message() -> bytes:
    message = bytearray(_compressed_messages(1))
    message[17] = 4
    sum_again(message)
    return bytes(message)


def _uncounted() -> bytes:
    batch = bytearray(_batch(0))
    batch[57:61] = bytes(4)
    sum_again(batch)
    return bytes(batch)


def _producer_batch(offset: int, sequence: int, *, is_transactional: bool = False) -> bytes:
    return write_batch(
        [Record(offset, 1, None, b"value")], base_offset=offset, producer_id=7, producer_epoch=0,
        base_sequence=sequence, is_transactional=is_transactional,
    )  # fmt: skip


def _marker(offset: int, coordinator_epoch: int) -> bytes:
    return write_end_transaction_marker(
        "COMMIT", offset=offset, timestamp=1, producer_id=7, producer_epoch=0,
        coordinator_epoch=coordinator_epoch,
    )  # fmt: skip


def _change_snapshot(folder: Path) -> None:
    """Give the first producer of a snapshot another last sequence number."""
    path = folder / SNAPSHOT
    first, *others = read_snapshot(path.read_bytes())
    newest = replace(first.batch_metadata[-1], last_seq=first.last_seq + 1)
    write(SNAPSHOT, write_snapshot([replace(first, batch_metadata=(newest,)), *others]))(folder)


def _swap_first_log(folder: Path) -> None:
    """Let the first log wait for its place, and another one be cleaned."""
    rename(LOG, LOG + ".swap")(folder)
    add(LOG + ".cleaned", b"")(folder)


def _cut_swap(folder: Path) -> None:
    """Let the first log wait for its removal, and a cut copy of it for its place."""
    write(LOG + ".swap", (folder / LOG).read_bytes()[:-9])(folder)
    rename(LOG, LOG + ".deleted")(folder)


def _remove_logs(folder: Path) -> None:
    """Let all logs wait for their removal."""
    for path in sorted(folder.glob("*.log")):
        path.rename(f"{path}.deleted")


@later
def _copy_beside(folder: Path, name: str, *missing: str) -> None:
    """Copy the partition to a folder beside it, and remove some of its own files."""
    shutil.copytree(folder, folder.parent / name, copy_function=shutil.copyfile)
    for one in missing:
        (folder / one).unlink()


def _same_topic_id(folder: Path) -> None:
    """Copy the partition to one of another topic, in the log directory of a broker."""
    _copy_beside("other-0")(folder)
    (folder.parent / "meta.properties").write_bytes(b"version=1\nnode.id=1\ncluster.id=c\n")


def _same_directory_id(folder: Path) -> None:
    """Put the log directory and a copy of it beside each other, each with the same id."""
    for name in ("one", "two"):
        other = folder.parent / name
        shutil.copytree(folder, other / folder.name, copy_function=shutil.copyfile)
        ids = b"version=1\nnode.id=1\ncluster.id=c\ndirectory.id=" + b"B" * 22
        (other / "meta.properties").write_bytes(ids)


def _forget_the_vote(folder: Path) -> None:
    """Put a log of the cluster's metadata beside the folder, without a vote."""
    other = folder.with_name("__cluster_metadata-0")
    shutil.copytree(folder, other, copy_function=shutil.copyfile)


def _foreign_folder(folder: Path) -> None:
    """Make a folder beside the partition, in the log directory of a broker."""
    (folder.parent / "lost+found").mkdir()
    (folder.parent / "meta.properties").write_bytes(b"version=1\nnode.id=1\n")


def _empty_folder(folder: Path) -> None:
    """Make a folder of another partition beside the partition, with nothing in it."""
    (folder.parent / "plain-1").mkdir()


def _swap_two_logs(folder: Path) -> None:
    """Let two logs change their names."""
    rename(LOG, "one")(folder)
    rename(f"{SECOND}.log", LOG)(folder)
    rename("one", f"{SECOND}.log")(folder)


def _put_another_log(folder: Path) -> None:
    """Put the log of another topic over the first one."""
    (folder / LOG).write_bytes((partition_of(DATA / TRANSACTIONS) / LOG).read_bytes())


def _cut_out(folder: Path) -> None:
    """Take the fourth batch out of a log that lacks nothing."""
    path = folder / f"{SECOND}.log"
    log, at = path.read_bytes(), 0
    for _ in range(3):
        at += read_batch(log[at:]).size_bytes
    path.write_bytes(log[:at] + log[at + read_batch(log[at:]).size_bytes :])


@later
def _remove_segment(folder: Path, base: str) -> None:
    for path in folder.glob(base + ".*"):
        path.unlink()


def _damage_marker(folder: Path) -> None:
    """Change a byte of the first marker that the transaction index names."""
    offset = (folder / ABORTED).read_bytes()[18:26]
    data = bytearray((folder / LOG).read_bytes())
    data[data.index(offset) + 22] ^= 1
    (folder / LOG).write_bytes(data)


def _loop(folder: Path) -> None:
    """Make a directory beside the segments with a link to itself."""
    (folder / "all").mkdir()
    (folder / "all" / "loop").symlink_to(folder / "all")


def _reach_over(folder: Path) -> None:
    """Let the last batch of the first segment be one of the second."""
    second = (folder / f"{SECOND}.log").read_bytes()
    add(f"{FIRST}.log", second[: read_batch(second).size_bytes])(folder)


def _wrong_delta(folder: Path) -> None:
    """Let the first record of a batch say that it is the sixth."""
    batch = bytearray(_batch(0))
    batch[64] = 10
    sum_again(batch)
    replace_log(f"{FIRST}.log", bytes(batch))(folder)


def _begin_metadata_later(folder: Path) -> None:
    """Put a log of the cluster's metadata beside the folder: all segments but the first."""
    other = folder.with_name("__cluster_metadata-0")
    shutil.copytree(folder, other, copy_function=shutil.copyfile)
    _remove_segment(FIRST)(other)


def _control(offset: int, kind: int) -> bytes:
    """Return a control batch of the type."""
    record = Record(offset, 1, int16(0) + int16(kind), bytes(3))
    return write_batch([record], base_offset=offset, is_control=True)


def _change_inner(folder: Path) -> None:
    """Change the last byte of the last message inside a compressed one, which is of its value."""
    inner = bytearray(gzip.decompress(WRAPPER[34:]))
    inner[-1] ^= 1
    value = gzip.compress(bytes(inner), mtime=0)
    wrapper = bytearray(WRAPPER[:30] + int32(len(value)) + value)
    wrapper[8:12] = int32(len(wrapper) - 12)
    sum_again(wrapper)
    replace_log(LOG, bytes(wrapper))(folder)


plain = partial(Example, scenario=PLAIN)
deep = partial(plain, deep=True)
transactions = partial(Example, scenario=TRANSACTIONS)

SHORT = _batch(0)[:8] + int32(20) + _batch(0)[12:32]
CONTROL = write_batch([Record(0, 1, b"?", b"")], base_offset=0, is_control=True)
WRAPPER = _compressed_messages(1)
ABSOLUTE = _compressed_messages(0)
FAR_STATE = [ProducerStateEntry(7, 0, batch_metadata=(BatchMetadata(0, 99, 0, 1),))]
GAP = replace_log(LOG, _producer_batch(0, 0), _producer_batch(1, 5))
BEGUN = replace_log(LOG, _producer_batch(0, 0, is_transactional=True))
MARKERS = replace_log(LOG, _marker(0, 7), _marker(1, 6))
LEFT = replace_log(LOG, _producer_batch(0, 0, is_transactional=True), _producer_batch(1, 1))

SNAPSHOT_BATCHES = _control(0, 3) + _batch(1) + _control(3, 4)

EXAMPLES: dict[str, Example] = {
    # names
    "FILE-1": plain("the log is named 0.log", rename(LOG, "0.log")),
    "FILE-2": plain("a log is named first.log", rename(LOG, "first.log")),
    "DISK-3": plain("a file notes.txt lies among the segments", add("notes.txt", b"remember")),
    "DISK-4": plain("the log is gone, its indexes are there", remove(LOG)),
    "DISK-5": plain("the offset index is gone", remove(INDEX)),
    "DISK-6": plain("64 zeros behind the index of a closed segment", add(INDEX, bytes(64))),
    "DISK-19": plain("a segment in the middle is gone", _remove_segment(SECOND)),
    "LOAD-1": plain("a log waits for its removal", add(LOG + ".deleted", b"")),
    # indexes
    "OFFIDX-1": plain("5 bytes behind the last entry of the offset index", add(INDEX, b"\1" * 5)),
    "OFFIDX-2": plain("two entries of the offset index are swapped", swap(INDEX, 8, 16, 8)),
    "DISK-8": plain("an entry's position falls", overwrite(INDEX, 12, int32(0))),
    "SEG-7": plain("an entry points one byte behind the start of its batch", flip(INDEX, 7)),
    "TIMEIDX-1": plain("5 bytes behind the last entry of the time index", add(TIMES, b"\1" * 5)),
    "TIMEIDX-7": plain("two entries of the time index are swapped", swap(TIMES, 0, 12, 12)),
    "DISK-24": plain("the offset index of a closed segment is empty", cut(f"{SECOND}.index", 128)),
    "DISK-22": plain("an entry's timestamp is negative", overwrite(TIMES, 0, int64(-2))),
    "DISK-9": plain("an entry's timestamp is one millisecond off", flip(TIMES, 7)),
    "DISK-10": plain("the last entry of a closed segment's time index is cut off", cut(TIMES, 12)),
    # logs
    "SCAN-2": plain("the size field of the first batch is 3", overwrite(LOG, 8, int32(3))),
    "DISK-23": plain("the magic of the first batch is 9", overwrite(LOG, 16, b"\x09")),
    "DUMP-6": plain("the last 10 bytes of the log are cut off", cut(LOG, 10)),
    "BATCH-3": plain("one bit of a record is flipped", flip(LOG, 100)),
    "SCAN-10": plain("the log ends inside the header of its only batch", replace_log(LOG, SHORT)),
    "BATCH-11": plain("a message of magic 1 says zstd", replace_log(LOG, _zstd_message())),
    "BATCH-14": plain("the size field of a batch is 20", replace_log(LOG, SHORT, _batch(0))),
    "BATCH-15": plain("a batch counts no record and holds some", replace_log(LOG, _uncounted())),
    "BATCH-16": plain("a batch counts a million records", patch_batch(LOG, 57, int32(10**6))),
    "BATCH-19": plain("the key of a control record has one byte", replace_log(LOG, CONTROL)),
    "BATCH-18": plain("a batch has codec 7", patch_batch(LOG, 21, int16(7))),
    "DISK-13": plain("a batch is in the log twice", replace_log(LOG, _batch(0), _batch(0))),
    "DISK-69": plain("the log of another topic lies over a log", _put_another_log),
    "DISK-70": plain("a batch is cut out of the middle of a log", _cut_out),
    "DISK-14": plain("a batch has more records than offsets", patch_batch(LOG, 23, int32(0))),
    "DISK-15": plain("a bit is set that no release uses", patch_batch(LOG, 21, int16(128))),
    "LOG-4": plain("a batch reaches into the next segment", _reach_over),
    # records
    "BATCH-9": deep(
        "the offset of a wrapper of magic 0 is not that of its last message",
        replace_log(LOG, int64(7) + ABSOLUTE[8:]),
    ),
    "BATCH-10": deep(
        "the offset of a wrapper of magic 1 is below its last message's",
        replace_log(LOG, int64(1) + WRAPPER[8:]),
    ),
    "DISK-16": deep("a record's offset is beyond its batch", _wrong_delta),
    "DISK-17": deep("the largest timestamp is no record's", patch_batch(LOG, 35, int64(10**12))),
    "DISK-56": deep("a message inside a compressed one has a wrong checksum", _change_inner),
    "DISK-57": plain(
        "a timestamp is in microseconds", replace_log(LOG, _batch(0, (1_795_223_261_579_000,)))
    ),
    # the directory of a log
    "DISK-27": plain("a log 0.log lies beside that of 20 digits", add("0.log", b"")),
    "DISK-28": plain("the first batch is of leader epoch 5", patch_batch(LOG, 12, int32(5))),
    "DISK-35": plain(
        "a snapshot of offset 60 knows offset 99",
        write(f"{SECOND}.snapshot", write_snapshot(FAR_STATE)),
    ),
    "DISK-36": plain(
        "a snapshot is behind the log's end",
        write("00000000000000099999.snapshot", write_snapshot(())),
    ),
    "DISK-37": plain("the checkpoint begins with epoch 3", write(EPOCHS, b"0\n1\n3 0\n")),
    "DISK-64": plain(
        "the checkpoint has an epoch far behind", write(EPOCHS, b"0\n2\n0 0\n1 999\n")
    ),
    "DISK-38": plain("the recovery point is far behind", write(f"../{RECOVERY}", FAR)),
    "DISK-41": plain("a checkpoint was being written", write(EPOCHS + ".tmp", b"")),
    "DISK-42": plain("a log waits as .swap beside a .cleaned file", _swap_first_log),
    "DISK-58": plain(
        "a log that waits as .swap is cut, and the old log is there",
        write(LOG + ".swap", _batch(0)[:-9]),
    ),
    "DISK-59": plain("a log waits as .swap and is cut, and the old log is .deleted", _cut_swap),
    "DISK-60": plain("all logs are .deleted", _remove_logs),
    "DISK-43": plain("the log start is far behind", write(f"../{START}", FAR)),
    "DISK-45": plain(
        "a snapshot of remote segments lies beside the logs", write("remote_log_snapshot", b"x")
    ),
    "DISK-61": plain(
        "a rebuild into the directory was ended", write("segproof-rebuild.incomplete", b"")
    ),
    "DISK-46": plain("a segment has a name of Redpanda's", write("0-1-v1.log", b"")),
    "DISK-47": plain("a folder lost+found lies beside the partition", _foreign_folder, below=".."),
    "DISK-48": plain("a copy is named plain-00", _copy_beside("plain-00"), below=".."),
    "DISK-49": plain("the topic id is gone", _copy_beside("plain-1", METADATA)),
    "DISK-50": plain("another topic has the same id", _same_topic_id, below=".."),
    "DISK-62": plain("two logs have each other's name", _swap_two_logs),
    "DISK-65": plain(
        "a log has a name that is 5 too low", rename(THIRD, "00000000000000000157.log")
    ),
    "DISK-71": plain("a partition beside it has an empty folder", _empty_folder, below=".."),
    "DISK-63": plain("a closed log is empty, and its indexes are gone", replace_log(THIRD)),
    "CKPT-3": plain("the version of the checkpoint is 1", write(EPOCHS, b"1\n0\n")),
    "CKPT-4": plain("an offset in the checkpoint is no number", write(EPOCHS, b"0\n1\n0 zero\n")),
    "EPOCH-1": plain("the epochs in the checkpoint fall", write(EPOCHS, b"0\n2\n1 0\n0 60\n")),
    "META-2": plain("the topic id is zero", write(METADATA, ZERO_TOPIC)),
    # a node
    "DISK-51": plain(
        "a snapshot of the metadata ends within a batch",
        write(METADATA_SNAPSHOT, SNAPSHOT_BATCHES[:-9]),
    ),
    "DISK-52": plain(
        "the log of the metadata begins at offset 60, without a snapshot",
        _begin_metadata_later,
        below="../__cluster_metadata-0",
    ),
    "DISK-53": plain("the vote of the node is zeros", write("quorum-state", bytes(125))),
    "DISK-54": plain(
        "the ids of the node are zeros", write("../meta.properties", bytes(87)), below=".."
    ),
    "DISK-66": plain("two log directories have the same id", _same_directory_id, below=".."),
    "DISK-67": plain("the vote is missing", _forget_the_vote, below="../__cluster_metadata-0"),
    "DISK-55": plain("the recovery points are empty", write(f"../{RECOVERY}", b""), below=".."),
    # transactions
    "TXNIDX-1": transactions("5 bytes behind the last entry of the index", add(ABORTED, bytes(5))),
    "DISK-11": transactions("an entry's producer is another one", overwrite(ABORTED, 2, int64(77))),
    "DISK-74": transactions("a marker that an entry names is damaged", _damage_marker),
    "DISK-12": transactions("the last entry of the index is cut off", cut(ABORTED, 34)),
    "DISK-21": transactions(
        "an entry's first offset is negative", overwrite(ABORTED, 10, int64(-1))
    ),
    "DISK-29": transactions("the epoch of a producer's batch is 9", patch_batch(LOG, 51, int16(9))),
    "DISK-30": transactions("the sequence of a batch is 1000", patch_batch(LOG, 53, int32(1000))),
    "DISK-31": transactions("a batch of sequence 5 follows one of 0", GAP),
    "DISK-32": transactions("a transaction has no marker", BEGUN),
    "DISK-33": transactions("a log begins with a marker", replace_log(LOG, _marker(0, 7))),
    "DISK-34": transactions("a marker of coordinator epoch 6 follows one of 7", MARKERS),
    "DISK-44": transactions("a batch of no transaction follows one of an open one", LEFT),
    "PROD-3": transactions("one bit of a snapshot is flipped", flip(SNAPSHOT, 20)),
    "PROD-14": transactions(
        "a producer's last sequence number in a snapshot is one more",
        _change_snapshot,
    ),
    # elsewhere
    "BATCH-2": Example(
        "one bit of a message of magic 1 is flipped", flip("00000000000000001000.log", 40), LEGACY
    ),
    "DISK-20": plain("the path is no part of a log", add("notes.txt", b"x"), below="notes.txt"),
    "DISK-25": Example(
        "a segment among records without keys is gone",
        _remove_segment("00000000000000001080"),
        KEYLESS,
    ),
    "DISK-26": plain("a link leads back to its directory", _loop, below="all"),
    "DISK-39": plain(
        "a checkpoint has a partition without a directory",
        write(f"../{RECOVERY}", b"0\n1\ngone 0 5\n"),
        below="..",
    ),
    "DISK-40": plain(
        "the marker holds a word", write("../.kafka_cleanshutdown", b"yes"), below=".."
    ),
    **STORE_EXAMPLES,
}
"""An example for each law that a small damage can break."""


def damaged_copy(example: Example, folder: Path) -> Path:
    """Copy the example's partition directory into `folder`, damage it, return its path."""
    if example.system == "rocketmq":
        source = DATA.parent / "rocketmq" / example.scenario / "store"
    else:
        source = partition_of(DATA / example.scenario)
    target = folder / source.name
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    example.do(target)
    return target


def finding_of(law_id: str, example: Example) -> Finding | None:
    """Return the first finding of the law in a damaged copy, with the copy's own folder left out.

    None if `verify` does not see the damage, which is a defect.
    """
    with tempfile.TemporaryDirectory(prefix="segproof-") as name:
        damaged = damaged_copy(example, Path(name))
        found = next(verify(damaged / example.below, deep=example.deep, laws=[law_id]), None)
        if found is None:
            return None
        texts = {field.name: getattr(found, field.name) for field in fields(found)}
        shown: dict[str, Any] = {
            field: text.replace(f"{name}{os.sep}", "")
            for field, text in texts.items()
            if isinstance(text, str) and field != "severity"
        }
        return replace(found, **shown)
