# SPDX-License-Identifier: Apache-2.0
"""The laws of text checkpoints.

All are `pure`: they take the bytes of a file, or what was written, and what a reader made of it.
`outcome` is the list of entries, or `Raised`.

Used by: the harness, the generated pages.
"""

import re
from collections.abc import Sequence

from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.registry import law
from segproof_model.profiles import NEWEST_KAFKA, Profile

IO_ERROR = Raised(ErrorKind.IO_ERROR)
STRUCTURE = "checkpoint-file"
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
    sign, digits = (text[0], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if not digits.isdecimal() or max(digits) >= "\U00010000":
        return None
    significant = "".join(str(int(digit)) for digit in digits).lstrip("0")
    value = int(sign + (significant[:20] or "0"))  # 20 digits are too many for 64 bits
    return value if -(2 ** (bits - 1)) <= value < 2 ** (bits - 1) else None


@law("CKPT-1", structure=STRUCTURE, scope="pure", source=READER)
def entries_are_counted_lines(data: bytes, outcome: Sequence[object] | Raised) -> bool:
    """A checkpoint file is version line, count line, then exactly count entry lines.

    Whatever is read of another file is an error or, without a count line, no entry.
    """
    lines = text_lines(data)
    if isinstance(outcome, Raised):
        return True
    if lines is None or len(lines) < 2:
        return lines is not None and not outcome
    return number_of(lines[1], 32) == len(lines) - 2 == len(outcome)


@law("CKPT-2", structure=STRUCTURE, scope="pure", source=READER)
def no_count_is_no_entry(data: bytes, outcome: Sequence[object] | Raised) -> bool:
    """An empty file and a file with only the version line read as no entries."""
    return data not in (b"", b"0", b"0\n", b"0\r\n", b"0\r") or outcome == []


@law("CKPT-3", structure=STRUCTURE, scope="pure", source=READER)
def damage_is_an_io_error(
    data: bytes,
    fields: int,
    outcome: Sequence[object] | Raised,
    profile: Profile = NEWEST_KAFKA,
) -> bool:
    """A wrong version, a malformed version or count line, a wrong field count and a wrong number
    of lines raise an I/O error.

    A field before it that is no number may raise its own error first.
    """
    lines = text_lines(data)
    if lines is None or (lines and number_of(lines[0], 32) != 0):
        return outcome == IO_ERROR
    if len(lines) < 2:
        return True
    count = number_of(lines[1], 32)
    if count is None:
        return outcome == IO_ERROR
    if count < 0:
        is_io_error = profile.text_damage_is_io_error
        return outcome == (IO_ERROR if is_io_error else Raised(ErrorKind.INVALID_ARGUMENT))
    # Java leaves out the empty field behind white space at the end, not that at the start.
    found = [len(re.split(r"[ \t-\r]+", line.rstrip(" \t\n\v\f\r"))) for line in lines[2:]]
    if len(found) == count and set(found) <= {fields}:
        return True
    return outcome in (IO_ERROR, Raised(profile.entry_number_kind))


@law("CKPT-4", structure=STRUCTURE, scope="pure", source="Kafka OffsetCheckpointFile formatter")
def fields_are_numbers(
    fields: Sequence[tuple[str, int]],
    outcome: Sequence[object] | Raised,
    profile: Profile = NEWEST_KAFKA,
) -> bool:
    """A non-numeric field of an entry line raises a number-format error in the Java port (>= 3.1)
    and an I/O error before.

    `fields` are those of the only entry line that should be numbers, with their bits.
    """
    if all(number_of(text, bits) is not None for text, bits in fields):
        return not isinstance(outcome, Raised)
    return outcome == Raised(profile.entry_number_kind)


@law("CKPT-5", structure=STRUCTURE, scope="pure", source="Kafka CheckpointFile.write")
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


@law("CKPT-6", structure=STRUCTURE, scope="pure", source="Kafka CheckpointFile")
def written_is_read(
    entries: Sequence[object],
    write_outcome: object,
    outcome: Sequence[object] | Raised,
    profile: Profile = NEWEST_KAFKA,
) -> bool:
    """Writing then reading returns the same entries in the same order.

    segproof refuses entries for which that would not hold.
    """
    if isinstance(write_outcome, Raised):
        return profile.unreadable_text_is_refused
    return not isinstance(outcome, Raised) and list(entries) == list(outcome)
