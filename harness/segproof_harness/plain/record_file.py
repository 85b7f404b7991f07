# SPDX-License-Identifier: Apache-2.0
"""How the plain record file is driven."""

from collections.abc import Iterator, Mapping
from typing import Any

from segproof_harness.operations import Value
from segproof_harness.plain import Plain
from segproof_harness.plain.batches import CODECS, field_of, until_refused
from segproof_model.kafka.format.record_file import FileSlice, RecordFile
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised, Step
from segproof_model.language.states import opened, outcome_of
from segproof_model.laws.kafka.format.record_file import scan_of
from segproof_model.laws.register import Transition, broken_state_laws, broken_step_laws

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


def slice_of_slice(file: Any, position: int, size: int, inner: int, inner_size: int) -> Any:
    """Return a slice of a slice."""
    return file.slice(position, size).slice(inner, inner_size)


def cut_by_another(file: Any, size: int) -> None:
    """Cut the file behind the back of who has it open."""
    file.files.write(file.name, file.image[:size])


def also_broken(step: Transition) -> Iterator[str]:
    """Yield the laws that what is read of the file breaks: batches and slices."""
    views: list[Any] = [step.outcome] if isinstance(step.outcome, FileSlice) else []
    if step.operation == "slice_of_slice":
        given = list(step.arguments.values())
        outer = outcome_of(step.before.slice, *given[:2])
        if isinstance(outer, FileSlice):
            views.append(outer)
            inner = dict(zip(("position", "size"), given[2:], strict=True))
            yield from broken_step_laws(
                Transition(type(outer), outer, "slice", inner, outer, step.outcome)
            )
    for view in views:
        yield from broken_state_laws(view)
    if step.operation == "batches":
        for batch in scan_of(step.before).batches:
            yield from broken_state_laws(batch)


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
        "slice_of_slice": slice_of_slice,
        "read": lambda file: file.read() if file.is_open else None,
        "cut_by_another": cut_by_another,
    },
    shows={"batches": as_it_is, "slice": shown, "slice_of_slice": shown},
    seen=seen,
    seen_of_old=seen,
    kind=RecordFile,
    also_broken=also_broken,
)
