# SPDX-License-Identifier: Apache-2.0
"""Steps of the model as its laws judge them."""

from typing import Any

from segproof_model.language.states import apply
from segproof_model.laws.register import Transition, broken_step_laws


def done(before: Any, operation: str, **arguments: Any) -> Transition:
    """Return what an operation of the model, or a question, makes of a state."""
    step = apply(before, operation, **arguments)
    return Transition(type(before), before, operation, arguments, step.after, step.outcome)


def lawful(before: Any, operation: str, **arguments: Any) -> Transition:
    """Return the same; it breaks no law."""
    transition = done(before, operation, **arguments)
    assert [] == broken_step_laws(transition), transition
    return transition
