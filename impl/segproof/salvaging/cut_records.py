# SPDX-License-Identifier: Apache-2.0
"""Single records cut out of broken batches of magic 2, each batch with what speaks for its records.

A record of magic 2 has no checksum of its own. Three things are told apart:

- `checksum`: the checksum of the batch holds, over another size than the batch says, or once one
  bit is put back. CRC-32C tells each single bit, also one of its own field, from every other one
  or two. A larger damage passes for a single bit by a chance of one in 2^32 for each bit of the
  batch; so longer batches are not tried.
- `elsewhere`: no checksum. The record is framed whole, damage is found outside of it, and another
  record or the header lies between.
- `unknown`: no checksum. The record is framed whole, and its content may be damaged: no damage is
  found elsewhere; or it comes right before the damage, which may begin within its value; or its
  value has as many zeros in a row as a disk leaves.

Only `checksum` makes a record certain.

A record is framed whole if its fields fill its length exactly, its attributes are 0, its offset
delta fits, and records lead to it from the header on, or from it to the end of the batch.

Upstream: Kafka 4.3.1: DefaultRecordBatch, DefaultRecord.
Laws: BATCH-3, BATCH-4, BATCH-12, BATCH-16.
Not covered: batches of magic 0 and 1; compressed batches whose checksum one bit does not mend.
"""

from collections.abc import Iterator
from contextlib import closing
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from segproof.files import REAL_FILES, Files
from segproof.integers import INT64_MAX
from segproof.kafka.record_batch import RecordBatch, read_batch
from segproof.kernels import records as kernels
from segproof.layouts.kafka import BATCH, BATCH_HEADER_BYTES, CHECKED_FROM, LOG_OVERHEAD_BYTES
from segproof.salvaging.gaps import Gap, LogGap
from segproof.stretches.kafka.mending import (
    BATCH_BYTES_MAX,
    agrees_with_records,
    checksum_difference,
    with_proved_header,
)
from segproof.stretches.unreadable_blocks import BLOCK_BYTES, ReadableParts

__all__ = ["CutBatch", "Evidence", "cut_batches"]

MENDED_BYTES_MAX = 64 << 10
"""In a larger batch only a bit of the checksum itself is put back."""
LENGTH_BYTES_MAX = 4
BODY_BYTES_MIN = 6
"""Of a record behind its length."""
SEARCHED_BYTES = 1 << 16
"""So many bytes are searched at once for the begin of a record."""
WALKED_BYTES_OF_A_BYTE = 16
"""A search walks through at most this many bytes of records for each byte of the batch: lengths
that were made to cost time lead through the same bytes again and again."""
TRIED_BYTES = 64 << 20
"""Bytes of a gap that are tried as batches which reach to its end, at most, beside those."""
ZEROS = bytes(64)
"""Zeros in a row within a record that may be all that a disk has left of its content."""
_POLYNOMIAL = 0x82F63B78
_next_record = kernels.next_record.interpreted


class Evidence(StrEnum):
    """What speaks for a record that was cut out of a broken batch."""

    CHECKSUM = "checksum"
    """The checksum of its batch, with a size or one bit put back."""
    ELSEWHERE = "elsewhere"
    """It is framed whole, and damage lies elsewhere in its batch; no checksum covers it."""
    UNKNOWN = "unknown"
    """It is framed whole only: damage may reach into its content, and no checksum covers it."""


class CutBatch(NamedTuple):
    """The whole records of one broken batch for which the same speaks."""

    position: int
    """Where the broken batch begins in its log."""
    evidence: Evidence
    batch: RecordBatch
    """A batch in memory of the whole records alone; its own checksum means nothing. Without
    evidence by the checksum its timestamps are those of a header that no checksum covers."""
    is_offset_known: bool
    """Whether the offsets fit between the batches around it. If not, they mean nothing."""


class _Found(NamedTuple):
    evidence: Evidence
    data: bytes
    """A batch of the whole records alone."""
    size_bytes: int
    """Of the broken batch."""


def cut_batches(gap: Gap, *, files: Files = REAL_FILES) -> Iterator[CutBatch]:
    """Yield the broken batches of a gap that hold whole records, in their order.

    Of a gap of another kind than `broken`, and behind a batch whose end is not known, nothing is
    yielded. Memory: one batch of up to 16 MiB, and once more for its records. Raises: OSError.
    """
    if gap.kind != LogGap.BROKEN:
        return
    with closing(ReadableParts(files.open(gap.path))) as file:
        at, expected = gap.position, gap.first_lost_offset
        end = min(file.size(), gap.position + gap.size_bytes)
        left = TRIED_BYTES + WALKED_BYTES_OF_A_BYTE * (end - at)
        while at + BATCH_HEADER_BYTES < end:
            said = at + LOG_OVERHEAD_BYTES + BATCH["size"].read(file, at)
            ends = [one for one in (said, end) if _may_end(at, one, end)]
            left -= sum(one - at for one in ends)
            if left < 0:
                ends = [one for one in ends if one == said]
            cut = _found(file, at, ends)
            begun = expected
            for found in cut:
                data, expected = found.data, begun
                base = _base_offset(data, expected, gap.last_lost_offset)
                known = expected if base is None else base
                batch = read_batch(known.to_bytes(8, "big") + data[8:])
                if not batch.is_control:
                    yield CutBatch(at, found.evidence, batch, base is not None)
                expected = min(known + BATCH["last_offset_delta"].of(data) + 1, INT64_MAX)
            if not ends:
                return
            at = at + cut[0].size_bytes if cut else ends[0]


def _base_offset(data: bytes, expected: int, last_lost: int | None) -> int | None:
    """Return the base offset of a batch in a gap from the offset `expected` on; None if unknown.

    If exactly its offsets are lost there, it has these. Else it has to fit as it is.
    """
    base, delta = BATCH["base_offset"].of(data), BATCH["last_offset_delta"].of(data)
    if (expected == base and last_lost is None) or expected + delta == last_lost:
        return expected
    fits = last_lost is not None and expected <= base <= base + delta <= last_lost
    return base if fits else None


def _may_end(at: int, behind: int, end: int) -> bool:
    return BATCH_HEADER_BYTES < behind - at <= BATCH_BYTES_MAX and behind <= end


def _found(file: ReadableParts, at: int, ends: list[int]) -> list[_Found]:
    """Return what a batch at a position holds, by the first of its possible ends that fits.

    That is nothing, or one part for each kind of evidence.
    """
    for look in (_by_checksum, _by_frames):
        for end in dict.fromkeys(ends):
            whole = file.pread(end - at, at)
            bad = [one - at for one in sorted(file.unreadable)]
            found = look(whole, bad)
            if found:
                return found
    return []


# --- the checksum of the batch


def _table() -> list[int]:
    rows = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (_POLYNOMIAL if value & 1 else 0)
        rows.append(value)
    return rows


_TABLE = _table()
_BY_HIGH_BYTE = {value >> 24: number for number, value in enumerate(_TABLE)}
_LAST_BITS = {_TABLE[1 << bit]: bit for bit in range(8)}


def flipped_bit(difference: int, size: int) -> tuple[int, int] | None:
    """Return the one bit whose flip changes the CRC-32C of `size` bytes by `difference`.

    It is a pair: the byte, counted from the begin, and the bit in it, 0 to 7. None: no single one.
    """
    for back in range(size):
        if difference in _LAST_BITS:
            return size - 1 - back, _LAST_BITS[difference]
        number = _BY_HIGH_BYTE[difference >> 24]
        difference = (difference ^ _TABLE[number]) << 8 & 0xFFFFFFFF | number
    return None


def _by_checksum(whole: bytes, bad: list[int]) -> list[_Found]:
    """Return a batch whose checksum holds, with its size, its magic and one bit put back."""
    difference, mended = checksum_difference(whole), with_proved_header(whole)
    if difference.bit_count() > 1:
        found = None
        if len(whole) <= MENDED_BYTES_MAX:
            found = flipped_bit(difference, len(whole) - CHECKED_FROM)
        if found is None:
            return []
        mended[CHECKED_FROM + found[0]] ^= 1 << found[1]
    data = bytes(mended)
    is_right = agrees_with_records(data) and BATCH["record_count"].of(data) > 0
    return [_Found(Evidence.CHECKSUM, data, len(data))] if is_right else []


# --- the frames of its records


def _by_frames(whole: bytes, bad: list[int]) -> list[_Found]:
    """Return a batch of the records that are framed whole, or one for each kind of evidence.

    `bad` is where unreadable blocks begin, counted from the begin of the batch.
    """
    last, count = BATCH["last_offset_delta"].of(whole), BATCH["record_count"].of(whole)
    is_plain = BATCH["magic"].of(whole) == 2 and BATCH["attributes"].of(whole) & ~0b1111000 == 0
    if not is_plain or not last >= 0 or not 0 < count <= last + 1:
        return []
    if any(begin < BATCH_HEADER_BYTES and begin + BLOCK_BYTES > 0 for begin in bad):
        return []
    is_dense = count == last + 1
    forward = _forward(whole, last, is_dense)
    at, reached = (forward[-1][1], forward[-1][2]) if forward else (BATCH_HEADER_BYTES, -1)
    is_closed = at == len(whole)
    found = forward if is_closed else forward + _backward(whole, at, reached, last, is_dense)
    kept = [
        (start, end)
        for start, end, _ in found
        if not any(begin < end and start < begin + BLOCK_BYTES for begin in bad)
    ]
    is_elsewhere = not is_closed or len(kept) < len(found) or len(found) != count
    is_seen = any(begin <= at < begin + BLOCK_BYTES for begin in bad)
    before_damage = -1 if is_closed or is_seen else at
    only_framed = [
        record
        for record in kept
        if not is_elsewhere or record[1] == before_damage or ZEROS in whole[slice(*record)]
    ]
    framed = [record for record in kept if record not in only_framed]
    return [
        _Found(evidence, _batch_of(whole, records), len(whole))
        for evidence, records in ((Evidence.ELSEWHERE, framed), (Evidence.UNKNOWN, only_framed))
        if records
    ]


def _batch_of(whole: bytes, records: list[tuple[int, int]]) -> bytes:
    """Return a batch of some records of another one; each is told by its begin and its end."""
    head = bytearray(whole[:BATCH_HEADER_BYTES])
    data = b"".join(whole[start:end] for start, end in records)
    BATCH["size"].put(head, BATCH_HEADER_BYTES - LOG_OVERHEAD_BYTES + len(data))
    BATCH["record_count"].put(head, len(records))
    return bytes(head) + data


def _forward(whole: bytes, last: int, is_dense: bool) -> list[tuple[int, int, int]]:
    """Return begin, end and offset delta of the records from the header on, up to a broken one."""
    found: list[tuple[int, int, int]] = []
    at, reached = BATCH_HEADER_BYTES, -1
    while at < len(whole):
        end, delta = _record_at(whole, at)
        fits = delta == reached + 1 if is_dense else reached < delta
        if end < 0 or not fits or delta > last:
            break
        found.append((at, end, delta))
        at, reached = end, delta
    return found


def _backward(
    whole: bytes, start: int, reached: int, last: int, is_dense: bool
) -> list[tuple[int, int, int]]:
    """Return the records behind `start` that lead to the end, where only one chain does so."""
    behind = {len(whole): last + 1}
    found: dict[int, tuple[int, int, int]] = {}
    twice: set[int] = set()
    left = WALKED_BYTES_OF_A_BYTE * len(whole)
    for at, end in _lengths(whole, start + 1):
        if end not in behind:
            continue
        left -= end - at
        if left < 0:
            return []
        real_end, delta = _record_at(whole, at)
        fits = delta == behind[end] - 1 if is_dense else delta < behind[end]
        if real_end != end or not fits or delta <= reached:
            continue
        behind[at] = delta
        if delta in found:
            twice.add(delta)
        found[delta] = at, end, delta
    return [found[delta] for delta in sorted(found) if delta not in twice]


def _lengths(whole: bytes, start: int) -> Iterator[tuple[int, int]]:
    """Yield, from the last one on, where a record may begin, and where it would end."""
    data = np.frombuffer(whole, np.uint8)
    for begin in reversed(range(start, len(data), SEARCHED_BYTES)):
        behind = min(begin + SEARCHED_BYTES, len(data))
        found = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        for size in range(1, LENGTH_BYTES_MAX + 1):
            count = min(behind, len(data) - size) - begin
            if count <= 0:
                break
            parts = [data[begin + place : begin + place + count] for place in range(size + 1)]
            is_length = (parts[size - 1] < 128) & (parts[size] == 0) & (parts[0] % 2 == 0)
            for part in parts[: size - 1]:
                is_length &= part >= 128
            rows = np.flatnonzero(is_length)
            lengths = np.zeros(len(rows), np.int64)
            for place, part in enumerate(parts[:size]):
                lengths += (part[rows].astype(np.int64) & 127) << 7 * place
            lengths //= 2
            ends = rows + begin + size + lengths
            fits = (lengths >= BODY_BYTES_MIN) & (ends <= len(data))
            found.append((rows[fits] + begin, ends[fits]))
        begins, ends = (np.concatenate(column) for column in zip(*found, strict=True))
        order = np.argsort(-begins)
        yield from zip(begins[order].tolist(), ends[order].tolist(), strict=True)


def _record_at(whole: bytes, at: int) -> tuple[int, int]:
    """Return where a record ends, and its offset delta; (-1, -1) if it is not framed whole."""
    place = _next_record(whole, at, len(whole))
    if place[0] < 0:
        return -1, -1
    _, body = kernels.decode_varint.interpreted(whole, at, len(whole))
    return (place[0], place[2]) if whole[body] == 0 else (-1, -1)
