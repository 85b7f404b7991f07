# SPDX-License-Identifier: Apache-2.0
"""Files beside a damaged or missing log that may be a copy of it: packed, renamed, or removed.

Laws: DISK-4, and those by which a log is damaged.
"""

from segproof.commands import quoted_path
from segproof.files import Files
from segproof.hints import Hint
from segproof.inventory.segments import Segment
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import COMPRESSED_SUFFIXES
from segproof.reading.folder_names import folder_of
from segproof.wording.rules import DECLARED, RESTORE

DAMAGES = ("BATCH-2", "BATCH-3", "SCAN-2", "SCAN-10", "DISK-23")
"""Laws by which records of a log can't be read."""
OWN = (".swap", ".cleaned", ".tmp")
"""Suffixes with which a broker writes; other findings tell what becomes of them."""
NAMED = 3
"""At most this many files are named."""


def copies_beside(segment: Segment, files: Files) -> list[str]:
    """Return the names in the folder that begin with that of the log, sorted."""
    own = segment_file_name(segment.base_offset, ".log")
    found = folder_of(segment.directory, files).beginning_with(own)
    return [name for name in found if name != own and not name.endswith(OWN)]


def hints_with(segment: Segment, copies: list[str]) -> dict[str, Hint]:
    """Return the hint of each law of a loss in this log, with the copies to look into first."""
    own = segment_file_name(segment.base_offset, ".log")
    which = " and ".join(quoted_path(name) for name in copies[:NAMED])
    if len(copies) > NAMED:
        which += f" and {len(copies) - NAMED} more"
    unpacked = ", unpacked," if any(name.endswith(COMPRESSED_SUFFIXES) for name in copies) else ""
    first = (
        f"{which} beside it may hold these records: copy it{unpacked} into another folder under the"
        f" name {own}, and look into that with `segproof verify`. If it lacks them, "
    )
    usual = dict.fromkeys(DAMAGES, RESTORE) | {"DISK-4": DECLARED["DISK-4"].hint}
    return {law: hint.after(first) for law, hint in usual.items()}
