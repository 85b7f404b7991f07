# SPDX-License-Identifier: Apache-2.0
"""One call that another one interrupts at a chosen step: every schedule with one switch.

A call runs under the interpreter's own tracer, on the one thread there is. Before a chosen step,
what another thread would do is done. So no schedule is left to chance, and a failure comes again.
A step is an instruction that reads, sets or deletes an attribute or an item: between two of them
nothing that others change is looked at.
"""

import dis
import sys
from collections.abc import Callable, Iterator, Set
from functools import cache
from itertools import count
from types import CodeType, FrameType
from typing import Any

__all__ = ["schedules"]

STEPS = {
    *("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR", "STORE_ATTR", "DELETE_ATTR"),
    *("BINARY_SUBSCR", "BINARY_SLICE", "STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR"),
    *("CONTAINS_OP", "FOR_ITER"),
}
"""The names of these instructions in CPython 3.11 to 3.13; a loop takes items too."""


@cache
def _steps_of(code: CodeType) -> frozenset[int]:
    """Return where the instructions of a function lie that touch an attribute or an item."""
    return frozenset(
        one.offset
        for one in dis.get_instructions(code)
        if one.opname in STEPS or (one.opname, one.argrepr) == ("BINARY_OP", "[]")  # since 3.14
    )


def _run(call: Callable[[], Any], modules: Set[str], step: int, between: Callable[[], Any]) -> bool:
    """Run `call`, and `between` before its step with this number; return whether it has one."""
    seen = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal seen
        if event == "opcode" and frame.f_lasti in _steps_of(frame.f_code):
            seen += 1
            if seen > step:
                sys.settrace(None)
                between()
        return trace

    def enter(frame: FrameType, *_: Any) -> Any:
        if frame.f_globals.get("__name__") not in modules:
            return None
        frame.f_trace = trace  # since 3.13 opcodes count only in a frame that has a tracer
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return trace

    tracer = sys.gettrace()
    # Since 3.12 a tracer is told of instructions only if some frame wanted that when it was set.
    sys._getframe().f_trace_opcodes = True
    sys.settrace(enter)
    try:
        call()
    finally:
        sys.settrace(tracer)
    return seen > step


def schedules(
    prepare: Callable[[], tuple[Callable[[], Any], Callable[[], Any]]], modules: Set[str]
) -> Iterator[int]:
    """Do two calls, which `prepare` makes, the second at each step of the first that there is.

    Steps are those in `modules`, by their full names. Yields behind each schedule its number.
    """
    for step in count():
        first, second = prepare()
        if not _run(first, modules, step, second):
            return
        yield step
