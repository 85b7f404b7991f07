# SPDX-License-Identifier: Apache-2.0
"""The laws of text checkpoints."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from segproof_model.kafka.broker import checkpoint_deviations as ours
from segproof_model.kafka.broker import checkpoint_releases as older
from segproof_model.kafka.broker.checkpoint_file import CheckpointFile
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import outcome_of
from segproof_model.laws.register import Transition, has, law

READER = "Kafka CheckpointFile.read"
Call = tuple[str, str, bytes | str | None]
"""A change of the disk: `write` (path, data), `sync` (path), `rename` (path, target), or any other
word for a change of the path.
"""


def text_lines(data: bytes) -> list[str] | None:
    """Return the lines, or None if the bytes are not UTF-8."""
    try:
        lines = re.split("\r\n?|\n", data.decode("utf-8"))
    except UnicodeDecodeError:
        return None
    return lines[:-1] if lines[-1] == "" else lines


def number_of(text: str, bits: int) -> int | None:
    """Return the number of so many bits that Java parses, or None."""
    if re.fullmatch(r"[+-]?\d+", text) is None or max(text) >= "\U00010000":
        return None
    digits = "".join(str(int(digit)) for digit in text.lstrip("+-")).lstrip("0")
    value = int(digits[:20] or "0") * (-1 if text[0] == "-" else 1)  # 20 are too many for 64 bits
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


def fields_of(row: str) -> list[str]:
    """Return the fields of a line, without an empty one after final white space, as in Java."""
    return re.split(r"[ \t-\r]+", row.rstrip(" \t\n\v\f\r"))


def words_in(file: Any, rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the fields of entry lines that should be numbers, but are not."""
    fields = [one for row in rows for one in zip(row, file.bits, strict=False)]
    return [field for field, bits in fields if bits and number_of(field, bits) is None]


def _read(step: Transition) -> tuple[list[int | None], list[list[str]]]:
    """Return the numbers of the first two lines, and the fields of each other line."""
    lines = text_lines(step.before.files.image(step.before.name))
    if lines is None:
        return [None], []
    return [number_of(line, 32) for line in lines[:2]], [fields_of(row) for row in lines[2:]]


def _is_whole(step: Transition) -> bool:
    """Return whether version and count are right, and each line has as many fields as it should."""
    numbers, rows = _read(step)
    is_counted = numbers in ([], [0], [0, len(rows)])
    return is_counted and all(len(row) == len(step.before.bits) for row in rows)


@law("CKPT-1", CheckpointFile, READER, on="read")
def entries_are_counted_lines(step: Transition) -> bool:
    """A checkpoint file is version line, count line, then exactly count entry lines.

    Reading any other file gives an error or, without a count line, no entry.
    """
    return not step.succeeded or (_is_whole(step) and len(step.answer) == len(_read(step)[1]))


@law("CKPT-2", CheckpointFile, READER, on="read")
def no_count_is_no_entry(step: Transition) -> bool:
    """An empty file and a file with only the version line read as no entries."""
    image = step.before.files.images.get(step.before.name)
    return image not in (b"", b"0", b"0\n", b"0\r\n", b"0\r") or step.outcome == []


@law("CKPT-3", CheckpointFile, READER, on="read")
def damage_is_an_io_error(step: Transition) -> bool:
    """A wrong version, a malformed version or count line, a wrong field count and a wrong number
    of lines raise an I/O error.

    An earlier field that is not a number may raise its own error first. Since 3.0 a negative count
    is an invalid argument, but not to segproof.
    """
    numbers, rows = _read(step)
    kinds = [ErrorKind.IO_ERROR]
    is_negative = numbers[:1] == [0] and (numbers[-1] or 0) < 0
    if is_negative and not has(step.before, older.TextDamageIsIoError):
        kinds = [ErrorKind.INVALID_ARGUMENT]
    elif words_in(step.before, rows):
        kinds.append(ErrorKind.NUMBER_FORMAT)
    return _is_whole(step) or any(map(step.raised, kinds))


@law("CKPT-4", CheckpointFile, "Kafka OffsetCheckpointFile formatter", on="read")
def fields_are_numbers(step: Transition) -> bool:
    """A non-numeric field of an entry line raises a number-format error in the Java port (>= 3.1)
    and an I/O error before.
    """
    if not _is_whole(step) or step.raised(ErrorKind.FILE_NOT_FOUND):
        return True
    is_older = has(step.before, older.EntryNumberIsIoError)
    kind = ErrorKind.IO_ERROR if is_older else ErrorKind.NUMBER_FORMAT
    return step.raised(kind) if words_in(step.before, _read(step)[1]) else step.succeeded


@law("CKPT-5", CheckpointFile, "Kafka CheckpointFile.write")
def crash_leaves_old_or_new(file: str, new: bytes, calls: Sequence[Call]) -> bool:
    """After a crash at any point of a write the file reads as the old or the new content.

    `calls` are the changes of the disk in order, up to the crash: only a rename replaces the file,
    and the renamed file has all the new bytes and was synced before.
    """
    for number, (what, path, argument) in enumerate(calls):
        if what == "rename" and argument == file:
            done = [(how, data) for how, at, data in calls[:number] if at == path]
            written = b"".join(data for _, data in done if isinstance(data, bytes))
            if written != new or [how for how, _ in done[-1:]] != ["sync"]:
                return False
        elif path == file or what == "rename":
            return False
    return True


@law("CKPT-6", CheckpointFile, "Kafka CheckpointFile", on="write")
def written_is_read(step: Transition) -> bool:
    """Writing then reading returns the same entries in the same order.

    segproof refuses entries that would be read differently.
    """
    entries, file = list(step.arguments["entries"]), step.before
    if not step.succeeded:
        return step.is_unchanged and has(file, ours.UnreadableTextIsRefused)
    rows = [[str(value) for value in entry] for entry in entries]
    is_usual = all(fields_of(" ".join(row)) == row and "".join(row).isascii() for row in rows)
    is_judged = is_usual and not words_in(file, rows)
    return not is_judged or outcome_of(step.after.read) == entries
