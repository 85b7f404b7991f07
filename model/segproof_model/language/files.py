# SPDX-License-Identifier: Apache-2.0
"""Files as a value: names to bytes, and what the clock says. All parts of a structure hold one."""

from collections.abc import Iterator, Mapping

from segproof_model.language.states import State


class Files(State):
    """Regular files by name; a name may lie in folders.

    >>> files = Files({"a": b"x"})
    >>> files.rename("a", "b")
    True
    >>> files.image("b"), "a" in files
    (b'x', False)
    """

    def __init__(self, images: Mapping[str, bytes] = {}, now_ms: int = 0) -> None:
        self.images: Mapping[str, bytes] = dict(images)
        """The bytes of each file, by name."""
        self.now_ms = now_ms
        """What the clock says, in ms since 1970."""

    def __contains__(self, name: str) -> bool:
        return name in self.images

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self.images))

    def image(self, name: str) -> bytes:
        """Return the bytes of a file; empty for a missing file."""
        return self.images.get(name, b"")

    def write(self, name: str, data: bytes) -> None:
        """Let the file hold exactly these bytes."""
        self.images = {**self.images, name: data}

    def remove(self, name: str) -> bool:
        """Remove the file; return whether there was one."""
        existed = name in self
        self.images = {known: data for known, data in self.images.items() if known != name}
        return existed

    def rename(self, source: str, target: str) -> bool:
        """Move a file over another; return whether there was one to move."""
        if source not in self:
            return False
        data = self.image(source)
        self.remove(source)
        self.write(target, data)
        return True


def path_in(store_path: str, *parts: str) -> str:
    """Return the name of a file of a store.

    >>> path_in("", "checkpoint"), path_in("store", "index", "1")
    ('checkpoint', 'store/index/1')
    """
    return "/".join(part for part in (store_path, *parts) if part)
