# SPDX-License-Identifier: Apache-2.0
"""How the plain record file is driven."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.operations import Value
from segproof_harness.plain import Plain
from segproof_harness.plain.batches import CODECS, field_of, until_refused
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised, Step
from segproof_model.language.states import opened, outcome_of

PLACE = ("position", "size_bytes", "magic", "last_offset", "max_timestamp")


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Open a record file."""
    given: dict[str, Any] = dict(arguments)
    return opened(release.kind(RecordFile), files, given.pop("file"), **given, codecs=CODECS)


def place(batch: Any) -> Any:
    """Return where a batch lies and what a search reads of it."""
    return tuple(field_of(batch, name) for name in PLACE)


def batches(file: Any, start: int | None) -> Any:
    """Return where the batches are, and the error that ends the scan."""
    return until_refused(file.batches(start), place)


def shown(view: Any) -> Any:
    """Return what a slice holds."""
    content = outcome_of(view.read) if view.is_open else None
    if isinstance(content, Raised):
        content = ("error", str(content.kind))
    return view.start, view.size_in_bytes(), content, batches(view, None)


def slice_of(file: Any, position: int, size: int) -> Any:
    """Return what a slice holds."""
    return shown(file.slice(position, size))


def slice_of_slice(file: Any, position: int, size: int, inner: int, inner_size: int) -> Any:
    """Return what a slice of a slice holds."""
    return shown(file.slice(position, size).slice(inner, inner_size))


def cut_by_another(file: Any, size: int) -> None:
    """Cut the file behind the back of who has it open."""
    file.files.write(file.name, file.image[:size])


def seen(file: Any) -> Any:
    """Return the counters of a state."""
    return [getattr(file, name) for name in ("name", "size", "writable", "is_open", "start", "end")]


def as_it_is(answer: Any) -> Any:
    """Return an answer that is shown already."""
    return answer


PLAIN = Plain(
    open_it,
    {
        "batches": batches,
        "slice": slice_of,
        "slice_of_slice": slice_of_slice,
        "read": lambda file: file.read() if file.is_open else None,
        "cut_by_another": cut_by_another,
    },
    shows=dict.fromkeys(("batches", "slice", "slice_of_slice"), as_it_is),
    seen=seen,
    seen_of_old=seen,
)
