# SPDX-License-Identifier: Apache-2.0
"""The names of a segment's files.

Mirrors: model/segproof_model/kafka/format/segment_names.py.
Upstream: Kafka, LogFileUtils (since 3.5), in older releases Log.
Laws: FILE-1.
"""

__all__ = ["offset_of_name", "segment_file_name"]


def segment_file_name(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file, the base offset in at least 20 digits (FILE-1).

    A minus sign is not counted.
    """
    sign = "-" if base_offset < 0 else ""
    return f"{sign}{abs(base_offset):020d}{suffix}"


def offset_of_name(name: str, suffix: str) -> int | None:
    """Return the offset of which `name` is the only right name with this suffix, or None."""
    number = name.removesuffix(suffix)
    if number == name or len(number) > 20 + (number[:1] == "-"):
        return None
    if not number.isascii() or not number.removeprefix("-").isdigit():
        return None
    offset = int(number)
    fits = -(1 << 63) <= offset < 1 << 63
    return offset if fits and segment_file_name(offset, suffix) == name else None
