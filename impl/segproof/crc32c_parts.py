# SPDX-License-Identifier: Apache-2.0
"""CRC-32C of many parts of a buffer: the library's function, called from a compiled loop.

For a part of 1 KB a call from Python costs more than the sum itself. google-crc32c brings the C
library crc32c, whose function `crc32c_value(data, size)` numba can call directly. The loop is no
kernel: a foreign function has no source that could be proved or interpreted. Tests hold it against
sums made one by one. The caller vouches for the addresses.

Not covered: wheels that link the library into themselves; there `find_library` returns None and
`segproof.checksums` calls the library for each part.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError, files
from typing import Any

_FUNCTION = "crc32c_value"
_foreign: Any = None


def find_library() -> str | None:
    """Return the path of the shared library that google-crc32c installed, or None."""
    try:
        installed = files("google-crc32c") or []
    except PackageNotFoundError:
        return None
    for path in installed:
        if path.name.startswith("libcrc32c") and (".so" in path.name or ".dylib" in path.name):
            return str(path.locate())
    return None


def load_sums_of_parts() -> Callable[..., Any] | None:
    """Return the compiled `sums_of_parts`, or None where the library has no such function."""
    global _foreign
    path = find_library()
    if path is None:
        return None
    from segproof.kernels.dispatch import compile_function

    binding: Any = import_module("llvmlite.binding")
    types: Any = import_module("numba.core.types")
    try:
        binding.load_library_permanently(path)
    except RuntimeError:
        return None
    if binding.address_of_symbol(_FUNCTION) is None:
        return None
    # By name, so that the compiled loop can be kept in the cache.
    _foreign = types.ExternalFunction(_FUNCTION, types.uint32(types.uintp, types.uintp))
    return compile_function(_sums_of_parts)


def _sums_of_parts(address: int, starts: memoryview, ends: memoryview, sums: memoryview) -> None:
    """Write the checksum of each part [start, end) of what lies at `address`; all of format q."""
    for number in range(len(starts)):
        sums[number] = _foreign(address + starts[number], ends[number] - starts[number])
