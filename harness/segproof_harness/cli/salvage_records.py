# SPDX-License-Identifier: Apache-2.0
"""What `salvage --records` writes: the whole records of broken batches, in files of their own."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from segproof.salvaging.salvage import Gap, SalvagedPartition

WORDS = {
    "checksum": "by the checksum of their batch, with its size or one bit put back",
    "elsewhere": "framed whole, with damage found elsewhere in the batch: no checksum covers them",
    "unknown": "only framed whole: damage may reach into their content",
}
"""What is said of the records by what speaks for them."""


def write_records(told: "SalvagedPartition", out: Path) -> dict[str, Any]:
    """Write the whole records of the gaps that are told; return the path, and how many by evidence.

    Without such a record no file is made, and the path is None. Raises: OSError.
    """
    counts = Counter(dict.fromkeys(WORDS, 0))
    from segproof.reading.file_names import CUT_RECORDS_FILE

    path = out / CUT_RECORDS_FILE.format(os.path.basename(os.path.realpath(told.directory)))
    rows = (row for gap in told.gaps for row in _rows(gap))
    first = next(rows, None)
    if first is None:
        return {"records_path": None, "cut_records": dict(counts)}
    with path.open("x", encoding="ascii") as file:
        for row in chain((first,), rows):
            counts[row["evidence"]] += 1
            file.write(json.dumps(row) + "\n")
        file.flush()
        os.fsync(file.fileno())
    return {"records_path": str(path), "cut_records": dict(counts)}


def record_lines(written: dict[str, Any]) -> Iterator[str]:
    """Yield what an operator must know of these records."""
    if written["records_path"] is None:
        yield "records: no record of a broken batch is framed whole"
        return
    yield f"records of broken batches: {written['records_path']}"
    for evidence, words in WORDS.items():
        if count := written["cut_records"][evidence]:
            yield f"  {count} {words}"


def _rows(gap: "Gap") -> Iterator[dict[str, Any]]:
    from segproof.salvaging.cut_records import cut_batches
    from segproof_harness.reading.log_file_rows import record_row

    for cut in cut_batches(gap):
        beside = {
            "evidence": cut.evidence.value,
            "path": gap.path,
            "batch_position": cut.position,
            "is_transactional": cut.batch.is_transactional,
        }
        for record in cut.batch.records():
            row = record_row(record)
            if not cut.is_offset_known:
                row["offset"] = None
            yield row | beside
