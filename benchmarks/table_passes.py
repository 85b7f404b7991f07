# SPDX-License-Identifier: Apache-2.0
"""Both sides of what is measured of tables of records; see passes.py for how."""

from collections.abc import Callable
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.modes import Pass, mode


@mode
def scan_records(log: str) -> Pass:
    """Read all columns of all records as Arrow; how many there are."""
    import segproof

    def one_pass() -> Callable[[], int]:
        count = sum(batch.num_rows for batch in segproof.scan(log))
        return lambda: count

    return one_pass


@mode
def dump_records(log: str) -> Pass:
    """Write the records to a Parquet file, as `segproof dump` does; how many there are."""
    import pyarrow.parquet as pq

    from segproof_harness import cli

    out = Path(log).with_suffix(".parquet")

    def one_pass() -> Callable[[], int]:
        with out.open("w", encoding="utf-8") as file, redirect_stdout(file):
            code = cli.run(["dump", log, "--records", "--format", "parquet"])
        if code:
            raise RuntimeError(f"the dump ended with exit code {code}")
        return lambda: int(pq.read_metadata(out).num_rows)

    return one_pass


@mode
def aiokafka_records(log: str) -> Pass:
    """Read the records as aiokafka's consumer does, with checksums; how many there are."""
    parser: Any = import_module("aiokafka.record._crecords").MemoryRecords

    def one_pass() -> Callable[[], int]:
        count, records = 0, parser(Path(log).read_bytes())
        while records.has_next():
            batch = records.next_batch()
            if not batch.validate_crc():
                raise RuntimeError("a batch has a wrong checksum")
            count += sum(1 for _ in batch)
        return lambda: count

    return one_pass
