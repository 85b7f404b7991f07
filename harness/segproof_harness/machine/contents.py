# SPDX-License-Identifier: Apache-2.0
"""The bytes of a file as pages; two versions share the pages that are the same in both.

Pages of zeros cost nothing, so a preallocated file costs what was written into it.
"""

import mmap
from collections.abc import Iterator, Mapping
from typing import NamedTuple

__all__ = ["EMPTY", "PAGE_BYTES", "Content"]

PAGE_BYTES = 4096
PIECE_BYTES = 16 * PAGE_BYTES
"""Bytes that are compared at once with what a file held before."""
ZEROS = bytes(PIECE_BYTES)


class Content(NamedTuple):
    """The bytes of a file at one moment; nobody changes them."""

    size_bytes: int
    pages: Mapping[int, bytes]
    """The pages that are not all zero, by index, each without its zeros at the end."""

    def __hash__(self) -> int:
        return hash((self.size_bytes, frozenset(self.pages.items())))

    def data(self) -> bytes:
        """Return all bytes."""
        return self.part(0, self.size_bytes)

    def part(self, start: int, end: int) -> bytes:
        """Return the bytes of [start, end); beyond the end of the file they are zero."""
        first = start // PAGE_BYTES
        if end <= (first + 1) * PAGE_BYTES:  # mostly one page has all of them
            begin = start - first * PAGE_BYTES
            found = self.pages.get(first, b"")[begin : begin + end - start]
            return found.ljust(end - start, b"\0")
        pages = range(first, -(-end // PAGE_BYTES))
        data = b"".join(self.pages.get(page, b"").ljust(PAGE_BYTES, b"\0") for page in pages)
        return data[start - first * PAGE_BYTES :][: end - start]

    def resized(self, size_bytes: int) -> "Content":
        """Return these bytes, cut or grown with zeros."""
        if size_bytes >= self.size_bytes:
            return Content(size_bytes, self.pages)
        last, kept = divmod(size_bytes, PAGE_BYTES)
        pages = {page: data for page, data in self.pages.items() if page <= last}
        _put(pages, last, pages.get(last, b"")[:kept])
        return Content(size_bytes, pages)

    def with_parts(self, parts: Mapping[int, bytes]) -> "Content":
        """Return these bytes with others from some positions on; no part crosses a page."""
        pages = dict(self.pages)
        for position, data in parts.items():
            page, begin = divmod(position, PAGE_BYTES)
            old = pages.get(page, b"")
            _put(pages, page, old[:begin].ljust(begin, b"\0") + data + old[begin + len(data) :])
        return Content(self.size_bytes, pages)

    def updated(self, storage: "mmap.mmap | bytes", size_bytes: int) -> "Content":
        """Return what `storage` holds now, as `self` where nothing changed."""
        resized = self.resized(size_bytes)
        pages, is_changed = dict(resized.pages), size_bytes != self.size_bytes
        for start in range(0, size_bytes, PIECE_BYTES):
            end = min(start + PIECE_BYTES, size_bytes)
            piece = storage[start:end]
            if piece == (resized.part(start, end) if resized.pages else ZEROS[: end - start]):
                continue
            is_changed = True
            for begin in range(start, end, PAGE_BYTES):
                _put(pages, begin // PAGE_BYTES, piece[begin - start :][:PAGE_BYTES])
        return Content(size_bytes, pages) if is_changed else self

    def changed_pages(self, other: "Content") -> Iterator[int]:
        """Yield the index of each page that differs from the same page of another content."""
        for page in sorted({*self.pages, *other.pages}):
            if self.pages.get(page) != other.pages.get(page):
                yield page


def _put(pages: dict[int, bytes], page: int, data: bytes) -> None:
    stripped = data.rstrip(b"\0")
    if stripped:
        pages[page] = stripped
    else:
        pages.pop(page, None)


EMPTY = Content(0, {})
