# SPDX-License-Identifier: Apache-2.0
"""What is closed at the end of a `with` block, what is undone where one fails, errors of many."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Self


class Closing:
    """Calls `close` at the end of a `with` block, after an error too."""

    __slots__ = ()

    def close(self) -> object:
        """Close it; a second call does nothing."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def told_state(content: str, *, is_open: bool, writable: bool) -> str:
    """Return the words of a `repr` for what an open object holds, and whether it may change it."""
    return f"{content}, {'writable' if writable else 'read-only'}" if is_open else "closed"


@contextmanager
def undone_if_it_fails(*undo: Callable[[], object]) -> Iterator[None]:
    """Call each of these, in order, where the block raises; its error goes on."""
    try:
        yield
    except BaseException:
        for step in undo:
            step()
        raise


def attempt_all(*actions: Callable[[], object]) -> None:
    """Call each, whatever the others do. Raises: the first error, once all were called."""
    first: Exception | None = None
    for action in actions:
        try:
            action()
        except Exception as error:
            first = first or error
    if first is not None:
        raise first
