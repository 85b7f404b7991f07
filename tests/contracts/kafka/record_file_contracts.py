# SPDX-License-Identifier: Apache-2.0
"""Contracts of the record file: where the scan for batches goes, ends or is refused.

Mirrors: model/segproof_model/kafka/record_file.py, impl/segproof/kernels/records.py.
Used by: registry.
"""

from typing import Any

from segproof.kernels import records as kernels
from segproof_model.directory import Directory
from segproof_model.kafka.record_file import RecordFile
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.profiles import SEGPROOF

_walk_batches: Any = kernels.walk_batches.interpreted
_ENDS = {
    kernels.SCAN_END: None,
    kernels.SCAN_BAD_SIZE: Raised(ErrorKind.CORRUPT_RECORD),
    kernels.SCAN_BAD_MAGIC: Raised(ErrorKind.CORRUPT_RECORD),
}


def scan_of_old_messages(sizes: bytes, other_sizes: bytes, magic: int) -> bool:
    """Follow size fields from message to message, to the end of the file or to a bad one.

    pre: len(sizes) == 4
    pre: len(other_sizes) == 4
    pre: 0 <= magic <= 255
    post: _
    """
    first = bytes(8) + sizes + bytes(4) + b"\1" + bytes(9)
    data = first + bytes(8) + other_sizes + bytes(4) + bytes([magic]) + bytes(13)
    file = RecordFile.open("x", directory=Directory((("x", data),)), profile=SEGPROOF).after
    assert isinstance(file, RecordFile)
    scan = file.batches()
    rows = [0] * 8
    count, _, status = _walk_batches(data, 0, len(data), len(data), 1, 4, rows)
    if status == kernels.SCAN_SHORT_HEADER:
        return True
    if count != len(scan.batches) or _ENDS[status] != scan.error:
        return False
    for number in range(count):
        batch = scan.batches[number]
        if (rows[2 * number], rows[2 * number + 1]) != (batch.position, batch.size_bytes):
            return False
    return True
