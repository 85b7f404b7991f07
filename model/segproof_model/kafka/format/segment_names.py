# SPDX-License-Identifier: Apache-2.0
"""The names of a segment's files.

Upstream: Kafka 4.4.0, LogFileUtils.
Layout: the base offset in at least 20 digits, then what kind of file it is.
Laws: FILE-1, FILE-2.
Not covered: names of directories.
"""

from functools import lru_cache

from segproof_model.language.integers import parsed_int
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import refuse


def segment_file_name(base_offset: int, suffix: str) -> str:
    """Return the name of a segment's file (FILE-1): at least 20 digits, a sign not counted.

    >>> segment_file_name(-5, ".log")
    '-00000000000000000005.log'
    """
    sign = "-" if base_offset < 0 else ""
    return f"{sign}{abs(base_offset):020d}{suffix}"


@lru_cache(1 << 12)
def offset_of_name(name: str) -> int:
    """Return the offset in a file's name, what stands before the first dot (FILE-2).

    A name without a dot raises the index error, one without a number the number-format error.

    >>> offset_of_name("00000000000000000042.snapshot.deleted")
    42
    """
    if "." not in name:
        refuse(ErrorKind.INDEX_ERROR)
    number = parsed_int(name.split(".")[0], 64)
    return refuse(ErrorKind.NUMBER_FORMAT) if number is None else number
