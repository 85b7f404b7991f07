# SPDX-License-Identifier: Apache-2.0
"""Examples that model and implementation both run: what a call answers, in one form for both."""

from collections.abc import Callable
from typing import Any

from segproof_harness.structures.outcomes import kind_of, normalise
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of

__all__ = ["answer"]


def answer(call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
    """Return what a call of either side answers, as plain values, or `Raised`."""
    try:
        found = outcome_of(call, *arguments, **named)
    except Exception as error:
        # The implementation's. It fails here if the model has no such kind.
        return Raised(ErrorKind(kind_of(error)))
    return found if isinstance(found, Raised) else normalise(found)
