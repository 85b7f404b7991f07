# SPDX-License-Identifier: Apache-2.0
"""How the plain offset and time index are driven."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.operations import Value
from segproof_harness.plain import Plain
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened

COUNTERS = (
    "base_offset max_index_size_bytes writable name length max_entries entries position is_mapped"
)


def lookup_many(index: Any, **targets: tuple[int, ...]) -> Any:
    """Return the columns of what `lookup` answers to each of the targets."""
    (row,) = targets.values()
    answers = [index.lookup(target) for target in (0, *row)][1:]
    return tuple(answer[0] for answer in answers), tuple(answer[1] for answer in answers)


def list_entries(index: Any) -> Any:
    """Return every entry; the error of a lookup where no lookup is possible."""
    index.check_mapped()
    return [index.stored(number) for number in range(len(index.stored_numbers()))]


def described(kind: Any, last: str) -> Plain:
    """Return how an index of this class is driven."""

    def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
        given = dict(arguments)
        return opened(
            release.kind(kind),
            files,
            given["file"],
            given["base_offset"],
            given["max_index_size_bytes"],
            given["writable"],
        )

    def seen(index: Any) -> Any:
        return [getattr(index, name) for name in (*COUNTERS.split(), last)]

    calls = {"lookup_many": lookup_many, "list_entries": list_entries}
    return Plain(open_it, calls, seen=seen, seen_of_old=seen, kind=kind)
