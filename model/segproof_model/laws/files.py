# SPDX-License-Identifier: Apache-2.0
"""The laws of file names that need no segment.

FILE-3 to FILE-5 speak of what a segment creates; they are stated with the segment.

Used by: the harness, `verify`'s tests, the generated pages.
"""

import re

from segproof_model.language.integers import INT64_MAX
from segproof_model.language.outcomes import Raised
from segproof_model.laws.registry import law

SOURCE = "Kafka LogFileUtils.filenamePrefixFromOffset, offsetFromFileName, since 1.1.1"


@law("FILE-1", structure="log-segment", scope="pure", source=SOURCE)
def name_is_padded_base_offset(base_offset: int, suffix: str, name: str) -> bool:
    """A segment file is named by its base offset in decimal, padded with zeros to 20 digits.

    A minus sign stands before the digits and is not counted. `suffix` begins with its dot.
    """
    digits = str(abs(base_offset))
    sign = "-" if base_offset < 0 else ""
    return name == sign + "0" * max(0, 20 - len(digits)) + digits + suffix


@law("FILE-2", structure="log-segment", scope="pure", source=SOURCE)
def parsed_offset_is_before_first_dot(name: str, parsed: int | Raised) -> bool:
    """The offset of a file name is what stands before the first dot, as a signed 64-bit integer.

    A name without a dot, without digits, or with more than 64 bits gives an error.
    """
    head, dot, _ = name.partition(".")
    is_number = bool(dot) and re.fullmatch(r"[+-]?[0-9]+", head, re.ASCII) is not None
    if not is_number or not -INT64_MAX - 1 <= int(head) <= INT64_MAX:
        return isinstance(parsed, Raised)
    return parsed == int(head)
