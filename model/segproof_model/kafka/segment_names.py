# SPDX-License-Identifier: Apache-2.0
"""The names of a segment's files.

Mirrors: impl/segproof/kafka/segment_names.py.
Upstream: Kafka, LogFileUtils (since 3.5), in older releases Log.
Laws: FILE-1, FILE-2.
Used by: log_segment, producer_state, partition_log and its parts, log_loader, log_leftovers.
"""

import re

from segproof_model.language.integers import INT64_MAX
from segproof_model.language.outcomes import ErrorKind, Raised


def segment_file_name(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file (FILE-1): at least 20 digits, a sign not counted.

    >>> segment_file_name(-5, ".log")
    '-00000000000000000005.log'
    """
    sign = "-" if base_offset < 0 else ""
    return f"{sign}{abs(base_offset):020d}{suffix}"


def offset_of_name(name: str) -> int | Raised:
    """Return the offset in a file's name, what stands before the first dot (FILE-2).

    A name without a dot raises the index error, one without a number the number-format error.
    """
    if "." not in name:
        return Raised(ErrorKind.INDEX_ERROR)
    number = name.split(".")[0]
    if not re.fullmatch(r"[+-]?\d+", number) or not -INT64_MAX - 1 <= int(number) <= INT64_MAX:
        return Raised(ErrorKind.NUMBER_FORMAT)
    return int(number)
