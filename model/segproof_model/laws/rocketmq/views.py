# SPDX-License-Identifier: Apache-2.0
"""How a law speaks of a certain kind of step only: of puts that were taken, of queries answered.

Used by: the laws of RocketMQ.
"""

from collections.abc import Callable
from typing import TypeVar

from segproof_model.laws.register import Transition
from segproof_model.laws.remembering import remembered

View = TypeVar("View")


def seen_as(
    view: Callable[[Transition], View | None],
) -> Callable[[Callable[[View], bool]], Callable[[Transition], bool]]:
    """Let a law judge a view of a step; a step of which there is none keeps the law."""
    seen = remembered(view)

    def decorate(judge: Callable[[View], bool]) -> Callable[[Transition], bool]:
        def predicate(step: Transition) -> bool:
            found = seen(step)
            return found is None or judge(found)

        predicate.__name__, predicate.__doc__ = judge.__name__, judge.__doc__
        predicate.__module__ = judge.__module__
        return predicate

    return decorate
