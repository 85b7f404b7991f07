# SPDX-License-Identifier: Apache-2.0
"""What was done to simulated files, in its order: bytes, names, and what was made durable.

An *effect* is one change or one sync. A *cut* is a number of effects: a crash behind the first
`cut` effects. So one run of a history serves each crash in it.
"""

import posixpath
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from segproof_harness.machine.contents import EMPTY, Content

__all__ = ["Effect", "Journal", "NameChange", "Version", "folders_above"]

ChangeKind = Literal["create", "rename", "remove", "make_directory", "remove_directory"]


class Effect(NamedTuple):
    """One thing that changed files, or made them durable."""

    call: str
    """The name of the method, or `store` for bytes that were stored through a mapping."""
    path: str
    detail: str = ""

    def __str__(self) -> str:
        return " ".join(part for part in (self.call, self.path, self.detail) if part)


class Version(NamedTuple):
    """The bytes of a file after an effect."""

    at: int
    """The number of effects that led to it."""
    content: Content
    is_cut: bool = False


class NameChange(NamedTuple):
    """A change of names."""

    at: int
    kind: ChangeKind
    path: str
    target: str | None = None
    """The new name of what is renamed."""
    inode: int | None = None
    """None for a folder, and for a removal."""


class Journal:
    """The effects on files from the moment on at which all that there was is durable."""

    def __init__(self, names: Mapping[str, int], folders: Iterable[str]) -> None:
        self.effects: list[Effect] = []
        self.versions: dict[int, list[Version]] = {}
        """The versions of each file, by its number, the oldest first."""
        self.changes: list[NameChange] = []
        self.syncs: dict[int, list[int]] = {}
        """For each file, by its number, the effects that made its bytes durable."""
        self.failed_syncs: dict[int, list[int]] = {}
        self.folder_syncs: dict[str, list[int]] = {}
        self.names, self.folders = dict(names), set(folders)
        """What there is now."""
        self._names, self._folders = dict(names), frozenset(self.folders)
        """What was durable at the beginning."""

    def __len__(self) -> int:
        return len(self.effects)

    def begin_with(self, inode: int, content: Content) -> None:
        """Note what a file holds at the beginning."""
        self.versions[inode] = [Version(0, content)]

    def content(self, inode: int) -> Content:
        """Return what a file holds now."""
        known = self.versions.get(inode)
        return known[-1].content if known else EMPTY

    def synced_content(self, inode: int) -> Content:
        """Return what a file held at its last sync."""
        return self.content_at(inode, max(self.syncs.get(inode, [0])))

    def content_at(self, inode: int, cut: int) -> Content:
        """Return what a file held after the first `cut` effects."""
        known = self.versions.get(inode, [])
        return next((one.content for one in reversed(known) if one.at <= cut), EMPTY)

    # --- what is noted

    def changed(self, inode: int, effect: Effect, content: Content, *, is_cut: bool) -> None:
        """Note the new bytes of a file."""
        self.effects.append(effect)
        known = self.versions.setdefault(inode, [Version(0, EMPTY)])
        known.append(Version(len(self.effects), content, is_cut))

    def synced(self, inode: int, effect: Effect) -> None:
        """Note that a file's bytes are durable."""
        self.effects.append(effect)
        self.syncs.setdefault(inode, []).append(len(self.effects))

    def sync_failed(self, inode: int, effect: Effect) -> None:
        """Note that a file's bytes count as written, and are not durable."""
        self.effects.append(effect)
        self.failed_syncs.setdefault(inode, []).append(len(self.effects))

    def folder_synced(self, path: str, effect: Effect) -> None:
        """Note that the names in a folder are durable."""
        self.effects.append(effect)
        self.folder_syncs.setdefault(path, []).append(len(self.effects))

    def named(
        self, kind: ChangeKind, path: str, target: str | None = None, inode: int | None = None
    ) -> None:
        """Note a change of names."""
        self.effects.append(Effect(kind, path, "" if target is None else f"to {target}"))
        change = NameChange(len(self.effects), kind, path, target, inode)
        self.changes.append(change)
        _apply(change, self.names, self.folders)

    # --- what is asked

    def last_commit(self, cut: int) -> int:
        """Return the last effect up to `cut` that made all older changes of names durable."""
        syncs = (*self.syncs.values(), *self.folder_syncs.values())
        return max((at for one in syncs for at in one if at <= cut), default=0)

    def durable_changes(self, cut: int) -> list[NameChange]:
        """Return the changes of names whose folder was synced since, up to `cut`.

        The folder of a renamed file is the one that has its new name.
        """
        return [one for one in self.changes if one.at <= cut and self._is_durable(one, cut)]

    def _is_durable(self, change: NameChange, cut: int) -> bool:
        folder = posixpath.dirname(change.target or change.path)
        return any(change.at < at <= cut for at in self.folder_syncs.get(folder, ()))

    def names_after(self, changes: Iterable[NameChange]) -> tuple[dict[str, int], frozenset[str]]:
        """Return the names of files, with their numbers, and the folders after some changes.

        What lies in a folder that is not there is not there either.
        """
        names, folders = dict(self._names), set(self._folders)
        for change in changes:
            _apply(change, names, folders)
        there = frozenset(one for one in folders if folders.issuperset(folders_above(one)))
        return {p: number for p, number in names.items() if posixpath.dirname(p) in there}, there


def _apply(change: NameChange, names: dict[str, int], folders: set[str]) -> None:
    match change:
        case NameChange(kind="create", path=path, inode=int(inode)):
            names[path] = inode
        case NameChange(kind="rename", path=path, target=str(target), inode=int(inode)):
            if names.get(path) == inode:
                del names[path]
            names[target] = inode
        case NameChange(kind="remove", path=path):
            names.pop(path, None)
        case NameChange(kind="make_directory", path=path):
            folders.add(path)
        case NameChange(path=path):
            folders.discard(path)


def folders_above(path: str) -> Iterator[str]:
    """Yield the folders above a path, the nearest first."""
    while path != "/":
        path = posixpath.dirname(path)
        yield path
