# SPDX-License-Identifier: Apache-2.0
"""Real files and open files with other methods: a test lets something happen meanwhile."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from segproof.files import REAL_FILES
from segproof.findings import Finding
from segproof.verification import verify

__all__ = ["altered", "defects_on", "disturbed", "listed"]


class _Altered:
    __hash__ = None  # type: ignore[assignment]  # as a data class: no cache may keep such files

    def __init__(self, real: object, methods: dict[str, Callable[..., Any]]) -> None:
        self._real = real
        self.__dict__.update(methods)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)


def altered(real: object = REAL_FILES, **methods: Callable[..., Any]) -> Any:
    """Return `real`, a file or all files, with other methods of these names."""
    return _Altered(real, methods)


def disturbed(when: str, happens: Callable[[], object]) -> Any:
    """Return real files; right before one that ends so is opened first, something happens.

    `opened` lists the paths of the files that end so, each time that one is opened.
    """
    opened: list[str] = []

    def open_file(path: str, **options: Any) -> Any:
        if path.endswith(when):
            opened.append(path)
            if len(opened) == 1:
                happens()
        return REAL_FILES.open(path, **options)

    files = altered(open=open_file)
    files.opened = opened
    return files


def listed(
    behind: Callable[[int], object] | None = None, before: Callable[[int], object] | None = None
) -> Any:
    """Return real files; something happens right before or behind each listing, told its number."""
    count = 0

    def list_directory(path: str) -> list[str]:
        nonlocal count
        count += 1
        if before is not None:
            before(count)
        names = REAL_FILES.list_directory(path)
        if behind is not None:
            behind(count)
        return names

    return altered(list_directory=list_directory)


def defects_on(files: Any, path: Path, *, deep: bool = False) -> list[Finding]:
    """Return the defects that `verify` finds on such files."""
    return [one for one in verify(path, files=files, deep=deep) if one.is_defect]
