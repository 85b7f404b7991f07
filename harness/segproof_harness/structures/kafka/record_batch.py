# SPDX-License-Identifier: Apache-2.0
"""Record batches, described for the harness: one is read, damaged, mended and read again.

A batch is no file, so its histories keep it in one: `overwrite` writes over its bytes and reads it
anew. Writing batches and the pure functions beside them are queries.

Mirrors: segproof_model/kafka/format/record_batch.py, segproof/kafka/record_batch.py.
"""

from collections.abc import Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast

from segproof.files import Files as ImplFiles
from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.choices import INT32_MAX, MAGIC_NEWEST, Choose
from segproof_harness.structures.kafka.batch_drawing import (
    BASE_OFFSETS,
    TIMES,
    draw_batch,
    draw_bytes,
    draw_damage,
    draw_records,
    number_of,
    show_field,
    show_fields,
    show_place,
    show_record,
    show_records,
    until_error,
)
from segproof_harness.structures.kafka.codec_differences import (
    bytes_in,
    has_messages_only,
    is_read_alike,
)
from segproof_harness.structures.kinds import (
    BYTES,
    FLAG,
    INT32,
    INT64,
    NAME,
    Bytes,
    Integer,
    Optional,
    Record,
    Row,
    Text,
    Together,
)
from segproof_harness.structures.operations import Value
from segproof_harness.structures.steps import Event, Setup, Situation
from segproof_harness.structures.structure import OperationKind, Parameter, Structure, operation
from segproof_model.kafka.format import record, varint
from segproof_model.kafka.format.batch_writing import BatchWriter
from segproof_model.kafka.format.compression import COMPRESSIONS
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record_releases import MessagesAloneAreWritten
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised, Step
from segproof_model.language.states import State, opened, outcome_of, refuse
from segproof_model.laws.register import has

FILE = "batch"
SMALL_MAX, ROW_MAX = 1 << 20, 1 << 16
TEXT = Text(1 << 16)
DAMAGE = Together(position=Integer(0, SMALL_MAX), data=Bytes(SMALL_MAX))
"""What is written over a batch is drawn together, so that position and bytes belong together."""


class Implementation:
    """The functions of the implementation that histories of batches use; a subject offers these."""

    modules = (
        "segproof.kafka.record",
        "segproof.kafka.batch_writing",
        "segproof.kafka.record_batch",
    )
    scanner_module = "segproof.kafka.record_file"

    @classmethod
    def functions(cls) -> Any:
        """Return read_batch, write_batch, decode_varint and the others, each by its name."""
        found = [vars(import_module(module)) for module in cls.modules]
        return SimpleNamespace(**{name: one for names in found for name, one in names.items()})

    @classmethod
    def scan_memory(cls, data: bytes, max_message_size_bytes: int) -> Any:
        """Return the scan of records in memory."""
        return import_module(cls.scanner_module).scan_memory(data, max_message_size_bytes)


class Holder:
    """A batch of the implementation and the file in which it is kept."""

    def __init__(self, implementation: Any, file: str, files: ImplFiles) -> None:
        self.implementation = implementation
        self.functions = implementation.functions()
        self._file = files.open(file, writable=True)
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> None:
        self.batch = self.functions.read_batch(self._file.pread(self._file.size(), 0))

    def overwrite(self, position: int, data: bytes) -> None:
        """Write over the batch and read it anew; if it can't be read, nothing has changed."""
        changed = written_over(self._file.pread(self._file.size(), 0), position, data)
        batch = self.functions.read_batch(changed)
        self._file.pwrite(changed, 0)
        self.batch = batch

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def written_over(before: bytes, position: int, data: bytes) -> bytes:
    """Return the bytes with `data` in place of what was at `position`, at the same length."""
    place = max(0, min(position, len(before)))
    return (before[:place] + data + before[place + len(data) :])[: len(before)]


class Kept(State):
    """A batch of the model and the file in which it is kept."""

    def __init__(self, files: Files, name: str) -> None:
        self.files, self.name = files, name
        if name not in files:
            refuse(ErrorKind.FILE_NOT_FOUND)
        self._read(self.file)

    @property
    def file(self) -> bytes:
        """The bytes of the file; the batch is their beginning."""
        return self.files.image(self.name)

    def _read(self, data: bytes) -> None:
        self.batch = self.kind(MemoryRecords)(data, codecs=CODECS).first_batch()

    def overwrite(self, position: int, data: bytes) -> None:
        """Write over the batch and read it anew; if it can't be read, nothing has changed."""
        changed = written_over(self.file, position, data)
        self._read(changed)
        self.files.write(self.name, changed)

    def close(self) -> None:
        """Change nothing: a batch is not open or closed."""


def _open_model(arguments: Mapping[str, Any], files: Files, release: Release) -> Step[Any]:
    return opened(release.kind(Kept), files, arguments["file"])


def _damage(choose: Choose, situation: Situation) -> tuple[int, bytes]:
    return draw_damage(choose, situation.state.file)


def _draw_setup(choose: Choose) -> Setup:
    data = draw_batch(choose, choose.one_of(BASE_OFFSETS))
    kind = choose.weighted((12, 2, 1))
    if kind == 1:
        data += choose.data(choose.integer(0, 20))
    elif kind == 2:
        data = data[: choose.integer(0, len(data))]
    # Messages of magic 0 and 1 that are not compressed are one batch each: the first is read.
    return Setup({"file": FILE}, {FILE: data})


def _new_batch(choose: Choose, situation: Situation) -> Value:
    """Draw the arguments of `write_batch`: (magic, base offset, compression, ..., records)."""
    is_old = choose.magic_max < MAGIC_NEWEST
    magic = choose.one_of((1, 0) if is_old else (2, 2, 1, 0))
    base_offset = choose.one_of(BASE_OFFSETS)
    with_headers = magic == 2 or (not is_old and choose.one_in(6))
    records = draw_records(choose, base_offset, with_headers)
    plain = tuple(
        (
            record.offset,
            record.timestamp,
            record.key,
            record.value,
            tuple((header.key, header.value) for header in record.headers),
        )
        for record in records
    )
    codec = choose.one_of(COMPRESSIONS)
    timestamp_type = choose.one_of(("CreateTime", "CreateTime", "LogAppendTime", "NoTimestampType"))
    appended = choose.one_of((5_000, None)) if timestamp_type == "LogAppendTime" else None
    producer = (-1, -1, -1)
    if magic == 2 and choose.boolean():
        producer = (choose.integer(0, 9), choose.integer(-1, 3), choose.one_of((0, INT32_MAX, -1)))
    flags = (False, False) if is_old else (choose.one_in(4), choose.one_in(8))
    return (magic, base_offset, codec, timestamp_type, appended, producer, flags, plain)


NEW_BATCH = Together(
    magic=INT64,
    base_offset=INT64,
    compression=TEXT,
    timestamp_type=TEXT,
    log_append_time=Optional(INT64),
    producer=Together(producer_id=INT64, producer_epoch=INT64, base_sequence=INT64),
    flags=Together(is_transactional=FLAG, is_control=FLAG),
    records=Row(
        Record(
            offset=INT64,
            timestamp=INT64,
            key=Optional(BYTES),
            value=Optional(BYTES),
            headers=Row(Record(key=TEXT, value=Optional(BYTES)), ROW_MAX),
        ),
        ROW_MAX,
    ),
)
"""The arguments of `write_batch`, those of producers and the flags as lists of their own."""


def _shown_written(written: Any, compression: str) -> Any:
    """Show what was written: its bytes, or, compressed, what the model reads in it.

    Compressed bytes are the library's affair; what they mean is not.
    """
    if not isinstance(written, bytes) or compression == "none":
        return written
    batch = outcome_of(MemoryRecords(written, codecs=CODECS).first_batch)
    if isinstance(batch, Raised):
        return "unreadable"
    fields = show_fields(batch)
    # Neither size nor checksum: they depend on the compressed bytes.
    return fields[0], fields[2:5], fields[6:], batch.is_valid(), show_records(batch)


def _write_of_model(kept: Kept, records: tuple[record.Record, ...], **fields: Any) -> Any:
    written = kept.kind(BatchWriter)().write(records, codecs=CODECS, **fields)
    return _shown_written(written, fields["compression"])


def _write_of_impl(holder: Holder, records: tuple[record.Record, ...], **fields: Any) -> Any:
    functions, own = holder.functions, []
    for one in records:
        headers = tuple(functions.RecordHeader(*header) for header in one.headers)
        own.append(functions.Record(*one[:4], headers))
    return _shown_written(functions.write_batch(own, **fields), fields["compression"])


def _columns_of_impl(holder: Holder) -> Any:
    """Return the bulk reader's records, or its error."""
    return tuple(map(show_record, holder.batch.record_columns()))


def _columns_of_model(kept: Kept) -> Any:
    return tuple(map(show_record, kept.batch.records()))


def _memory(choose: Choose, situation: Situation) -> bytes:
    data, offset = b"", choose.one_of(BASE_OFFSETS)
    for _ in range(choose.integer(0, 3)):
        data += draw_batch(choose, offset)
        offset += 50
    if data and choose.one_in(3):
        data = written_over(data, *draw_damage(choose, data))
    return data[: len(data) - choose.one_of((0, 0, 0, 1, 5, 13, 20))] if data else data


def _scan_of_model(kept: Kept, data: bytes, max_message_size_bytes: int) -> Any:
    records = kept.kind(MemoryRecords)(data, max_message_size_bytes, codecs=CODECS)
    return until_error(records.batches(), show_place)


def _scan_of_impl(holder: Holder, data: bytes, max_message_size_bytes: int) -> Any:
    found = holder.implementation.scan_memory(data, max_message_size_bytes)
    return until_error(found, show_place)


def _of_batch(name: str, weight: int, laws: str, ask: Any) -> OperationKind:
    """Return an operation that asks a batch, be it the model's or the implementation's."""

    def call(keeper: Any) -> Any:
        return ask(keeper.batch)

    return operation(name, weight, laws, call=call, is_query=True)


def _pure(module: Any, name: str, law: str, *parameters: Parameter) -> OperationKind:
    """Return an operation that calls one pure function of a module of the model."""

    def call_model(kept: Kept, **arguments: Value) -> Any:
        return getattr(module, name)(*arguments.values())

    def call_impl(holder: Holder, **arguments: Value) -> Any:
        return getattr(holder.functions, name)(*arguments.values())

    return operation(
        name, 2, law, *parameters, call_model=call_model, call_impl=call_impl, is_query=True
    )


def _varint_bytes(choose: Choose, situation: Situation) -> bytes:
    count = choose.integer(0, 11)
    body = bytes(byte | 128 for byte in choose.data(count))
    return body + bytes([choose.integer(0, 127)]) if choose.boolean() else body


def _number(choose: Choose, situation: Situation) -> int:
    border = choose.one_of((0, 64, 2**31 - 1, -(2**31), 2**31, 2**62, -(2**63) + 1, *TIMES))
    return choose.beside(border)


def _sequence(choose: Choose, situation: Situation) -> int:
    return choose.one_of((0, 1, 5, INT32_MAX, INT32_MAX - 1, choose.integer(0, INT32_MAX)))


def _key(choose: Choose, situation: Situation) -> bytes | None:
    kind = choose.weighted((4, 1))
    return bytes([0, 0, 0, choose.integer(0, 9)]) if kind == 0 else draw_bytes(choose)


VARINT = (
    Parameter("data", BYTES, _varint_bytes),
    Parameter("position", INT32, lambda choose, _: choose.integer(0, 2)),
)
SEQUENCES = (Parameter("sequence", INT32, _sequence), Parameter("change", INT32, _sequence))


def _is_asked(event: Event) -> bool:
    """Return whether a release is asked: it ends, and knows the formats of what is read."""
    if event.outcome.error == ErrorKind.ENDLESS:
        return False
    state = event.after or event.before
    if state is None or not has(state, MessagesAloneAreWritten):
        return True
    read = list(bytes_in(event.operation.arguments))
    if event.does("overwrite"):
        position, data = cast(tuple[int, bytes], event.argument("damage"))
        read.append(written_over(event.before.file, position, data))
    return all(has_messages_only(data) and is_read_alike(data) for data in read)


def _tells(event: Event, name: str, value: int) -> bool:
    """Return whether there is a batch, and this field of it has this value."""
    return event.after is not None and number_of(event.after.batch, name) == value


def _records_error(event: Event) -> Any:
    return event.outcome.value[1] if event.does("records") else None


RECORD_BATCH = Structure(
    structure_id="record-batch",
    model="segproof_model.kafka.format.record_batch:RecordBatch",
    impl="segproof_harness.structures.kafka.record_batch:Implementation",
    opening=(Parameter("file", NAME, lambda choose, situation: FILE),),
    draw_setup=_draw_setup,
    operations=(
        operation("overwrite", 24, "BATCH-1", Parameter("damage", DAMAGE, _damage)),
        _of_batch("fields", 10, "BATCH-4 BATCH-12 BATCH-15", show_fields),
        _of_batch(
            "records",
            16,
            "BATCH-16 BATCH-6 BATCH-8 BATCH-9 BATCH-10 BATCH-11 BATCH-17",
            show_records,
        ),
        operation(
            "record_columns",
            6,
            "BATCH-16 BATCH-18",
            call_model=_columns_of_model,
            call_impl=_columns_of_impl,
            is_query=True,
        ),
        _of_batch("is_valid", 4, "BATCH-14 BATCH-2 BATCH-3", lambda batch: batch.is_valid()),
        _of_batch("ensure_valid", 4, "BATCH-14", lambda batch: batch.ensure_valid()),
        operation(
            "write_batch",
            8,
            "BATCH-13 BATCH-6 BATCH-20",
            Parameter("batch", NEW_BATCH, _new_batch),
            call_model=_write_of_model,
            call_impl=_write_of_impl,
            is_query=True,
        ),
        operation(
            "scan_memory",
            4,
            "SCAN-9",
            Parameter("data", BYTES, _memory),
            Parameter(
                "max_message_size_bytes",
                INT32,
                lambda choose, _: choose.one_of((INT32_MAX, 70, 100)),
            ),
            call_model=_scan_of_model,
            call_impl=_scan_of_impl,
            is_query=True,
        ),
        _pure(varint, "decode_varint", "BATCH-7", *VARINT),
        _pure(varint, "decode_varlong", "BATCH-7", *VARINT),
        _pure(varint, "encode_varint", "BATCH-7", Parameter("value", INT64, _number)),
        _pure(varint, "encode_varlong", "BATCH-7", Parameter("value", INT64, _number)),
        _pure(record, "increment_sequence", "BATCH-5", *SEQUENCES),
        _pure(record, "decrement_sequence", "BATCH-5", *SEQUENCES),
        operation(
            "control_record_type",
            2,
            "BATCH-19",
            Parameter("key", Optional(BYTES), _key),
            call_model=lambda kept, key: kept.kind(record.ControlRecordTypes)().of_key(key),
            call_impl=lambda holder, key: holder.functions.control_record_type(key),
            is_query=True,
        ),
    ),
    sometimes={
        "magic-0": lambda event: event.after is not event.before and _tells(event, "magic", 0),
        "magic-1": lambda event: event.after is not event.before and _tells(event, "magic", 1),
        "magic-2": lambda event: event.after is not event.before and _tells(event, "magic", 2),
        "compressed-read": lambda event: (
            event.does("records")
            and show_field(event.after.batch, "compression") in COMPRESSIONS[1:]
            and _records_error(event) is None
        ),
        "empty-batch": lambda event: (
            event.after is not event.before and _tells(event, "record_count", 0)
        ),
        "invalid-record": lambda event: _records_error(event) == "invalid-record",
        "unknown-codec": lambda event: _records_error(event) == "invalid-argument",
        "checksum-wrong": lambda event: event.does("is_valid") and event.outcome.value is False,
        "checksum-right": lambda event: event.does("is_valid") and event.outcome.value is True,
        "overwrite-refused": lambda event: event.refused("corrupt-record", "overwrite"),
        "varint-refused": lambda event: event.refused(
            "invalid-argument", "decode_varint", "decode_varlong"
        ),
        "write-refused": lambda event: event.refused("invalid-argument", "write_batch"),
        "scan-refused": lambda event: (
            event.does("scan_memory") and event.outcome.value[1] == "corrupt-record"
        ),
        "open-refused": lambda event: event.after is None,
        "reopened": lambda event: event.does("reopen") and event.after is not None,
    },
    is_asked=_is_asked,
    open_model=_open_model,
    open_impl=lambda impl_class, arguments, files: Holder(
        impl_class, str(arguments["file"]), files
    ),
    parts=lambda kept: [kept.batch],
    laws=("BATCH-1",),
)
