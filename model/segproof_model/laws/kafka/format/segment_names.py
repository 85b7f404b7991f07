# SPDX-License-Identifier: Apache-2.0
"""The laws of the names of a segment's files. Which files there are: segment_files."""

import re

from segproof_model.language.outcomes import Raised
from segproof_model.laws.register import law

SOURCE = "Kafka LogFileUtils.filenamePrefixFromOffset, offsetFromFileName, since 1.1.1"


@law("FILE-1", "log-segment", SOURCE)
def name_is_padded_base_offset(base_offset: int, suffix: str, name: str) -> bool:
    """A segment file is named by its base offset in decimal, padded with zeros to 20 digits.

    A minus sign stands before the digits and is not counted. `suffix` begins with its dot.
    """
    digits = str(abs(base_offset))
    sign = "-" if base_offset < 0 else ""
    return name == sign + "0" * max(0, 20 - len(digits)) + digits + suffix


@law("FILE-2", "log-segment", SOURCE)
def parsed_offset_is_before_first_dot(name: str, parsed: int | Raised) -> bool:
    """The offset of a file name is the text before its first dot, as a signed 64-bit integer.

    A name without a dot, without digits, or with more than 64 bits gives an error.
    """
    head, dot, _ = name.partition(".")
    is_number = bool(dot) and re.fullmatch(r"[+-]?[0-9]+", head, re.ASCII) is not None
    is_offset = is_number and -(2**63) <= int(head) < 2**63
    return parsed == int(head) if is_offset else isinstance(parsed, Raised)
