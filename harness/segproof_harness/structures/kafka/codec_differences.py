# SPDX-License-Identifier: Apache-2.0
"""Where a real release and ours do not read the same of the same bytes, and Kafka is not the cause.

zlib, and so ours, refuses a gzip block with flags that the format wants to be 0; Java does not look
at them. And Kafka makes room for what a message inside of a message says to be, before it looks how
much is there: its JVM has no memory for some. Histories for a release leave out steps that could
show either.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.kafka.batch_drawing import whole_batches
from segproof_harness.structures.steps import Event
from segproof_model.kafka.format.compression import COMPRESSIONS, NONE, inflate
from segproof_model.kafka.format.legacy_record import LOG_OVERHEAD, MIN_MESSAGE_BYTES, LegacyRecord
from segproof_model.kafka.format.legacy_record_batch import LegacyRecordBatch
from segproof_model.kafka.format.memory_records import HEADER_UP_TO_MAGIC_BYTES
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.kafka.format.record_releases import MessagesAloneAreWritten
from segproof_model.language.integers import INT32_MAX, int32_at
from segproof_model.language.outcomes import ErrorKind
from segproof_model.language.states import Refused, outcome_of
from segproof_model.laws.register import has
from segproof_model.releases import KAFKA, RELEASES

RESERVED_FLAGS = re.compile(rb"\x1f\x8b.[\x20-\xff]", re.DOTALL)
"""The head of a gzip stream: magic, method, and flags of which one of the upper three is set."""
MUCH_BYTES = 1 << 28
"""More than a file of a history holds: what says to need it asks for memory that a JVM lacks."""
OLDEST = RELEASES[f"kafka-{KAFKA[-1]}"]
"""It reads messages alone."""


def is_asked(event: Event) -> bool:
    """Return whether a release is asked: it ends, and reads every block as ours does."""
    if event.outcome.error == ErrorKind.ENDLESS:
        return False
    after = event.after
    files = [] if after is None else list(after.files.images.values())
    data = (*bytes_in(event.operation.arguments), *files)
    return all(map(is_read_alike, data)) and _knows_formats(event, data)


def _knows_formats(event: Event, data: tuple[bytes, ...]) -> bool:
    """Return whether the release knows the format of all that this step may read as a batch.

    What the oldest ones make of other formats no behaviour says. A scan may begin at the end of any
    batch, at a position that is given, or where an index entry sends it.
    """
    state = event.after or event.before
    if state is None or not has(state, MessagesAloneAreWritten):
        return True
    starts = {0, *_numbers_in(event.operation.arguments), *_indexed_places(state)}
    return all(has_messages_only(one, start) for one in data for start in starts)


def _numbers_in(arguments: Mapping[str, Any]) -> Iterator[int]:
    """Yield the positions among the arguments; one in a slice counts from where that begins."""
    numbers = {name: value for name, value in arguments.items() if type(value) is int}
    yield from numbers.values()
    yield numbers.get("position", 0) + numbers.get("inner", 0)


def _indexed_places(state: Any) -> Iterator[int]:
    """Yield the positions in the offset indexes among a state's files."""
    for name, image in state.files.images.items():
        if ".index" in name:
            for at in range(4, len(image) - 3, 8):
                yield int32_at(image, at)


@lru_cache(maxsize=1024)
def has_messages_only(data: bytes, start: int = 0) -> bool:
    """Return whether all batches from a position on are messages of magic 0 and 1, inside too."""
    position = start
    while 0 <= position <= len(data) - HEADER_UP_TO_MAGIC_BYTES:
        size = int32_at(data, position + 8)
        end = position + LOG_OVERHEAD + size
        if size < MIN_MESSAGE_BYTES or len(data) < end <= INT32_MAX:
            break
        if data[position + 16] > 1 or not _wraps_messages_only(data[position:end]):
            return False  # limits that wrap hand out one of nearly 2 GiB, too
        position = end
    return True


def _wraps_messages_only(data: bytes) -> bool:
    batch = OLDEST.kind(LegacyRecordBatch)(data, 0, len(data), codecs=CODECS)
    with suppress(Refused):
        return all(one.stored.magic in (0, 1) for one in batch.messages())
    return True


def bytes_in(value: Any) -> Iterator[bytes]:
    """Yield what an argument holds of bytes."""
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from bytes_in(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from bytes_in(one)


@lru_cache(maxsize=1024)
def is_read_alike(data: bytes) -> bool:
    """Return whether a release and ours read the same of these bytes, but for what Kafka says."""
    return not RESERVED_FLAGS.search(data) and not any(map(_holds_much, whole_batches(data)))


def _holds_much(batch: RecordBatch) -> bool:
    """Return whether a message inside of this one says to need more memory than a JVM gets here."""
    codec = LegacyRecord(batch.data).codec
    if not batch.is_legacy or codec == NONE or codec >= len(COMPRESSIONS):
        return False
    value = outcome_of(getattr, LegacyRecord(batch.data), "value")
    if not isinstance(value, bytes):
        return False
    inflated = outcome_of(inflate, codec, value, batch.magic, CODECS)
    position = 0
    while isinstance(inflated, bytes) and position + 12 <= len(inflated):
        size = int.from_bytes(inflated[position + 8 : position + 12], "big", signed=True)
        if size > MUCH_BYTES or size < 0:
            return size > 0
        position += 12 + size
    return False
