# SPDX-License-Identifier: Apache-2.0
"""Where a real release and ours do not read the same of the same bytes, and Kafka is not the cause.

zlib, and so ours, refuses a gzip block with flags that the format wants to be 0; Java does not look
at them. And Kafka makes room for what a message inside of a message says to be, before it looks how
much is there: its JVM has no memory for some. Histories for a release leave out steps that could
show either.

Used by: descriptions.log_segment, descriptions.partition_log, descriptions.record_file,
oracle.kafka.records.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from segproof_harness.codecs import CODECS
from segproof_harness.structures import Event
from segproof_model.directory import Directory
from segproof_model.kafka.compression import COMPRESSIONS, inflate
from segproof_model.kafka.legacy_record import LegacyRecord
from segproof_model.kafka.record_batch import RecordBatch
from segproof_model.kafka.record_file import scan_memory
from segproof_model.outcomes import ErrorKind

RESERVED_FLAGS = re.compile(rb"\x1f\x8b.[\x20-\xff]", re.DOTALL)
"""The head of a gzip stream: magic, method, and flags of which one of the upper three is set."""
MUCH_BYTES = 1 << 28
"""More than a file of a history holds: what says to need it asks for memory that a JVM lacks."""


def is_asked(event: Event) -> bool:
    """Return whether a release is asked: it ends, and reads every block as ours does."""
    if event.outcome.error == ErrorKind.ENDLESS:
        return False
    given = _bytes_in(event.operation.arguments)
    return all(_is_read_alike(data) for data in (*given, *_files(event.after)))


def _files(state: Any) -> Iterator[bytes]:
    """Yield the contents of a state's files."""
    directory = state if isinstance(state, Directory) else getattr(state, "directory", None)
    if directory is not None:
        yield from (directory.read(name) or b"" for name in directory)


def _bytes_in(value: Any) -> Iterator[bytes]:
    """Yield what an argument holds of bytes."""
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _bytes_in(one)
    elif isinstance(value, tuple | list):
        for one in value:
            yield from _bytes_in(one)


@lru_cache(maxsize=1024)
def _is_read_alike(data: bytes) -> bool:
    batches = scan_memory(data, codecs=CODECS).batches
    return not RESERVED_FLAGS.search(data) and not any(map(_holds_much, batches))


def _holds_much(batch: RecordBatch) -> bool:
    """Return whether a message inside of this one says to need more memory than a JVM gets here."""
    compression = batch.compression
    if not batch.is_legacy or not isinstance(compression, str) or compression == "none":
        return False
    value = LegacyRecord(batch.data).value
    if not isinstance(value, bytes):
        return False
    inflated = inflate(COMPRESSIONS.index(compression), value, batch.magic, CODECS)
    position = 0
    while isinstance(inflated, bytes) and position + 12 <= len(inflated):
        size = int.from_bytes(inflated[position + 8 : position + 12], "big", signed=True)
        if size > MUCH_BYTES or size < 0:
            return size > 0
        position += 12 + size
    return False
