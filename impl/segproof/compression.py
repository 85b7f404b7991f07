# SPDX-License-Identifier: Apache-2.0
"""The codecs of record batches, with a bound on what decompression may produce.

Layout of snappy: the xerial block stream, 8 bytes "\\x82SNAPPY\\0", int32 version 1, int32 lowest
  compatible version 1, then blocks: int32 length, raw snappy. Data without this header is one raw
  block. All int32 here are big-endian.
Layout of lz4: a frame of independent 64 KiB blocks. Its header checksum is byte 1 of the xxHash32
  of the descriptor; magic 0 hashes the four magic bytes too (a mistake kept for old readers).
gzip and zstd are plain streams of one or several members.

Upstream: Kafka 4.3.1: Compression and its codecs, Lz4BlockOutputStream, SnappyInputStream (xerial).
Laws: BATCH-11, BATCH-20.
Not covered: lz4 dictionaries, zstd dictionaries; Kafka has neither.
"""

import zlib
from collections.abc import Callable, Iterator

import cramjam
import numpy as np
import xxhash

from segproof.errors import InvalidArgumentError, SegproofError, TooLargeError

COMPRESSION_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
"""Codec names by their code, which is bits 0 to 2 of the attributes."""

UNCOMPRESSED_LIMIT_BYTES = 64 << 20
"""Default bound of one decompressed batch: 64 times Kafka's default limit for a batch, and small
enough for `verify` to stay below 256 MiB beside a batch that lies about its size."""
INFLATED_PER_BYTE = 128
"""Logs of text shrink to a tenth, of equal records to a fiftieth; deflate can shrink to 1/1032."""
SMALL_BATCH_LIMIT_BYTES = 1 << 20

Bytes = bytes | bytearray | memoryview

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + bytes((0, 0, 0, 1, 0, 0, 0, 1))
_XERIAL_BLOCK_BYTES = 32 << 10
_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP_FRAME_BYTES = 18
"""Header and trailer of a member."""
_GZIP_WINDOW_BITS = 31
_GZIP_PIECE_BYTES = 1 << 20
_DEFLATE_RATIO_MAX = 1040
"""A match of 258 bytes takes two bits at least: 1032, and what small blocks round up."""
_GZIP_WINDOW_MAX_BYTES = 64 << 10
_GZIP_WINDOW_MIN_BYTES = 256
"""What a second member is given first; the smallest takes 20 bytes."""
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_DESCRIPTOR = b"\x60\x40"
"""Version 1, independent blocks, no checksums, no content size; blocks of at most 64 KiB."""
_LZ4_BLOCK_BYTES = 64 << 10
_LZ4_STORED = 1 << 31
_LZ4_BLOCK_SIZES = {0x40: 64 << 10, 0x50: 256 << 10, 0x60: 1 << 20, 0x70: 4 << 20}
_LZ4_FIXED_BITS = 0b11100011
"""Version, independence, and the two bits (reserved, dictionary) that must be 0."""
_LZ4_BLOCK_CHECKSUM = 16
_LZ4_CONTENT_SIZE = 8


def codec_name(code: int, position: int | None = None) -> str:
    """Return the name of a codec. Raises: InvalidArgumentError for the codes 5 to 7 (BATCH-18)."""
    if code >= len(COMPRESSION_NAMES):
        raise InvalidArgumentError(
            f"{code} is no codec", law="BATCH-18", position=position, actual=code
        )
    return COMPRESSION_NAMES[code]


class Inflation:
    """What the batches of one file may inflate to, so that its size bounds the work.

    Each to `limit`; by default to 1 MiB, and a larger one to 128 times its size, up to 64 MiB. What
    they take beyond 128 times their sizes is 64 MiB together; behind that none may take more. So a
    batch that grows less is judged by itself, whatever lies before it.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._spare = UNCOMPRESSED_LIMIT_BYTES

    def limit_of(self, stored_bytes: int) -> int:
        """Return what the next batch may inflate to."""
        most = max(INFLATED_PER_BYTE * stored_bytes, min(SMALL_BATCH_LIMIT_BYTES, self._spare))
        return self._limit or min(UNCOMPRESSED_LIMIT_BYTES, most)

    def count(self, stored_bytes: int, inflated_bytes: int) -> None:
        """Say what a batch has inflated to."""
        self._spare -= max(0, inflated_bytes - INFLATED_PER_BYTE * stored_bytes)


def decompress(
    compression: str, data: Bytes, *, magic: int = 2, limit: int = UNCOMPRESSED_LIMIT_BYTES
) -> memoryview:
    """Return the decompressed bytes, at most `limit`.

    For lz4 under `magic` 0 the frame's header checksum is not looked at, as upstream ignores it.
    `none` returns the data itself.

    Raises: SegproofError (the Kafka error) for damaged data; its TooLargeError beyond `limit`.
    """
    if compression == "none":
        return memoryview(data)
    try:
        if compression == "gzip":
            return _gunzip(data, limit)
        if compression == "zstd":
            return _inflate(cramjam.zstd.decompress_into, data, limit)
        if compression == "lz4":
            return _unlz4(memoryview(data), magic, limit)
        if compression == "snappy":
            return _unsnappy(data, limit)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise SegproofError(
            f"the {compression} data cannot be decompressed: {error}",
            hint="if the checksum of the batch is right, it was damaged before that was made, or"
            " its codec bits are wrong",
        ) from error
    raise _unknown(compression)


def compress(compression: str, data: Bytes, *, magic: int = 2) -> bytes:
    """Return the data as Kafka's own producers frame it; lz4 under `magic` 0 with the old checksum.

    Raises: InvalidArgumentError for an unknown codec.
    """
    if compression == "none":
        return bytes(data)
    if compression == "gzip":
        return bytes(cramjam.gzip.compress(data))
    if compression == "zstd":
        return bytes(cramjam.zstd.compress(data))
    if compression == "lz4":
        return _lz4_frame(data, broken_checksum=magic == 0)
    if compression == "snappy":
        return _xerial_stream(data)
    raise _unknown(compression)


def _unknown(compression: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"no codec {compression!r}", hint=f"known codecs: {', '.join(COMPRESSION_NAMES)}"
    )


def _bomb(limit: int) -> TooLargeError:
    return TooLargeError(
        f"the compressed data grows beyond {limit} bytes",
        expected=f"at most {limit} bytes",
        hint="raise the limit if a batch of this size is meant to be there",
    )


def _gunzip(data: Bytes, limit: int) -> memoryview:
    """Inflate every member of a gzip stream, with the zlib that the JVM uses too.

    What follows a member and is none ends the stream, as it does for Java's GZIPInputStream.

    cramjam's inflate takes a distance that reaches before the first byte for zeros. zlib copies
    what a member leaves over of its input, so it is given little at a time: a batch of nothing but
    tiny members would take a time that grows with the square of its size.
    """
    view = memoryview(data)
    first, whole = b"", memoryview(b"")
    done, position, window = 0, 0, _GZIP_WINDOW_MAX_BYTES
    while True:
        stream = zlib.decompressobj(wbits=_GZIP_WINDOW_BITS)
        while not stream.eof:
            given = view[position : position + window]
            part = stream.decompress(given, _GZIP_PIECE_BYTES)
            taken = len(given) - len(stream.unconsumed_tail) - len(stream.unused_data)
            if not part and not taken:
                raise zlib.error("the gzip stream is cut")
            position += taken
            window = min(2 * window, _GZIP_WINDOW_MAX_BYTES)
            if done + len(part) > limit:
                raise _bomb(limit)
            if done and part and not len(whole):
                # Joined here, not at the end, where all of it would be there twice; in memory that
                # never moves, and that numpy leaves untouched.
                whole = np.empty(min(limit, _DEFLATE_RATIO_MAX * len(view)), np.uint8).data
                whole[:done] = first
            if len(whole):
                whole[done : done + len(part)] = part
            first = first or part
            done += len(part)
        if not _is_member(view[position:]):
            return (whole[:done] if len(whole) else memoryview(first)).toreadonly()
        window = _GZIP_WINDOW_MIN_BYTES


def _is_member(rest: memoryview) -> bool:
    """Return whether Java reads what follows a member as one more."""
    return len(rest) > _GZIP_FRAME_BYTES and rest[: len(_GZIP_MAGIC)] == _GZIP_MAGIC


def _inflate(decompress_into: Callable[[Bytes, Bytes], int], data: Bytes, limit: int) -> memoryview:
    """Decompress into buffers that grow up to `limit`.

    cramjam says only in words whether data is damaged or the buffer too small, so either is tried
    again with more room; the largest buffer decides.
    """
    capacity = min(limit, max(64 << 10, 4 * len(data)))
    while True:
        # numpy leaves the memory untouched, so a large bound costs nothing until it is used.
        target = np.empty(capacity, np.uint8).data
        try:
            return target[: decompress_into(data, target)]
        except cramjam.DecompressionError as error:
            del target  # before a larger one is made, and before the error keeps this frame
            if capacity < limit:
                capacity = min(limit, 8 * capacity)
            elif "whole buffer" in str(error):
                raise _bomb(limit) from error
            else:
                raise


def _unsnappy(data: Bytes, limit: int) -> memoryview:
    view = memoryview(data)
    # A block states its own length; the sum is checked before a byte is allocated for it. The
    # blocks are walked twice: a list of them would outweigh the data many times over.
    size = sum(map(cramjam.snappy.decompress_raw_len, _snappy_blocks(view)))
    if size > limit:
        raise _bomb(limit)
    target = np.empty(size, np.uint8).data
    done = 0
    for block in _snappy_blocks(view):
        size = cramjam.snappy.decompress_raw_len(block)
        done += cramjam.snappy.decompress_raw_into(block, target[done : done + size])
    return target[:done]


def _snappy_blocks(view: memoryview) -> Iterator[memoryview]:
    """Return the raw blocks of a stream, or the data itself where it is none."""
    return _xerial_blocks(view) if view[:8] == _XERIAL_MAGIC else iter((view,))


def _xerial_blocks(view: memoryview) -> Iterator[memoryview]:
    """Yield the raw blocks; a header in the middle begins an appended stream and is skipped.

    One to three bytes behind the last block are ignored, as upstream does.
    """
    position = len(_XERIAL_HEADER)
    while position + 4 <= len(view):
        if view[position : position + 8] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)
            continue
        size = int.from_bytes(view[position : position + 4], "big", signed=True)
        position += 4
        if size < 0 or size > len(view) - position:
            raise SegproofError(
                "a snappy block is longer than the data",
                position=position - 4,
                expected=f"at most {len(view) - position} bytes",
                actual=size,
            )
        yield view[position : position + size]
        position += size


def _xerial_stream(data: Bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts += [len(block).to_bytes(4, "big"), block]
    return b"".join(parts)


def _lz4_checksum(descriptor: Bytes) -> int:
    return (xxhash.xxh32_intdigest(bytes(descriptor)) >> 8) & 255


def _lz4_frame(data: Bytes, *, broken_checksum: bool) -> bytes:
    """Frame by hand: cramjam's own frames link their blocks, which Kafka refuses to read."""
    hashed = _LZ4_MAGIC + _LZ4_DESCRIPTOR if broken_checksum else _LZ4_DESCRIPTOR
    parts = [_LZ4_MAGIC, _LZ4_DESCRIPTOR, bytes((_lz4_checksum(hashed),))]
    view = memoryview(data)
    for start in range(0, len(view), _LZ4_BLOCK_BYTES):
        plain = view[start : start + _LZ4_BLOCK_BYTES]
        block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
        if len(block) < len(plain):
            parts += [len(block).to_bytes(4, "little"), block]
        else:
            parts += [(len(plain) | _LZ4_STORED).to_bytes(4, "little"), bytes(plain)]
    parts.append(bytes(4))
    return b"".join(parts)


def _unlz4(frame: memoryview, magic: int, limit: int) -> memoryview:
    """Read a frame as Kafka does: independent blocks only, and nothing behind the end mark.

    Magic 0 takes any header checksum. The content's own checksum is not looked at, as upstream
    does not; those of the blocks are, where the frame has them.
    """
    flags = frame[4] if len(frame) > 5 else 0
    block_bytes = _LZ4_BLOCK_SIZES.get(frame[5] if flags else 0, 0)
    if frame[:4] != _LZ4_MAGIC or flags & _LZ4_FIXED_BITS != _LZ4_DESCRIPTOR[0] or not block_bytes:
        raise cramjam.DecompressionError("it is no lz4 frame of independent blocks")
    end = 14 if flags & _LZ4_CONTENT_SIZE else 6
    if len(frame) <= end or (magic > 0 and frame[end] != _lz4_checksum(frame[4:end])):
        raise cramjam.DecompressionError("the header checksum of the lz4 frame is wrong")
    # A block states the size it has compressed; what it may grow to follows from the header.
    target = np.empty(min(limit, block_bytes + 8 * len(frame)), np.uint8).data
    done = 0
    blocks = _lz4_blocks(frame, end + 1, block_bytes, bool(flags & _LZ4_BLOCK_CHECKSUM))
    for block, is_stored in blocks:
        if len(target) - done < block_bytes and len(target) < limit:
            larger = np.empty(min(limit, 2 * len(target) + block_bytes), np.uint8).data
            larger[:done] = target[:done]
            target = larger
        room = target[done : done + block_bytes]
        if is_stored and len(block) <= len(room):
            room[: len(block)] = block
            done += len(block)
        elif len(room) < block_bytes and (is_stored or not _fits(block, room)):
            raise _bomb(limit)
        else:
            done += cramjam.lz4.decompress_block_into(block, room, output_len=len(room))
    return target[:done]


def _fits(block: memoryview, room: memoryview) -> bool:
    """Whether a block inflates into less than a whole block's room, which the limit has cut."""
    if not len(room):
        return False
    try:
        cramjam.lz4.decompress_block_into(block, room, output_len=len(room))
    except cramjam.DecompressionError:
        return False
    return True


def _lz4_blocks(
    frame: memoryview, position: int, block_bytes: int, has_checksums: bool
) -> Iterator[tuple[memoryview, bool]]:
    """Yield (bytes, whether they are stored as they are) of each block up to the end mark."""
    while True:
        size = int.from_bytes(frame[position : position + 4], "little")
        if position + 4 > len(frame):
            raise cramjam.DecompressionError("the lz4 frame is cut")
        position += 4
        is_stored, size = size >= _LZ4_STORED, size % _LZ4_STORED
        if size == 0:
            return  # a stored block of nothing ends a frame, too
        if size > block_bytes or position + size > len(frame):
            raise cramjam.DecompressionError("an lz4 block is cut or too long")
        block = frame[position : position + size]
        position += size
        if has_checksums:
            stored = frame[position : position + 4]
            if stored != xxhash.xxh32_intdigest(bytes(block)).to_bytes(4, "little"):
                raise cramjam.DecompressionError("an lz4 block has a wrong checksum")
            position += 4
        yield block, is_stored
