# SPDX-License-Identifier: Apache-2.0
"""Wrong bytes in a file of a test, at once; `segproof_harness.laws.file_damages` does it later."""

import os
from pathlib import Path

from segproof_harness.laws.file_damages import overwrite


def put_bytes(path: Path, position: int, data: bytes) -> None:
    """Replace bytes of a file; a position below 0 counts from its end."""
    overwrite(path.name, position % path.stat().st_size, data)(path.parent)


def flip_bits(path: Path, position: int, bits: int = 1) -> None:
    """Flip bits of one byte of a file, by default the lowest one; as `put_bytes` counts."""
    with path.open("r+b") as file:
        at = file.seek(position, os.SEEK_END if position < 0 else os.SEEK_SET)
        (byte,) = file.read(1)
        file.seek(at)
        file.write(bytes([byte ^ bits]))
