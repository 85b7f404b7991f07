# SPDX-License-Identifier: Apache-2.0
"""Batches whose size or magic is wrong, and whose checksum proves the right ones; also offsets.

The checksum of magic 2 covers a batch from its attributes on; size and magic lie before them. So
the checksum is made over the bytes up to each position where the batch may end: where its size
leads, at the next batch, after as many records as it counts, before the next header or the last
zeros, and where a size with one other byte leads. If the checksum holds over exactly these bytes,
their number is the right size, and the magic is 2. A message of magic 0 or 1 ends where the lengths
of its key and its value lead; its checksum covers these and the magic.
No checksum covers the base offset. But a compressed message of magic 0 wraps messages that state
their offsets themselves: the last one's is its own.

Upstream: Kafka 4.3.1: DefaultRecordBatch, LegacyRecord.
Laws: BATCH-2, BATCH-3, BATCH-4, BATCH-10 to BATCH-12, BATCH-19.
Not covered: a compressed batch of magic 2 with several wrong bytes in its size, before a damage.
"""

from array import array
from collections.abc import Iterable, Iterator, Sequence

from segproof.checksums import crc32, crc32c
from segproof.errors import SegproofError, TooLargeError
from segproof.files import ReadOnlyFile, first_byte
from segproof.kafka.record import end_transaction_marker
from segproof.kafka.record_batch import RecordBatch, read_batch
from segproof.kernels import records as kernels
from segproof.layouts.kafka import (
    BATCH,
    BATCH_HEADER_BYTES,
    CHECKED_FROM,
    LEGACY_MIN_BYTES,
    LOG_OVERHEAD_BYTES,
    MESSAGE_0,
    MESSAGE_1,
    MESSAGE_CHECKED_FROM,
)
from segproof.stretches.kafka.batch_starts import starts_by_offset

_MAGIC_AT = BATCH["magic"].place
BATCH_BYTES_MAX = 16 << 20
"""Bytes of a batch that is tried, at most: it is held in memory, and twice while its records are
read. Sixteen times Kafka's default limit of a batch."""
GUESSED_BYTES_MAX = 1 << 20
"""Bytes of a batch whose end is guessed, at most: Kafka's default limit of a batch."""
SEARCHED_BYTES = 1 << 20
"""Bytes that are searched at once for headers: the numpy columns take nine times as many."""
TRIAL_BYTES = 512
"""Bytes of work that a trial counts at least: about what reading its header costs."""
HEADERS_TRIED = 8
"""A batch is tried with the begin of each of this many next headers as its end, at most. One
damaged block seldom has more headers."""
STARTS_MAX = 1 << 16
"""Positions between two batches at which a batch is tried, at most: 2 MiB of integers."""


class Trials:
    """Tries whether a batch begins at a position of a file, within a budget.

    Checksums are made of `work_bytes`, and in guesses of as many again. Raises: OSError.
    """

    def __init__(self, file: ReadOnlyFile, work_bytes: int) -> None:
        self._file = file
        self._left = work_bytes
        self._left_of_guesses = work_bytes

    @property
    def is_through(self) -> bool:
        """Whether too much was tried."""
        return self._left < 0

    def starts(self, start: int, end: int, above: int, below: int) -> list[int]:
        """Return the rising positions in [start, end) at which a batch may begin.

        Its size and its magic may be wrong. Its base offset lies between `above` and `below`, both
        excluded. At most STARTS_MAX positions are returned.
        """
        found = list[int]()
        at = start
        while at < end and len(found) < STARTS_MAX:
            count = min(SEARCHED_BYTES, end - at)
            data = self._file.pread(count + BATCH_HEADER_BYTES - 1, at)
            rows = starts_by_offset(data, count, above, below)
            found += (rows[: STARTS_MAX - len(found)] + at).tolist()
            at = behind_zeros(self._file, data, at + SEARCHED_BYTES, end)
        return found

    def by_size(self, position: int) -> bytes | None:
        """Return the batch at a position, as its size says, if its checksum holds.

        Return None for a batch that no broker loads.
        """
        end = end_at(self._file, position)
        self._left -= TRIAL_BYTES
        if not BATCH_HEADER_BYTES <= end - position <= BATCH_BYTES_MAX:
            return None
        self._left -= end - position
        return _proved(self._file.pread(end - position, position), [end - position])

    def by_lengths(self, position: int, end: int) -> bytes | None:
        """Return the message of magic 0 or 1 at a position, if its checksum holds, with its size.

        It ends where its lengths lead, at `end` at most. Return None for one that can't be read.
        """
        size = end_by_lengths(self._file, position) - position
        if not LEGACY_MIN_BYTES <= size <= min(BATCH_BYTES_MAX, end - position):
            return None
        self._left -= TRIAL_BYTES + size
        data = bytes(with_proved_header(self._file.pread(size, position)))
        return data if data[_MAGIC_AT] < 2 and _agrees_with_messages(read_batch(data)) else None

    def by_guess(self, position: int, ends: Sequence[int]) -> bytes | None:
        """Return the batch up to the first end for which its checksum holds, as `by_size`.

        `ends` are some of its possible ends. Only the end by its last record may come after them.
        """
        if self._left_of_guesses < 0:
            return None
        data = self._file.pread(min(max(ends) - position, GUESSED_BYTES_MAX), position)
        if len(data) < BATCH_HEADER_BYTES:
            return None
        told = end_by_records(data), *(end - position for end in ends)
        sizes = _rising(told, BATCH_BYTES_MAX)
        self._left_of_guesses -= TRIAL_BYTES + 2 * len(data) + max(sizes, default=0)
        found = _proved(self._file.pread(max(sizes, default=0), position), sizes)
        if found is not None:
            return found
        said, content = BATCH["size"].of(data), len(data.rstrip(b"\0"))
        near = *_with_another_byte(said, len(data)), *range(content, content + 9)
        return _proved(data, _rising(near, len(data)))


def behind_zeros(file: ReadOnlyFile, before: bytes, at: int, end: int) -> int:
    """Return from where on, in [at, end), a header may begin; zeros are none.

    `before` are the bytes that were searched last. If they are zeros, those that follow are passed
    over as fast as they are read, and holes at once.
    """
    # Counting stops nowhere, so the first bytes are asked before.
    if at >= end or any(before[:BATCH_HEADER_BYTES]) or before.count(0) != len(before):
        return at
    byte = first_byte(file, at, end + BATCH_HEADER_BYTES)
    return end if byte is None else max(at, byte - BATCH_HEADER_BYTES + 1)


def end_at(file: ReadOnlyFile, position: int) -> int:
    """Return where a batch at a position would end, by its size field; -1 without the field.

    Raises: OSError.
    """
    header = file.pread(LOG_OVERHEAD_BYTES, position)
    if len(header) < LOG_OVERHEAD_BYTES:
        return -1
    return position + LOG_OVERHEAD_BYTES + BATCH["size"].of(header)


def end_by_lengths(file: ReadOnlyFile, position: int) -> int:
    """Return where a message of magic 0 or 1 ends by the lengths of its key and its value; or -1.

    Nothing of it but these and its magic is looked at.
    """
    magic = file.pread(1, position + _MAGIC_AT)
    if magic not in (b"\0", b"\1"):
        return -1
    at = position + (MESSAGE_1 if magic[0] else MESSAGE_0)["key_length"].place
    for _ in range(2):  # the key, then the value
        length = file.pread(4, at)
        if len(length) < 4:
            return -1
        at += 4 + max(0, int.from_bytes(length, "big", signed=True))
    return at


def end_by_records(data: bytes) -> int:
    """Return how long a batch is by its records, as many as its header counts; -1: not known.

    `data` begins with the batch, and may end inside of its last record or go on behind it.
    Compressed records say no length.
    """
    if len(data) <= BATCH_HEADER_BYTES or BATCH["attributes"].of(data) & 7:
        return -1
    count = BATCH["record_count"].of(data)
    if not 0 <= count <= last_delta(data) + 1:
        return -1
    summary = array("q", bytes(8 * kernels.SUMMARY_ROW))
    kernels.summarise_records.announce(min(count, len(data)))
    kernels.summarise_records(data, BATCH_HEADER_BYTES, len(data), count, memoryview(summary), 0)
    status, at, seen = summary[:3]
    if status == kernels.RECORDS_BAD_LENGTH and seen == count - 1:
        length, body = kernels.decode_varint(data, at, len(data))
        return body + length
    return at if seen == count else -1


def checksum_difference(whole: bytes) -> int:
    """Return in which bits the checksum that a batch has differs from the right one."""
    return BATCH["crc"].of(whole) ^ crc32c(memoryview(whole)[CHECKED_FROM:])


def proved_offsets(batch: RecordBatch) -> tuple[int, int] | None:
    """Return the first and the last offset that the messages in a wrapper of magic 0 prove.

    Return None for other batches, if they can't be read or fall, and if they are numbered from 0,
    as a producer sends them.
    """
    if batch.magic or batch.compression == "none":
        return None
    try:
        first, last = batch.message_offsets
    except SegproofError:
        return None
    return (first, last) if 0 < first <= last else None


def with_proved_header(whole: bytes) -> bytearray:
    """Return the bytes of a batch with the size that they have, and the offset that is proved.

    A message of magic 0 or 1 has a checksum that holds; anything else gets magic 2.
    """
    data = bytearray(whole)
    BATCH["size"].put(data, len(whole) - LOG_OVERHEAD_BYTES)
    checked = data[MESSAGE_CHECKED_FROM:]
    if data[_MAGIC_AT] > 1 or crc32(checked) != MESSAGE_1["crc"].of(data):
        data[_MAGIC_AT] = 2
    offsets = None if data[_MAGIC_AT] else proved_offsets(read_batch(bytes(data)))
    if offsets is not None:
        BATCH["base_offset"].put(data, offsets[1])
    return data


def agrees_with_records(data: bytes) -> bool:
    """Return whether the records of a batch are as many, and their offsets as high, as it says."""
    try:
        count, last, rises, _ = read_batch(data).check_records()
    except SegproofError:
        return False
    delta = last_delta(data)
    return rises and delta >= 0 and count <= last + 1 <= delta + 1


def last_delta(data: bytes) -> int:
    """Return the last offset of a batch minus the offset in its first eight bytes."""
    return 0 if data[_MAGIC_AT] < 2 else BATCH["last_offset_delta"].of(data)


def is_loadable(batch: RecordBatch) -> bool:
    """Return whether a broker loads a batch: the first record of a control one is a marker, and
    messages in a wrapper of magic 0 or 1 can be read.

    A wrapper that is too large to look into counts as loadable. Laws: BATCH-10, BATCH-11, BATCH-19.
    """
    try:
        if not batch.is_control:
            _ = batch.base_offset  # of a wrapper it is in the messages inside
            return True
        record = next(iter(batch.records()), None)
        if record is not None:
            end_transaction_marker(record)
    except TooLargeError:
        return True
    except SegproofError:
        return False
    return True


def _agrees_with_messages(message: RecordBatch) -> bool:
    """Return whether what a message of magic 0 or 1 wraps can be read, and its offsets rise."""
    try:
        message.check_inner_messages()
        return message.base_offset <= message.last_offset
    except SegproofError:
        return False


def _proved(data: bytes, sizes: Sequence[int]) -> bytes | None:
    """Return the batch that `data` begins with, of the first of rising sizes that is proved."""
    if len(data) < CHECKED_FROM:  # the end of a torn log
        return None
    stored, made, at, whole = BATCH["crc"].of(data), 0, CHECKED_FROM, memoryview(data)
    for size in sizes:
        made = crc32c(whole[at:size], made)
        at = size
        if made != stored or len(data) < size:
            continue
        found = bytes(with_proved_header(data[:size]))
        if agrees_with_records(found) and is_loadable(read_batch(found)):
            return found
    return None


def _with_another_byte(said: int, most: int) -> Iterator[int]:
    """Yield the sizes of a batch, up to `most`, whose size field differs in one byte at most."""
    for shift in range(0, 32, 8):
        rest = said & ~(255 << shift)
        if rest >= 0:
            last = min(255, max(-1, most - LOG_OVERHEAD_BYTES - rest >> shift))
            yield from (LOG_OVERHEAD_BYTES + (rest | one << shift) for one in range(last + 1))


def _rising(sizes: Iterable[int], most: int) -> list[int]:
    """Return the sizes that a batch may have, up to the largest, in their order."""
    return sorted({size for size in sizes if BATCH_HEADER_BYTES <= size <= most})
