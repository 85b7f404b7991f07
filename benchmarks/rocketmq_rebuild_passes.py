# SPDX-License-Identifier: Apache-2.0
"""Our side of what is measured of the rebuilding of RocketMQ's index; see passes.py for how."""

import shutil
import zlib
from collections.abc import Callable
from pathlib import Path

from benchmarks.modes import Pass, Prepared, mode


@mode
def rocketmq_rebuild(store: str, out: str, mapped_file_size: str) -> Prepared:
    """Make the index of a store new in a folder; the checksum of its bytes."""
    from segproof.repair import rebuild_index
    from segproof.rocketmq.geometry import DEFAULT_GEOMETRY

    def prepare() -> Pass:
        shutil.rmtree(out, ignore_errors=True)

        def one_pass() -> Callable[[], int]:
            done = rebuild_index(
                store, out, *DEFAULT_GEOMETRY, mapped_file_size=int(mapped_file_size)
            )
            assert not done.findings
            return lambda: _checksum([Path(one.path) for one in done.files])

        return one_pass

    return Prepared(prepare)


def _checksum(paths: list[Path]) -> int:
    """Return the checksum of what lies before the free entries of each file."""
    checksum = 0
    for path in paths:
        with path.open("rb") as file:
            file.seek(36)
            count = int.from_bytes(file.read(4), "big")
            file.seek(0)
            checksum = zlib.crc32(file.read(40 + 4 * 5_000_000 + 20 * count), checksum)
    return checksum
