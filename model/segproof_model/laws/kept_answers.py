# SPDX-License-Identifier: Apache-2.0
"""Answers that are kept for a while: the laws use the same facts of one state again and again.

States, files and transitions are values, so a fact about one stays true. They are known by identity
here; a comparison would take longer than a new computation.

Checksums are kept where they are computed, in kafka/format/compression: law after law asks for
those of the same batches.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

Asking = TypeVar("Asking", bound=Callable[..., Any])
KEPT_MAX = 16
"""Answers kept of one function; then all are forgotten."""


def kept(ask: Asking) -> Asking:
    """Keep the last answers of a function that takes values and has no effect.

    The caller must not change the answer.

    >>> @kept
    ... def asked_anew(pair):
    ...     return []
    >>> pair = (1, 2)
    >>> asked_anew(pair) is asked_anew(pair), asked_anew(pair) is asked_anew((2, 1))
    (True, False)
    """
    return kept_by(None)(ask)


def kept_by(
    known_by: Callable[..., tuple[object, ...]] | None,
) -> Callable[[Asking], Asking]:
    """Do the same where an answer follows from less than the arguments, from `known_by` of them."""

    def decorate(ask: Asking) -> Asking:
        # The values are kept beside the answer, so no other object can have their identities.
        answers: dict[int | tuple[int, ...], tuple[tuple[object, ...], Any]] = {}

        @wraps(ask)
        def answer(*given: Any) -> Any:
            values = given if known_by is None else known_by(*given)
            key = tuple(map(id, values)) if len(values) > 1 else id(values[0])
            found = answers.get(key)
            if found is None:
                if len(answers) >= KEPT_MAX:
                    answers.clear()
                found = answers[key] = values, ask(*given)
            return found[1]

        return cast(Asking, answer)

    return decorate
