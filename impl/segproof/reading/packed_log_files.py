# SPDX-License-Identifier: Apache-2.0
"""A packed file of a commit log, read as if unpacked: nothing of it is written anywhere.

It is unpacked from its begin on, and the last bytes are kept: a reader that goes back further makes
it begin again. Damage ends it, as if it were a shorter file, and the file remembers where.

Memory: KEPT_BYTES, what a read asks for, and what the packer needs.
Not covered: files packed by zstd, lz4 or zip, which have no bytes here.
"""

import bz2
import lzma
import zlib
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple, cast

from segproof.files import File, Files, FileStatus, ReadOnlyFile

__all__ = ["UNPACKED_SUFFIXES", "PackedFile", "Unpacked", "with_one_unpacked"]

UNPACKED_SUFFIXES: Final = (".gz", ".bz2", ".xz")
PACKED_BYTES: Final = 2 << 20
"""Packed bytes that may come before the first unpacked one: a block of bzip2 has below 1 MB."""
PIECE_BYTES: Final = 1 << 16
KEPT_BYTES: Final = 8 << 20
"""Unpacked bytes that are kept before the place of a read: readers of a log read blocks of 4 MiB,
and read again from where a block broke."""
TIMES: Final = 8
"""How often a file is unpacked for one reader, at most: damage may make it go back often."""
UNPACK_MEMORY_BYTES: Final = 80 << 20


class PackedFile:
    """The first `size_max` unpacked bytes of an open file, whose name ends in `suffix`."""

    def __init__(self, file: ReadOnlyFile, path: str, suffix: str, size_max: int) -> None:
        self.path = path
        self._file, self._suffix, self._size_max = file, suffix, size_max
        self._left = TIMES * (size_max + size_max // 64 + PACKED_BYTES)
        self._pieces, self._begin, self._kept = self._unpacked(), 0, bytearray()
        self.is_damaged = False
        """Whether unpacking ended with an error, or before the end of a packed stream.

        Zeros after the last stream are no damage: tapes and disk blocks are padded with them.
        """

    def size(self) -> int:
        """Return how many bytes it has unpacked; one more than `size_max` if it is longer.

        After that `is_damaged` tells whether damage ended it there.
        """
        size = 0
        for piece in self._unpacked():
            size += len(piece)
            if size > self._size_max:
                return self._size_max + 1
        return size

    def pread(self, size: int, position: int) -> bytes:
        """Return unpacked bytes from a position on. Raises: OSError if it went back too often."""
        end = min(position + size, self._size_max)
        if position < self._begin:
            self._pieces, self._begin, self._kept = self._unpacked(), 0, bytearray()
        while self._begin + len(self._kept) < end:
            piece = next(self._pieces, b"")
            if not piece:
                break
            self._kept += piece
            old = min(position - self._begin, len(self._kept)) - KEPT_BYTES
            if old > 0:
                del self._kept[:old]
                self._begin += old
        return bytes(self._kept[position - self._begin : max(end, position) - self._begin])

    def pread_into(self, buffer: memoryview, position: int) -> int:
        """Read into a buffer, as `pread` does."""
        data = self.pread(len(buffer), position)
        buffer[: len(data)] = data
        return len(data)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield all of it: what is packed has no holes."""
        if start < end:
            yield start, end

    def close(self) -> None:
        """Close the packed file."""
        self._file.close()

    def _unpacked(self) -> Iterator[bytes]:
        """Yield the unpacked bytes in pieces, of one packed stream after the other."""
        unpack, rest, position = _unpacker(self._suffix), b"", 0
        is_begun = False
        while unpack is not None:
            if not rest and getattr(unpack, "needs_input", True):
                rest = self._file.pread(PIECE_BYTES, position)
                position += len(rest)
                if not rest:
                    self.is_damaged |= is_begun
                    if is_begun and self._suffix == ".gz":
                        yield cast("zlib._Decompress", unpack).flush()
                    return
            is_gzip = self._suffix == ".gz"
            before = cast("zlib._Decompress", unpack).copy() if is_gzip else None
            try:
                piece = unpack.decompress(rest, PIECE_BYTES)
            except (zlib.error, OSError, EOFError, ValueError, lzma.LZMAError):
                self.is_damaged = True
                if before is not None:
                    yield from _before_damage(before, rest)
                return
            is_begun = not unpack.eof
            self._spend(max(len(piece), len(rest)))
            if piece:
                yield piece
            if unpack.eof:
                rest, position, is_damage = self._behind_zeros(unpack.unused_data, position)
                self.is_damaged |= is_damage
                unpack = None if is_damage else _unpacker(self._suffix)
            else:
                rest = getattr(unpack, "unconsumed_tail", b"")

    def _behind_zeros(self, rest: bytes, position: int) -> tuple[bytes, int, bool]:
        """Pass over zeros behind a packed stream: `rest` is read of it, up to `position`.

        Return what is read behind them, where that ends, and whether it is damage. Zeros of xz go
        in fours, and a stream may follow them; behind other zeros no unpacker reads on.
        """
        zeros = 0
        while True:
            kept = rest.lstrip(b"\0")
            zeros += len(rest) - len(kept)
            if kept:
                break
            rest = self._file.pread(PIECE_BYTES, position)
            if not rest:
                break
            position += len(rest)
            self._spend(len(rest))
        is_damage = zeros % 4 > 0 if self._suffix == ".xz" else zeros > 0 and kept != b""
        return kept, position, is_damage

    def _spend(self, size: int) -> None:
        """Count bytes that are read or unpacked. Raises: OSError if they are too many."""
        self._left -= size
        if self._left < 0:
            raise OSError(f"{self.path} would be unpacked more than {TIMES} times")


class Unpacked(NamedTuple):
    """Files among which one is seen unpacked, only to be read."""

    files: Files
    size_bytes: int
    """How long that file is unpacked; one more than the most asked for if it is longer."""
    is_damaged: bool
    """Whether damage ends it there: what lies behind in the packed file is not seen."""


def with_one_unpacked(path: str, suffix: str, size_max: int, files: Files) -> Unpacked:
    """Return files among which one is seen unpacked.

    Cost: the file is unpacked once for the length. Raises: OSError.
    """
    with closing(PackedFile(files.open(path), path, suffix, size_max)) as file:
        size = file.size()
    seen = cast(Files, _OneUnpacked(files, path, suffix, size_max, size))
    return Unpacked(seen, size, file.is_damaged)


def _before_damage(unpack: "zlib._Decompress", rest: bytes) -> Iterator[bytes]:
    """Yield what packed bytes give before their damage, each of them unpacked by itself.

    An error of zlib, also that of the checksum at the end, takes all that its call has unpacked.
    """
    given = bytearray()
    with suppress(zlib.error):
        for position in range(len(rest)):
            given += unpack.decompress(rest[position : position + 1])
    if given:
        yield bytes(given)


@dataclass(frozen=True)
class _OneUnpacked:
    """Other files, with one of them unpacked."""

    _files: Files
    _path: str
    _suffix: str
    _size_max: int
    _size: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        file = self._files.open(path, writable=writable, create=create)
        if path != self._path or writable:
            return file
        return cast(File, PackedFile(file, path, self._suffix, self._size_max))

    def status(self, path: str) -> FileStatus | None:
        status = self._files.status(path)
        if path != self._path or status is None:
            return status
        return replace(status, size_bytes=self._size)


def _unpacker(
    suffix: str,
) -> "zlib._Decompress | bz2.BZ2Decompressor | lzma.LZMADecompressor | None":
    if suffix == ".gz":
        return zlib.decompressobj(16 + zlib.MAX_WBITS)
    if suffix == ".bz2":
        return bz2.BZ2Decompressor()
    if suffix == ".xz":
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=UNPACK_MEMORY_BYTES)
    return None
