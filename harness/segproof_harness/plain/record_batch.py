# SPDX-License-Identifier: Apache-2.0
"""How plain batches are driven: one is kept in a file, damaged, and read again."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from segproof_harness.descriptions import record_batch as described
from segproof_harness.descriptions.batches import FIELDS, show_record
from segproof_harness.operations import Value
from segproof_harness.plain import Plain, broken_law
from segproof_harness.plain.batches import (
    CODECS,
    field_of,
    read_of,
    read_of_old,
    records_of,
    until_refused,
)
from segproof_model.kafka.format import batch_writing, compression, record, varint
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.language.states import State, opened, outcome_of, refuse
from segproof_model.laws.register import Transition, broken_state_laws


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


def written(kept: KeptBatch, batch: tuple[Any, ...]) -> bytes:
    """Write a batch."""
    writer = kept.kind(batch_writing.BatchWriter)()

    class Functions:
        Record = record.Record
        RecordHeader = record.RecordHeader
        write_batch = staticmethod(writer.write)

    return bytes(described._write(Functions, batch, codecs=CODECS))


def write(kept: KeptBatch, batch: tuple[Any, ...]) -> Any:
    """Write a batch, and show what was written."""
    return described._shown_written(written(kept, batch), batch[2])


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


def batches_of(kept: KeptBatch) -> Iterator[RecordBatch]:
    """Yield the batch, and what it is in a file that is as long, shorter and longer."""
    batch = kept.batch
    yield batch
    for data in (batch.data, batch.data[:-1], batch.data[:40], batch.data + bytes(61)):
        yield type(batch)(data, 0, batch.size_bytes, True, CODECS)


@cache
def golden_batches() -> list[dict[str, Any]]:
    """Return batches whose bytes Kafka itself wrote, and how they are written."""
    path = Path(described.__file__).parents[1] / "data" / "golden_batches.json"
    golden: list[dict[str, Any]] = json.loads(path.read_text(encoding="ascii"))
    return golden


def judge_golden(release: Release | None) -> Iterator[str]:
    """Yield the law of golden batches, and those of empty ones, if they are broken."""
    for golden in golden_batches():
        data, fields = bytes.fromhex(golden["data"]), golden["written_with"]
        records = [record_of(*given) for given in golden["records"]]
        log = batch_writing.write_batch(records, base_offset=records[0].offset, **fields)
        given = fields.get("log_append_time")
        read = [one if given is None else one._replace(timestamp=given) for one in records]
        batch = MemoryRecords(data).first_batch()
        found = outcome_of(lambda batch=batch: list(batch.records()))
        yield from broken_law("BATCH-13", release, data, log, read, found)
    given_empty = (2**40, 2**40 + 7, 1_000, 2**31 - 1)
    empty = batch_writing.write_empty_batch(
        *given_empty[:3], base_sequence=given_empty[3], producer_id=5, producer_epoch=0
    )
    yield from broken_law("BATCH-15", release, given_empty, empty)


def record_of(
    offset: int, time: int, key: Any, value: Any, headers: Any, sequence: int
) -> record.Record:
    """Return a record whose bytes are given as text."""
    key, value, *values = (
        None if one is None else bytes.fromhex(one)
        for one in (key, value, *(h[1] for h in headers))
    )
    named = [record.RecordHeader(h[0], one) for h, one in zip(headers, values, strict=True)]
    return record.Record(offset, time, key, value, tuple(named), sequence)


def judge_written(kept: KeptBatch, batch: tuple[Any, ...]) -> Iterator[str]:
    """Yield the laws that a written batch breaks."""
    magic, _, codec, type_, _, _, _, plain = batch
    log, release = outcome_of(written, kept, batch), kept.release
    if isinstance(log, Raised):
        return
    yield from broken_law("BATCH-2", release, log)
    yield from broken_law("BATCH-3", release, log)
    batches = list(kept.kind(MemoryRecords)(log, codecs=CODECS).batches())
    for one in batches:
        yield from broken_state_laws(one)
    found = [item for one in batches for item in one.records()]
    if type_ == "CreateTime":
        headers = record.RecordHeader
        records = [
            record.Record(offset, time, key, value, tuple(headers(*one) for one in given))
            for offset, time, key, value, given in plain
        ]
        kept_ones = [one._replace(sequence=-1) for one in found]
        yield from broken_law("BATCH-6", release, records, magic, kept_ones)
    if codec == "lz4":
        data = plain[0][2] or b""
        frame = compression.deflate(compression.LZ4, data, magic, CODECS)
        yield from broken_law("BATCH-20", release, frame, magic, CODECS)


def judge_function(step: Transition) -> Iterator[str]:
    """Yield the laws that the answer of a pure function breaks."""
    name, release, given = step.operation, step.kind.release, list(step.arguments.values())
    bits = 64 if name.endswith("varlong") else 32
    if name.startswith("encode_") and isinstance(step.outcome, bytes):
        value = (given[0] + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
        yield from broken_law("BATCH-7", release, step.outcome, bits, (value, len(step.outcome)))
    if name.startswith("decode_"):
        data, position = given
        outcome = step.outcome
        if isinstance(outcome, tuple):
            outcome = outcome[0], outcome[1] - position
        yield from broken_law("BATCH-7", release, data[position:], bits, outcome)
    if name == "increment_sequence":
        back = record.decrement_sequence(step.outcome, given[1])  # type: ignore[arg-type]
        yield from broken_law("BATCH-5", release, *given, step.outcome, back)
    if name == "control_record_type" and given[0] is not None:
        for value in (bytes(5), bytes(6), b"\xff" + bytes(9), b"\0\0\0\0\1\2"):
            marker = outcome_of(record.end_transaction_marker, record.Record(0, 0, given[0], value))
            yield from broken_law("BATCH-19", release, given[0], value, step.outcome, marker)


def also_broken(step: Transition) -> Iterator[str]:
    """Yield the laws that a batch breaks that is read or written, and what a function answers."""
    if isinstance(step.after, KeptBatch):
        if step.operation == "open":
            yield from judge_golden(step.kind.release)
        if step.operation in ("open", "overwrite"):
            for one in batches_of(step.after):
                yield from broken_state_laws(one)
        if step.operation == "write_batch":
            yield from judge_written(step.after, step.arguments["batch"])
        if step.operation == "scan_memory":
            records = step.after.kind(MemoryRecords)(*step.arguments.values(), codecs=CODECS)
            yield from broken_state_laws(records)
        yield from judge_function(step)


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
    kind=KeptBatch,
    also_broken=also_broken,
)
