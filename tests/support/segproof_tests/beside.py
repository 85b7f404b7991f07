# SPDX-License-Identifier: Apache-2.0
"""Readers in threads beside a writer."""

import threading
from collections.abc import Callable

__all__ = ["run_beside"]


def run_beside(
    write: Callable[[], object], *reads: Callable[[], object], pause_seconds: float = 0.0
) -> list[str]:
    """Write, and meanwhile read again and again, each read in a thread of its own.

    Return the errors of the readers in words: the frames of an error would keep files in memory.
    """
    errors: list[str] = []
    is_over = threading.Event()

    def repeat(read: Callable[[], object]) -> None:
        try:
            while not is_over.wait(pause_seconds):
                read()
        except BaseException as error:
            errors.append(repr(error))

    threads = [threading.Thread(target=repeat, args=(read,)) for read in reads]
    for thread in threads:
        thread.start()
    try:
        write()
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    return errors
