# SPDX-License-Identifier: Apache-2.0
"""What is closed at the end of a `with` block."""

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
