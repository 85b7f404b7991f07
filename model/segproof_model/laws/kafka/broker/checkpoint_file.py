# SPDX-License-Identifier: Apache-2.0
"""The laws of text checkpoints.

Used by: the register, and the laws of other text files.
"""

import re
from collections.abc import Sequence
from typing import Any

from segproof_model.kafka.broker.checkpoint_deviations import UnreadableTextIsRefused
from segproof_model.kafka.broker.checkpoint_file import CheckpointFile
from segproof_model.kafka.broker.checkpoint_releases import (
    EntryNumberIsIoError,
    TextDamageIsIoError,
)
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import outcome_of
from segproof_model.laws.register import Transition, has, law

READER = "Kafka CheckpointFile.read"
Call = tuple[str, str, bytes | str | None]
"""What is done to the disk: `write` (path, data), `sync` (path), `rename` (path, target), or any
other word for a change of the path."""


def text_lines(data: bytes) -> list[str] | None:
    """Return the lines, or None for what is not UTF-8."""
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


def _fields_of(row: str) -> list[str]:
    """Return the fields of a line; not an empty one behind white space at the end, as in Java."""
    return re.split(r"[ \t-\r]+", row.rstrip(" \t\n\v\f\r"))


def _are_right(file: Any, fields: Sequence[str]) -> bool | None:
    """Return whether fields are numbers where they should be; None: too few or too many."""
    if len(fields) != len(file.bits):
        return None
    pairs = zip(fields, file.bits, strict=True)
    return all(bits is None or number_of(field, bits) is not None for field, bits in pairs)


def _text_read(step: Transition) -> tuple[list[int], list[bool | None]] | None:
    """Return the count, if there is one, and of each line behind it whether its fields are right;
    None of a file that is no checkpoint.
    """
    lines = text_lines(step.before.files.image(step.before.name))
    numbers = [number_of(line, 32) for line in (lines or [])[:2]]
    if lines is None or numbers[:1] not in ([], [0]) or None in numbers:
        return None
    rows = [_are_right(step.before, _fields_of(row)) for row in lines[2:]]
    return [number for number in numbers[1:] if number is not None], rows


def _is_whole(text: tuple[list[int], list[bool | None]]) -> bool:
    """Return whether there are as many lines as are counted, each of as many fields as wanted."""
    return text[0] in ([], [len(text[1])]) and None not in text[1]


@law("CKPT-1", CheckpointFile, READER, on="read")
def entries_are_counted_lines(step: Transition) -> bool:
    """A checkpoint file is version line, count line, then exactly count entry lines.

    Whatever is read of another file is an error or, without a count line, no entry.
    """
    text = _text_read(step)
    return not step.succeeded or (
        text is not None and _is_whole(text) and len(step.answer) == len(text[1])
    )


@law("CKPT-2", CheckpointFile, READER, on="read")
def no_count_is_no_entry(step: Transition) -> bool:
    """An empty file and a file with only the version line read as no entries."""
    image = step.before.files.images.get(step.before.name)
    return image not in (b"", b"0", b"0\n", b"0\r\n", b"0\r") or step.outcome == []


@law("CKPT-3", CheckpointFile, READER, on="read")
def damage_is_an_io_error(step: Transition) -> bool:
    """A wrong version, a malformed version or count line, a wrong field count and a wrong number
    of lines raise an I/O error.

    A field before it that is no number may raise its own error first. Since 3.0 a negative count is
    an invalid argument, but not to segproof.
    """
    text = _text_read(step)
    if text is None:
        return step.raised(ErrorKind.IO_ERROR)
    if min(text[0], default=0) < 0 and not has(step.before, TextDamageIsIoError):
        return step.raised(ErrorKind.INVALID_ARGUMENT)
    is_word = False in text[1] and step.raised(ErrorKind.NUMBER_FORMAT)
    return _is_whole(text) or is_word or step.raised(ErrorKind.IO_ERROR)


@law("CKPT-4", CheckpointFile, "Kafka OffsetCheckpointFile formatter", on="read")
def fields_are_numbers(step: Transition) -> bool:
    """A non-numeric field of an entry line raises a number-format error in the Java port (>= 3.1)
    and an I/O error before.
    """
    text = _text_read(step)
    if text is None or not _is_whole(text) or step.raised(ErrorKind.FILE_NOT_FOUND):
        return True
    is_older = has(step.before, EntryNumberIsIoError)
    kind = ErrorKind.IO_ERROR if is_older else ErrorKind.NUMBER_FORMAT
    return step.succeeded if all(text[1]) else step.raised(kind)


@law("CKPT-5", CheckpointFile, "Kafka CheckpointFile.write")
def crash_leaves_old_or_new(file: str, new: bytes, calls: Sequence[Call]) -> bool:
    """After a crash at any point of a write the file reads as the old or the new content.

    `calls` is what was done to the disk in this order, up to the crash: the file's name is only
    ever moved to, and what is moved there holds all the new bytes and was synced since.
    """
    live: dict[str, bytes] = {}
    durable: dict[str, bytes] = {}
    for what, path, argument in calls:
        if what == "rename" and argument == file:
            if not new == live.get(path) == durable.get(path):
                return False
        elif path == file or what == "rename":
            return False
        elif what == "write" and isinstance(argument, bytes):
            live[path] = live.get(path, b"") + argument
        elif what == "sync":
            durable[path] = live.get(path, b"")
    return True


@law("CKPT-6", CheckpointFile, "Kafka CheckpointFile", on="write")
def written_is_read(step: Transition) -> bool:
    """Writing then reading returns the same entries in the same order.

    segproof refuses entries for which that would not hold.
    """
    entries, file = list(step.arguments["entries"]), step.before
    if not step.succeeded:
        return step.is_unchanged and has(file, UnreadableTextIsRefused)
    rows = [[str(value) for value in entry] for entry in entries]
    is_usual = all(
        " ".join(row).isascii() and _fields_of(" ".join(row)) == row and _are_right(file, row)
        for row in rows
    )
    return not is_usual or outcome_of(step.after.read) == entries
