# SPDX-License-Identifier: Apache-2.0
"""Contracts of the record file: where the scan for batches goes, ends or is refused.

Mirrors: model/segproof_model/kafka/format/record_file.py, impl/segproof/kernels/records.py.
"""

from typing import Any

from segproof.kernels import records as kernels
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused
from segproof_model.releases import SEGPROOF
from segproof_tests.contracts import Mutant, contract

_walk_batches: Any = kernels.walk_batches.interpreted
_ENDS = {
    kernels.SCAN_END: None,
    kernels.SCAN_BAD_SIZE: ErrorKind.CORRUPT_RECORD,
    kernels.SCAN_BAD_MAGIC: ErrorKind.CORRUPT_RECORD,
}


@contract(
    "segproof.kernels.records:walk_batches",
    "SCAN-1 SCAN-2 SCAN-5 SCAN-6",
    "a file of 56 bytes with two messages, any two raw size fields, any magic of the second",
    Mutant("size < 14", "size < 13"),
    Mutant("position >= end - 17", "position >= end - 16"),
)
def scan_of_old_messages(sizes: bytes, other_sizes: bytes, magic: int) -> bool:
    """Follow size fields from message to message, to the end of the file or to a bad one.

    pre: len(sizes) == 4
    pre: len(other_sizes) == 4
    pre: 0 <= magic <= 255
    post: _
    """
    first = [*bytes(8), *sizes, *bytes(4), 1, *bytes(9)]
    data: Any = [*first, *bytes(8), *other_sizes, *bytes(4), magic, *bytes(13)]
    file = SEGPROOF.kind(RecordFile)(Files({"x": data}), "x")
    batches, error = [], None
    try:
        for batch in file.batches():
            batches.append((batch.position, batch.size_bytes))
    except Refused as refused:
        error = refused.kind
    rows = [0] * 8
    count, _, status = _walk_batches(data, 0, len(data), len(data), 1, 4, rows)
    if status == kernels.SCAN_SHORT_HEADER:
        return True
    found = [(rows[2 * number], rows[2 * number + 1]) for number in range(count)]
    return found == batches and _ENDS[status] == error
