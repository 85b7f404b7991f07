# SPDX-License-Identifier: Apache-2.0
"""How plain batches are driven: one is kept in a file, damaged, and read again."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.descriptions import record_batch as described
from segproof_harness.descriptions.batches import FIELDS, show_record
from segproof_harness.operations import Value
from segproof_harness.plain import Plain
from segproof_harness.plain.batches import (
    CODECS,
    field_of,
    read_of,
    read_of_old,
    records_of,
    until_refused,
)
from segproof_model.kafka.format import batch_writing, record, varint
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Step
from segproof_model.language.states import State, opened, refuse


class KeptBatch(State):
    """A batch and the file in which it is kept."""

    def __init__(self, files: Files, name: str) -> None:
        if name not in files:
            refuse(ErrorKind.FILE_NOT_FOUND)
        self.files, self.name = files, name
        self.read(files.image(name))

    def read(self, data: bytes) -> None:
        """Read the batch, which is the beginning of the file."""
        self.batch = self.kind(MemoryRecords)(data, codecs=CODECS).first_batch()

    def overwrite(self, damage: tuple[int, bytes]) -> None:
        """Write over the batch and read it anew; if it can't be read, nothing has changed."""
        changed = described.written_over(self.files.image(self.name), *damage)
        self.read(changed)
        self.files.write(self.name, changed)

    def close(self) -> None:
        """Change nothing."""


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Open a file that holds a batch."""
    return opened(release.kind(KeptBatch), files, str(arguments["file"]))


def fields(kept: KeptBatch) -> Any:
    """Return each field, or its kind of error."""
    return tuple(field_of(kept.batch, name) for name in FIELDS)


def columns(kept: KeptBatch) -> Any:
    """Return all records, or the error."""
    return tuple(map(show_record, kept.batch.records()))


def write(kept: KeptBatch, batch: tuple[Any, ...]) -> Any:
    """Write a batch."""
    writer = kept.kind(batch_writing.BatchWriter)()

    class Functions:
        Record = record.Record
        RecordHeader = record.RecordHeader
        write_batch = staticmethod(writer.write)

    return described._shown_written(described._write(Functions, batch, codecs=CODECS), batch[2])


def scan_memory(kept: KeptBatch, data: bytes, max_message_size_bytes: int) -> Any:
    """Return where the batches of records in memory are."""
    records = kept.kind(MemoryRecords)(data, max_message_size_bytes, codecs=CODECS)
    names = ("position", "size_bytes", "magic", "last_offset", "max_timestamp")
    return until_refused(
        records.batches(), lambda batch: tuple(field_of(batch, name) for name in names)
    )


def pure(function: Any) -> Any:
    """Return how a pure function is called."""
    return lambda kept, **arguments: function(*arguments.values())


def seen(kept: Any) -> Any:
    """Return what can be read of the batch, here and in a file."""
    return read_of(kept.batch)


def seen_of_old(kept: Any) -> Any:
    """Return the same of the older model."""
    return read_of_old(kept.batch)


PLAIN = Plain(
    open_it,
    {
        "fields": fields,
        "records": lambda kept: records_of(kept.batch),
        "record_columns": columns,
        "is_valid": lambda kept: kept.batch.is_valid(),
        "ensure_valid": lambda kept: kept.batch.ensure_valid(),
        "write_batch": write,
        "scan_memory": scan_memory,
        "decode_varint": pure(varint.decode_varint),
        "decode_varlong": pure(varint.decode_varlong),
        "encode_varint": pure(varint.encode_varint),
        "encode_varlong": pure(varint.encode_varlong),
        "increment_sequence": pure(record.increment_sequence),
        "decrement_sequence": pure(record.decrement_sequence),
        "control_record_type": lambda kept, key: kept.kind(record.ControlRecordTypes)().of_key(key),
    },
    seen=seen,
    seen_of_old=seen_of_old,
)
