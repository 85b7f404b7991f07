# SPDX-License-Identifier: Apache-2.0
"""How the plain transaction index is driven."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.operations import Value
from segproof_harness.plain import Plain
from segproof_model.kafka.format.transaction_index import TransactionIndex
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Open a transaction index."""
    given = dict(arguments)
    kind: Any = release.kind(TransactionIndex)
    return opened(kind, files, given["file"], given["start_offset"], given["writable"])


def seen(index: Any) -> Any:
    """Return the counters of a state."""
    names = ("name", "start_offset", "is_open", "position", "last_offset", "is_closed")
    return [getattr(index, name) for name in names]


PLAIN = Plain(open_it, seen=seen, seen_of_old=seen, kind=TransactionIndex)
