# SPDX-License-Identifier: Apache-2.0
"""Laws of a certain kind of step: of puts that were taken, of queries that were answered.

Used by: the laws of RocketMQ.
"""

from collections.abc import Callable
from typing import TypeVar

from segproof_model.language.states import Released
from segproof_model.laws.register import Transition, law
from segproof_model.laws.remembering import remembered

View = TypeVar("View")
Judge = Callable[[View], bool]


def laws_of(
    view: Callable[[Transition], View | None], kind: type[Released], source: str, on: str
) -> Callable[[str], Callable[[Judge[View]], Callable[[Transition], bool]]]:
    """Return what enters a law that judges a view of a step; a step that has none keeps the law."""
    seen = remembered(view)

    def enter(law_id: str) -> Callable[[Judge[View]], Callable[[Transition], bool]]:
        def decorate(judge: Judge[View]) -> Callable[[Transition], bool]:
            def predicate(step: Transition) -> bool:
                found = seen(step)
                return found is None or judge(found)

            predicate.__doc__, predicate.__module__ = judge.__doc__, judge.__module__
            predicate.__name__ = judge.__name__
            return law(law_id, kind, source, on=on)(predicate)

        return decorate

    return enter
