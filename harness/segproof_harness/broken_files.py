# SPDX-License-Identifier: Apache-2.0
"""How to break a law: for each law that `verify` checks, a small damage to a real file.

A damage is done to a private copy of one of the directories that ship with the package.
Not covered: laws that need rights (DISK-1), a file that changes meanwhile (DISK-2), a file of
gigabytes (DISK-7) or a batch that inflates to more than memory (DISK-18).
Used by: the verb `explain`, the tests that every law can be broken.
"""

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from segproof.checksums import crc32, crc32c
from segproof.findings import Finding
from segproof.kafka.record_batch import Record, read_batch, write_batch
from segproof.verification import verify

DATA = Path(__file__).parent / "data" / "kafka"
PLAIN, TRANSACTIONS, LEGACY, KEYLESS = "plain", "txn-a", "v1-gzip", "unclean-before"
FIRST = "00000000000000000000"
SECOND = "00000000000000000060"
LOG, INDEX, TIMES, ABORTED = (
    FIRST + suffix for suffix in (".log", ".index", ".timeindex", ".txnindex")
)

Damage = Callable[[Path], None]
"""Changes the files in a partition directory."""


@dataclass(frozen=True, slots=True)
class Example:
    """One way to break a law."""

    damage: str
    """What was done, in words."""
    scenario: str
    """The directory whose copy is damaged."""
    do: Damage
    deep: bool = False
    """Whether only a deep run sees it."""
    below: str = ""
    """The path to verify, below the partition directory; empty: the directory."""


def overwrite(name: str, position: int, data: bytes) -> Damage:
    """Replace bytes of a file."""

    def do(folder: Path) -> None:
        with (folder / name).open("r+b") as file:
            file.seek(position)
            file.write(data)

    return do


def flip(name: str, position: int) -> Damage:
    """Flip the lowest bit of a byte."""

    def do(folder: Path) -> None:
        before = (folder / name).read_bytes()[position]
        overwrite(name, position, bytes([before ^ 1]))(folder)

    return do


def add(name: str, data: bytes) -> Damage:
    """Append bytes to a file, which is created if there is none."""

    def do(folder: Path) -> None:
        with (folder / name).open("ab") as file:
            file.write(data)

    return do


def cut(name: str, size: int) -> Damage:
    """Cut so many bytes off the end of a file."""
    return lambda folder: os.truncate(folder / name, (folder / name).stat().st_size - size)


def remove(name: str) -> Damage:
    """Remove a file."""
    return lambda folder: (folder / name).unlink()


def rename(source: str, target: str) -> Damage:
    """Give a file another name."""

    def do(folder: Path) -> None:
        (folder / source).replace(folder / target)

    return do


def patch_batch(name: str, field: int, data: bytes) -> Damage:
    """Replace bytes in the first batch of a log, of magic 2, and make its checksum right again."""

    def do(folder: Path) -> None:
        path = folder / name
        log = path.read_bytes()
        size = read_batch(log).size_bytes
        batch = bytearray(log[:size])
        batch[field : field + len(data)] = data
        batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
        path.write_bytes(bytes(batch) + log[size:])

    return do


def replace_log(name: str, *batches: bytes) -> Damage:
    """Let a log hold exactly these batches, and remove its indexes."""

    def do(folder: Path) -> None:
        (folder / name).write_bytes(b"".join(batches))
        for suffix in (".index", ".timeindex", ".txnindex"):
            (folder / name).with_suffix(suffix).unlink(missing_ok=True)

    return do


def swap(name: str, one: int, other: int, size: int) -> Damage:
    """Swap two stretches of a file."""

    def do(folder: Path) -> None:
        data = (folder / name).read_bytes()
        overwrite(name, one, data[other : other + size])(folder)
        overwrite(name, other, data[one : one + size])(folder)

    return do


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
    message[12:16] = crc32(bytes(message[16:])).to_bytes(4, "big")
    return bytes(message)


def _uncounted() -> bytes:
    batch = bytearray(_batch(0))
    batch[57:61] = bytes(4)
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    return bytes(batch)


def _int16(value: int) -> bytes:
    return value.to_bytes(2, "big", signed=True)


def _int32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def _int64(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def _name_examples() -> dict[str, tuple[str, Damage]]:
    return {
        "FILE-1": ("the log is named 0.log", rename(LOG, "0.log")),
        "FILE-2": ("a log is named first.log", rename(LOG, "first.log")),
        "DISK-3": ("a file notes.txt lies among the segments", add("notes.txt", b"remember")),
        "DISK-4": ("the log is gone, its indexes are there", remove(LOG)),
        "DISK-5": ("the offset index is gone", remove(INDEX)),
        "DISK-6": ("64 zeros behind the index of a closed segment", add(INDEX, bytes(64))),
        "DISK-19": ("a segment in the middle is gone", _remove_segment(SECOND)),
        "LOAD-1": ("a log waits for its removal", add(LOG + ".deleted", b"")),
    }


def _index_examples() -> dict[str, tuple[str, Damage]]:
    return {
        "OFFIDX-1": ("5 bytes behind the last entry of the offset index", add(INDEX, b"\1" * 5)),
        "OFFIDX-2": ("two entries of the offset index are swapped", swap(INDEX, 8, 16, 8)),
        "DISK-8": ("an entry's position falls", overwrite(INDEX, 12, _int32(0))),
        "SEG-7": ("an entry points one byte behind the start of its batch", flip(INDEX, 7)),
        "TIMEIDX-1": ("5 bytes behind the last entry of the time index", add(TIMES, b"\1" * 5)),
        "TIMEIDX-7": ("two entries of the time index are swapped", swap(TIMES, 0, 12, 12)),
        "DISK-24": ("the offset index of a closed segment is empty", cut(f"{SECOND}.index", 128)),
        "DISK-22": ("an entry's timestamp is negative", overwrite(TIMES, 0, _int64(-2))),
        "DISK-9": ("an entry's timestamp is one millisecond off", flip(TIMES, 7)),
        "DISK-10": ("the last entry of a closed segment's time index is cut off", cut(TIMES, 12)),
    }


def _log_examples() -> dict[str, tuple[str, Damage]]:
    short = _batch(0)[:8] + _int32(20) + _batch(0)[12:32]
    control = write_batch([Record(0, 1, b"?", b"")], base_offset=0, is_control=True)
    return {
        "SCAN-2": ("the size field of the first batch is 3", overwrite(LOG, 8, _int32(3))),
        "DISK-23": ("the magic of the first batch is 9", overwrite(LOG, 16, b"\x09")),
        "DUMP-6": ("the last 10 bytes of the log are cut off", cut(LOG, 10)),
        "BATCH-3": ("one bit of a record is flipped", flip(LOG, 100)),
        "SCAN-10": ("the log ends inside the header of its only batch", replace_log(LOG, short)),
        "BATCH-11": ("a message of magic 1 says zstd", replace_log(LOG, _zstd_message())),
        "BATCH-14": ("the size field of a batch is 20", replace_log(LOG, short, _batch(0))),
        "BATCH-15": ("a batch counts no record and holds some", replace_log(LOG, _uncounted())),
        "BATCH-16": ("a batch counts a million records", patch_batch(LOG, 57, _int32(10**6))),
        "BATCH-19": ("the key of a control record has one byte", replace_log(LOG, control)),
        "BATCH-18": ("a batch has codec 7", patch_batch(LOG, 21, _int16(7))),
        "DISK-13": ("a batch is in the log twice", replace_log(LOG, _batch(0), _batch(0))),
        "DISK-14": ("a batch has more records than offsets", patch_batch(LOG, 23, _int32(0))),
        "DISK-15": ("a bit is set that no release uses", patch_batch(LOG, 21, _int16(128))),
        "LOG-4": ("a batch reaches into the next segment", _reach_over),
    }


def _transaction_examples() -> dict[str, tuple[str, Damage]]:
    return {
        "TXNIDX-1": ("5 bytes behind the last entry of the index", add(ABORTED, bytes(5))),
        "DISK-11": ("an entry's producer is another one", overwrite(ABORTED, 2, _int64(77))),
        "DISK-12": ("the last entry of the index is cut off", cut(ABORTED, 34)),
        "DISK-21": ("an entry's first offset is negative", overwrite(ABORTED, 10, _int64(-1))),
    }


def _deep_examples() -> dict[str, tuple[str, Damage]]:
    wrapper = _compressed_messages(1)
    absolute = _compressed_messages(0)
    return {
        "BATCH-9": (
            "the offset of a wrapper of magic 0 is not that of its last message",
            replace_log(LOG, _int64(7) + absolute[8:]),
        ),
        "BATCH-10": (
            "the offset of a wrapper of magic 1 is below its last message's",
            replace_log(LOG, _int64(1) + wrapper[8:]),
        ),
        "DISK-16": ("a record's offset is beyond its batch", _wrong_delta),
        "DISK-17": ("the largest timestamp is no record's", patch_batch(LOG, 35, _int64(10**12))),
    }


def _examples() -> dict[str, Example]:
    plain = _name_examples() | _index_examples() | _log_examples()
    examples = {law: Example(words, PLAIN, do) for law, (words, do) in plain.items()}
    for law, (words, do) in _transaction_examples().items():
        examples[law] = Example(words, TRANSACTIONS, do)
    for law, (words, do) in _deep_examples().items():
        examples[law] = Example(words, PLAIN, do, deep=True)
    flipped = flip("00000000000000001000.log", 40)
    examples["BATCH-2"] = Example("one bit of a message of magic 1 is flipped", LEGACY, flipped)
    gone = _remove_segment("00000000000000001080")
    examples["DISK-25"] = Example("a segment among records without keys is gone", KEYLESS, gone)
    examples["DISK-26"] = Example("a link leads back to its directory", PLAIN, _loop, below="all")
    named = add("notes.txt", b"x")
    examples["DISK-20"] = Example("the path is no part of a log", PLAIN, named, below="notes.txt")
    return examples


def _remove_segment(base: str) -> Damage:
    def do(folder: Path) -> None:
        for path in folder.glob(base + ".*"):
            path.unlink()

    return do


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
    batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
    replace_log(f"{FIRST}.log", bytes(batch))(folder)


EXAMPLES = _examples()
"""An example for each law that a small damage can break."""


def damaged_copy(example: Example, folder: Path) -> Path:
    """Copy the example's partition directory into `folder`, damage it, return its path."""
    from segproof_harness.reading.conformance import partition_of

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
