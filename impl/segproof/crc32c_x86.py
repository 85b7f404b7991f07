# SPDX-License-Identifier: Apache-2.0
"""CRC-32C of many parts of a buffer by the instruction of x86-64 processors, compiled by numba.

No kernel: an instruction has no source that could be proved or interpreted. Tests hold it against
the library's checksum. Importing this module imports numba; the steps are not callable from Python.
The caller vouches for the addresses.

Not covered: other processors, for which `segproof.checksums` calls the library for each part.
Used by: checksums.py, which uses it only where `is_supported` says so.
"""

import platform
from importlib import import_module
from typing import Any

from numba.core import types
from numba.extending import intrinsic

__all__ = ["is_supported", "sums_of_parts"]

_config: Any = import_module("numba.core.config")
_ir: Any = import_module("llvmlite.ir")
_llvm: Any = import_module("llvmlite.binding")


def is_supported() -> bool:
    """Return whether this processor has the instruction, and numba compiles for this processor."""
    is_host = _config.CPU_NAME is None and _config.CPU_FEATURES is None
    if platform.machine() not in ("x86_64", "AMD64") or not is_host:
        return False
    return bool(_llvm.get_host_cpu_features().get("sse4.2"))


def _continue_with_eight_bytes(context: Any, checksum: Any, address: Any) -> Any:
    """Continue a checksum with the 8 bytes at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        int64 = _ir.IntType(64)
        step = builder.module.declare_intrinsic(
            "llvm.x86.sse42.crc32.64.64", (), _ir.FunctionType(int64, [int64, int64])
        )
        data = builder.load(builder.inttoptr(arguments[1], int64.as_pointer()))
        data.align = 1
        return builder.call(step, [arguments[0], data])

    return types.int64(types.int64, types.int64), generate


def _continue_with_a_byte(context: Any, checksum: Any, address: Any) -> Any:
    """Continue a checksum with the byte at an address."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        int32, int8 = _ir.IntType(32), _ir.IntType(8)
        step = builder.module.declare_intrinsic(
            "llvm.x86.sse42.crc32.32.8", (), _ir.FunctionType(int32, [int32, int8])
        )
        data = builder.load(builder.inttoptr(arguments[1], int8.as_pointer()))
        made = builder.call(step, [builder.trunc(arguments[0], int32), data])
        return builder.zext(made, _ir.IntType(64))

    return types.int64(types.int64, types.int64), generate


_eight_bytes: Any = intrinsic(_continue_with_eight_bytes)
_one_byte: Any = intrinsic(_continue_with_a_byte)


def sums_of_parts(address: int, starts: memoryview, ends: memoryview, sums: memoryview) -> None:
    """Write the checksum of each part [start, end) of what lies at `address`; all of format q."""
    for number in range(len(starts)):
        at = address + starts[number]
        end = address + ends[number]
        checksum = 4294967295
        while at + 8 <= end:
            checksum = _eight_bytes(checksum, at)
            at += 8
        while at < end:
            checksum = _one_byte(checksum, at)
            at += 1
        sums[number] = 4294967295 - checksum
