# SPDX-License-Identifier: Apache-2.0
"""The record file, described for the harness.

Mirrors: segproof_model/kafka/format/record_file.py, segproof/kafka/record_file.py.
"""

from collections.abc import Mapping
from typing import Any

from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.choices import INT32_MAX, Choose
from segproof_harness.structures.kafka.batch_drawing import (
    BASE_OFFSETS,
    TIMES,
    attempt,
    draw_batch,
    draw_damaged,
    number_of,
    show_place,
    until_error,
    whole_batches,
)
from segproof_harness.structures.kafka.codec_differences import is_asked
from segproof_harness.structures.kinds import (
    FLAG,
    INT32,
    INT64,
    NAME,
    SIZE,
    SIZE_MAX,
    Bytes,
    Integer,
    Optional,
)
from segproof_harness.structures.operations import Value
from segproof_harness.structures.steps import Event, Setup, Situation
from segproof_harness.structures.structure import (
    Parameter,
    Structure,
    creating,
    operation,
    takes,
)
from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened

FILE = "segment.log"
SMALL_MAX = 1 << 20


def _image(situation: Situation) -> bytes:
    return b"" if situation.state is None else bytes(situation.state.image)


def _places(situation: Situation) -> list[int]:
    """Return the positions where batches begin, and the end."""
    batches = whole_batches(_image(situation))
    return [*(batch.position for batch in batches), _size(situation)]


def _size(situation: Situation) -> int:
    return 0 if situation.state is None else int(situation.state.size)


def _position(choose: Choose, situation: Situation) -> int:
    kind = choose.weighted((6, 3, 1))
    if kind == 0:
        return choose.one_of(_places(situation))
    if kind == 1:
        return choose.beside(choose.one_of(_places(situation)))
    return choose.one_of((0, -1, 17, INT32_MAX, _size(situation) + 20))


def _cut_size(choose: Choose, situation: Situation) -> int:
    """Draw where the file is cut; one that is not open for writing is not."""
    state = situation.state
    if state is None or not (state.is_open and state.writable):
        return len(_image(situation))
    return max(0, choose.one_of(_places(situation)) - choose.integer(0, 90))


def _size_argument(choose: Choose, situation: Situation) -> int:
    places = _places(situation)
    kind = choose.weighted((6, 2, 2))
    if kind == 0:
        return abs(choose.one_of(places) - choose.one_of(places))
    if kind == 1:
        return choose.integer(0, 200)
    return choose.one_of((17, 0, 18, -1, INT32_MAX))


def _records(choose: Choose, situation: Situation) -> bytes:
    batches = whole_batches(_image(situation))
    last = number_of(batches[-1], "last_offset") if batches else choose.one_of(BASE_OFFSETS)
    after = last + 1 if last is not None and last >= 0 else 0
    kind = choose.weighted((14, 3, 1, 1, 1, 2))
    if kind == 2:
        return bytes(choose.one_of((17, 18, choose.integer(0, 40))))
    if kind == 5:
        smallest = Record(min(after, 2**62), -1, None, None)
        return write_batch([smallest], magic=0, base_offset=smallest.offset, codecs=CODECS)
    if kind == 3:
        return choose.data(choose.integer(0, 40))
    batch = draw_batch(choose, min(after, 2**62))
    if kind == 4:
        return batch[: choose.integer(0, len(batch))]
    if kind == 1:
        return draw_damaged(choose, batch)
    return batch


def _offset(choose: Choose, situation: Situation) -> int:
    batches = whole_batches(_image(situation))
    if batches and not choose.one_in(6):
        last = number_of(choose.one_of(batches), "last_offset")
        if last is not None and abs(last) < 2**62:
            return last + choose.one_of((0, -1, 1, -3))
    return choose.beside(choose.one_of(BASE_OFFSETS))


def _timestamp(choose: Choose, situation: Situation) -> int:
    batches = whole_batches(_image(situation))
    if batches and not choose.one_in(6):
        time = number_of(choose.one_of(batches), "max_timestamp")
        if time is not None and abs(time) < 2**62:
            return choose.beside(time)
    return choose.one_of((*TIMES, 5_000))


def _draw_setup(choose: Choose) -> Setup:
    preallocate = choose.one_in(3)
    arguments: dict[str, Value] = {
        "file": FILE,
        "mutable": not choose.one_in(12),
        "file_already_exists": choose.one_in(4) if preallocate else choose.boolean(),
        "init_file_size": choose.one_of((1000, 1000, 0, 100, -1)) if preallocate else 0,
        "preallocate": preallocate,
    }
    if choose.boolean():
        return Setup(arguments)
    image, offset = b"", choose.one_of(BASE_OFFSETS)
    for _ in range(choose.integer(0, 4)):
        batch = draw_batch(choose, offset)
        offset = whole_batches(batch)[-1].last_offset + 1
        image += batch
    kind = choose.weighted((6, 2, 1, 1))
    if kind == 1:
        image += bytes(choose.one_of((17, 18, 1, 40)))
    elif kind == 2:
        image = image[: choose.integer(0, len(image))]
    elif kind == 3 and image:
        image = draw_damaged(choose, image)
    return Setup(arguments, {FILE: image})


def _open_model(arguments: Mapping[str, Any], files: Files, release: Release) -> Step[Any]:
    given = dict(arguments)
    return opened(release.kind(RecordFile), files, given.pop("file"), **given, codecs=CODECS)


def _open_impl(impl_class: Any, arguments: Mapping[str, Any], files: Any) -> Any:
    given, opening = dict(arguments), impl_class.open
    if not takes(opening, "mutable"):  # Kafka's name, and that of the operation
        given["writable"] = given.pop("mutable")
    return opening(**given, **creating(opening, arguments["mutable"]), files=files)


# --- calls that the model and others take alike ---------------------------------------------------


def _batches(file: Any, start: int | None) -> Any:
    return until_error(file.batches(start), show_place)


def _show_slice(view: Any) -> Any:
    content = attempt(view.read) if view.is_open else None
    return view.start, view.size_in_bytes(), content, until_error(view.batches(), show_place)


def _slice_of_slice(file: Any, position: int, size: int, inner: int, inner_size: int) -> Any:
    return file.slice(position, size).slice(inner, inner_size)


def _read(file: Any) -> Any:
    return file.read() if file.is_open else None


# --- behind the back of who has the file open; workloads draw it with a weight of its own only ----


def _cut_of_model(file: RecordFile, size: int) -> None:
    file.files.write(file.name, file.image[:size])


def _cut_of_impl(file: Any, size: int) -> None:
    if file.is_open and size < file.file.size():
        file.file.truncate(size)


def _has_error(event: Event, kind: str) -> bool:
    return event.does("batches") and bool(event.outcome.value[1] == kind)


RECORD_FILE = Structure(
    structure_id="record-file",
    model="segproof_model.kafka.format.record_file:RecordFile",
    opening=(
        Parameter("file", NAME, lambda choose, situation: FILE),
        Parameter("mutable", FLAG, lambda choose, situation: not choose.one_in(6)),
        Parameter("file_already_exists", FLAG, lambda choose, _: not choose.one_in(3)),
        Parameter("init_file_size", SIZE, lambda choose, _: choose.one_of((1000, 0, 100, 17, -1))),
        Parameter("preallocate", FLAG, lambda choose, situation: choose.one_in(4)),
    ),
    draw_setup=_draw_setup,
    operations=(
        operation("append", 24, "SCAN-11", Parameter("records", Bytes(SMALL_MAX), _records)),
        operation(
            "batches",
            8,
            "SCAN-5 SCAN-1 SCAN-2 SCAN-3 SCAN-4 SCAN-7",
            Parameter("start", Optional(INT32), lambda choose, situation: None),
            call=_batches,
            is_query=True,
        ),
        operation(
            "search_for_offset_with_size",
            10,
            "SCAN-17",
            Parameter("target_offset", INT64, _offset),
            Parameter("starting_position", INT32, _position),
            is_query=True,
        ),
        operation(
            "search_for_timestamp",
            8,
            "SCAN-18",
            Parameter("target_timestamp", INT64, _timestamp),
            Parameter("starting_position", INT32, _position),
            Parameter("starting_offset", INT64, _offset),
            is_query=True,
        ),
        operation(
            "largest_timestamp_after",
            4,
            "SCAN-19",
            Parameter("starting_position", INT32, _position),
            is_query=True,
        ),
        operation(
            "slice",
            6,
            "SCAN-14 SCAN-8 SCAN-20",
            Parameter("position", INT32, _position),
            Parameter("size", INT32, _size_argument),
            show=_show_slice,
            is_query=True,
        ),
        operation(
            "slice_of_slice",
            5,
            "SCAN-16 SCAN-14 SCAN-8",
            Parameter("position", INT32, _position),
            Parameter("size", INT32, _size_argument),
            Parameter("inner", INT32, _position),
            Parameter("inner_size", INT32, _size_argument),
            call=_slice_of_slice,
            show=_show_slice,
            is_query=True,
        ),
        operation("read", 2, "SCAN-20", call=_read, is_query=True),
        operation("truncate_to", 5, "SCAN-12", Parameter("target_size", INT32, _position)),
        operation(
            "cut_by_another",
            0,
            "SCAN-7",
            Parameter("size", Integer(0, SIZE_MAX), _cut_size),
            call_model=_cut_of_model,
            call_impl=_cut_of_impl,
        ),
        operation("trim", 2, "SCAN-13"),
        operation("flush", 1, "SCAN-13"),
        operation("close", 2, "SCAN-13", ends=True),
    ),
    observed=("size_in_bytes", "end", "is_open"),
    sometimes={
        "empty": lambda event: event.after is not None and event.after.size == 0,
        "many-batches": lambda event: event.does("batches") and len(event.outcome.value[0]) >= 4,
        "preallocated": lambda event: (
            event.after is not None and len(event.after.image) > event.after.size
        ),
        "closed-with-a-tail": lambda event: (
            event.done("close")
            and event.before.is_open
            and len(event.before.image) > event.before.size
        ),
        "corrupt-met": lambda event: _has_error(event, "corrupt-record"),
        "offset-found": lambda event: (
            event.does("search_for_offset_with_size") and event.outcome.value is not None
        ),
        "timestamp-found": lambda event: (
            event.does("search_for_timestamp") and event.outcome.value is not None
        ),
        "timestamp-not-found": lambda event: (
            event.does("search_for_timestamp") and event.outcome.value is None
        ),
        "slice-inside-slice": lambda event: (
            event.done("slice_of_slice")
            and event.outcome.value[0] > 0
            and event.outcome.value[1] > 0
        ),
        "slice-refused": lambda event: event.refused("invalid-argument", "slice", "slice_of_slice"),
        "truncated": lambda event: (
            event.done("truncate_to") and event.after.size < event.before.size
        ),
        "truncate-refused": lambda event: event.refused("kafka-error", "truncate_to"),
        "read-only-refused": lambda event: event.refused("io-error", "append"),
        "open-refused": lambda event: event.after is None,
    },
    is_usable=lambda state: state.is_open,
    open_model=_open_model,
    open_impl=_open_impl,
    is_asked=is_asked,
    laws=("SCAN-13", "SCAN-20"),
)
