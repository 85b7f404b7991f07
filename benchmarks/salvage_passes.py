# SPDX-License-Identifier: Apache-2.0
"""Our side of what is measured of damaged partitions, and a plain copy; see passes.py for how."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from benchmarks.modes import Pass, Prepared, mode


@mode
def salvage(path: str, out: str) -> Prepared:
    """Save what is sound into a new directory, durably; the bytes that were kept."""
    from segproof.repair import salvage as save

    def prepare() -> Pass:
        shutil.rmtree(out, ignore_errors=True)

        def one_pass() -> Callable[[], int]:
            kept = sum(told.bytes_kept for told in save(path, out))
            return lambda: kept

        return one_pass

    return Prepared(prepare)


@mode
def damage_map(path: str) -> Pass:
    """Read what each log of a partition holds; the bytes of its sound batches."""
    from segproof.files import REAL_FILES
    from segproof.stretches.spans import SpanKind
    from segproof_harness.reports.file_map import read_file_map

    logs = sorted(str(log) for log in Path(path).glob("*.log"))

    def one_pass() -> Callable[[], int]:
        maps = [read_file_map(log, None, REAL_FILES) for log in logs]
        return lambda: sum(one.bytes_of[SpanKind.SOUND] for one in maps)

    return one_pass


@mode
def plain_copy(path: str, out: str) -> Prepared:
    """Copy each log of a partition into a new directory, durably; the bytes of all."""

    def prepare() -> Pass:
        shutil.rmtree(out, ignore_errors=True)
        os.makedirs(out)

        def one_pass() -> Callable[[], int]:
            copied = 0
            for log in sorted(Path(path).glob("*.log")):
                with log.open("rb") as old, open(os.path.join(out, log.name), "wb") as new:
                    shutil.copyfileobj(old, new, 1 << 20)
                    new.flush()
                    os.fsync(new.fileno())
                    copied += new.tell()
            return lambda: copied

        return one_pass

    return Prepared(prepare)
