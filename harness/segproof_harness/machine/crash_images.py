# SPDX-License-Identifier: Apache-2.0
"""What a crash may leave of files: made from their journal, for any earlier cut.

An image is a choice of what `fault_model` allows: which changes of names are durable, then for each
file that has a name which version of each sector, and which size. If there are more choices than
the bound, these are made: the newest of all, the oldest of all, each single choice apart from
both, and then drawn ones.
"""

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from segproof_harness.machine.contents import EMPTY, PAGE_BYTES, Content
from segproof_harness.machine.fault_model import SECTOR_BYTES, Mode
from segproof_harness.machine.journal import Journal, Version

__all__ = ["Image", "crash_images", "durable_image", "has_names_in_order"]

FEWEST_NAMES = 4
"""States of names that are looked at, whatever the bound is."""
FEWEST_CONTENTS = 2
"""Images for each state of names, whatever the bound is: the newest and the oldest."""
Item = TypeVar("Item")


class Image(NamedTuple):
    """What a crash leaves."""

    files: dict[str, Content]
    folders: frozenset[str]

    def __hash__(self) -> int:
        return hash((frozenset(self.files.items()), self.folders))

    def data(self) -> dict[str, bytes]:
        """Return the bytes of each file by its path."""
        return {path: content.data() for path, content in self.files.items()}


class _Names(NamedTuple):
    """One state of names that a crash may leave."""

    files: dict[str, int]
    folders: frozenset[str]
    journal: int | None
    """The effect up to which the metadata is durable; None if it has no order."""


class _Versions(NamedTuple):
    """What a file, and what parts of it, may hold."""

    whole: list[Content]
    """The newest first; one of them gives the size."""
    parts: list[Content]
    """What sectors may be besides."""


def crash_images(
    journal: Journal,
    cut: int,
    mode: Mode,
    *,
    bound: int = 64,
    sector_bytes: int = SECTOR_BYTES,
    seed: int = 0,
) -> Iterator[Image]:
    """Yield each different image that a crash behind the first `cut` effects may leave.

    They are about `bound` at most, and all that there are if they are fewer. `sector_bytes` divides
    the size of a page. Images of one call share their contents.
    """
    seen: set[Image] = set()
    for image in _all_images(journal, cut, mode, bound, sector_bytes, seed):
        if image not in seen:
            seen.add(image)
            yield image


def durable_image(journal: Journal, cut: int | None = None) -> Image:
    """Return what is left at least: the names and the bytes that syncs made durable.

    A name whose removal is not durable is there, as POSIX allows.
    """
    cut = len(journal) if cut is None else cut
    names, folders = journal.names_after(journal.durable_changes(cut))
    files = {}
    for path, inode in names.items():
        found = _versions(journal, inode, cut, None)
        files[path] = (found.parts or found.whole)[-1].resized(found.whole[-1].size_bytes)
    return Image(files, folders)


def has_names_in_order(image: Image, journal: Journal, cut: int) -> bool:
    """Return whether an image has the names that there were at one moment.

    It lies between the last sync of a folder and the cut. Only a crash that keeps no order leaves
    other names.
    """
    synced = max(
        (at for one in journal.folder_syncs.values() for at in one if at <= cut), default=0
    )
    moments = {synced, *(one.at for one in journal.changes if synced < one.at <= cut)}
    known = (journal.names_after(one for one in journal.changes if one.at <= at) for at in moments)
    return any(
        names.keys() == image.files.keys() and folders == image.folders for names, folders in known
    )


def _all_images(
    journal: Journal, cut: int, mode: Mode, bound: int, sector_bytes: int, seed: int
) -> Iterator[Image]:
    if not mode.loses_power:
        names, folders = journal.names_after(one for one in journal.changes if one.at <= cut)
        files = {path: journal.content_at(inode, cut) for path, inode in names.items()}
        yield Image(files, folders)
        return
    draw = random.Random(f"{seed}:{cut}:{mode.name}")
    names_of = _ordered_names if mode.keeps_order else _loose_names
    states = [*names_of(journal, cut, max(FEWEST_NAMES, bound // 4), draw)]
    share = max(FEWEST_CONTENTS, bound // len(states))
    for state in states:
        numbers = sorted(set(state.files.values()))
        choices = [
            _contents(_versions(journal, number, cut, state.journal), share, sector_bytes, draw)
            for number in numbers
        ]
        for chosen in _combined(choices, share, draw):
            content = dict(zip(numbers, chosen, strict=True))
            files = {path: content[number] for path, number in state.files.items()}
            yield Image(files, state.folders)


# --- names


def _ordered_names(journal: Journal, cut: int, bound: int, draw: random.Random) -> Iterator[_Names]:
    """Yield the names after each number of changes of metadata that may be durable, all first."""
    committed = journal.last_commit(cut)
    steps = {committed, *(one.at for one in journal.changes)} | {
        one.at for known in journal.versions.values() for one in known if one.is_cut
    }
    found = sorted((at for at in steps if committed <= at <= cut), reverse=True)
    if len(found) > bound:
        found = [found[0], *sorted(draw.sample(found[1:-1], bound - 2), reverse=True), found[-1]]
    for at in found:
        yield _Names(*journal.names_after(one for one in journal.changes if one.at <= at), at)


def _loose_names(journal: Journal, cut: int, bound: int, draw: random.Random) -> Iterator[_Names]:
    """Yield the names after some of the changes that are not durable, in any choice."""
    kept = journal.durable_changes(cut)
    loose = [one for one in journal.changes if one.at <= cut and one not in kept]
    for chosen in _combined([[True, False]] * len(loose), bound, draw):
        there = [one for one, is_there in zip(loose, chosen, strict=True) if is_there]
        yield _Names(*journal.names_after(sorted([*kept, *there])), None)


# --- bytes


def _versions(journal: Journal, inode: int, cut: int, committed: int | None) -> _Versions:
    """Return what the parts of a file may be, where metadata is durable up to `committed`."""
    known = [one for one in journal.versions.get(inode, ()) if one.at <= cut]
    if not known:
        return _Versions([EMPTY], [])
    synced = max((at for at in journal.syncs.get(inode, ()) if at <= cut), default=0)
    since = max(place for place, one in enumerate(known) if one.at <= synced or place == 0)
    lost = _lost_by_failed_syncs(journal, inode, known[: since + 1], synced)
    known = known[since:]
    whole, parts = (known, []) if committed is None else _in_order(known, committed)
    return _Versions([one.content for one in reversed(whole)], [*parts, *lost])


def _in_order(known: Sequence[Version], committed: int) -> tuple[Sequence[Version], list[Content]]:
    """Return the versions since the last durable cut, and what else parts may be.

    Below a durable cut lie bytes as old as the last sync. If a cut is not durable, bytes that were
    written after it may be there in the pages up to its end; the pages behind them stay as they
    were before it.
    """
    cuts = [place for place, one in enumerate(known) if one.is_cut and place]
    start = max((place for place in cuts if known[place].at <= committed), default=0)
    end = min((place for place in cuts if known[place].at > committed), default=len(known))
    parts, kept = [], math.inf
    for place in range(start, 0, -1):
        if known[place].is_cut:
            kept = min(kept, known[place].content.size_bytes)
        older = known[place - 1].content
        parts.append(older.resized(min(older.size_bytes, int(kept))) if kept < math.inf else older)
    old, border, written = known[end - 1].content, math.inf, []
    for later in known[end:]:
        if later.is_cut:
            border = min(border, -(-later.content.size_bytes // PAGE_BYTES))
        pages = {page: data for page, data in old.pages.items() if page >= border}
        pages |= {page: data for page, data in later.content.pages.items() if page < border}
        written.append(Content(old.size_bytes, pages))
    return known[start:end], [*reversed(written), *parts]


def _lost_by_failed_syncs(
    journal: Journal, inode: int, known: Sequence[Version], synced: int
) -> list[Content]:
    """Return contents whose pages came back: a failed sync lost them, and nothing wrote them again.

    `known` are the versions up to the sync `synced`, after which nothing else could be lost.
    """
    last, found = known[-1].content, []
    for failed in journal.failed_syncs.get(inode, ()):
        if failed > synced:
            continue  # nothing was synced since: all versions are possible still
        before = max((at for at in journal.syncs.get(inode, ()) if at < failed), default=0)
        at_failure = [one for one in known if one.at <= failed]
        old = [one.content for one in at_failure if one.at > before] or [last]
        base = [one.content for one in at_failure if one.at <= before]
        later = [one.content for one in known if one.at > failed]
        for content in [*base[-1:], *old]:
            pages = {
                page
                for page in old[-1].changed_pages(content)
                if all(one.pages.get(page) == old[-1].pages.get(page) for one in later)
            }
            if pages:
                changed = {**last.pages, **{p: content.pages.get(p, b"") for p in pages}}
                kept = {page: data for page, data in changed.items() if data}
                found.append(Content(last.size_bytes, kept))
    return found


def _contents(
    versions: _Versions, bound: int, sector_bytes: int, draw: random.Random
) -> list[Content]:
    """Return what a file may hold after a crash.

    Its newest whole version comes first, mixtures of versions follow, and its oldest comes last.
    """
    whole = list(dict.fromkeys(versions.whole))
    if len(whole) == 1 and not versions.parts:
        return whole
    newest, *others = dict.fromkeys([*whole, *versions.parts])
    sizes = list(dict.fromkeys(one.size_bytes for one in whole))
    sectors: dict[int, list[bytes]] = {}
    for page in sorted({page for one in others for page in newest.changed_pages(one)}):
        for start in range(page * PAGE_BYTES, (page + 1) * PAGE_BYTES, sector_bytes):
            found = [one.part(start, start + sector_bytes) for one in (newest, *others)]
            if start < max(sizes) and len(choices := list(dict.fromkeys(found))) > 1:
                sectors[start] = choices
    axes: list[Sequence[Any]] = [*sectors.values(), sizes]
    base = Content(max(sizes), newest.resized(max(sizes)).pages)
    mixed = [
        base.with_parts(dict(zip(sectors, chosen, strict=True))).resized(size)
        for *chosen, size in _combined(axes, bound, draw)
    ]
    oldest = versions.whole[-1]
    return [*(one for one in dict.fromkeys([*whole, *mixed]) if one != oldest), oldest]


# --- choices


def _combined(
    axes: Sequence[Sequence[Item]], bound: int, draw: random.Random
) -> Iterator[tuple[Item, ...]]:
    """Yield choices of one item of each axis, the newest first: all up to `bound`, or else some."""
    if math.prod(map(len, axes)) <= bound:
        yield from itertools.product(*axes)
        return
    ends = [tuple(axis[0] for axis in axes), tuple(axis[-1] for axis in axes)]
    yield from ends
    singles = [
        (*end[:place], item, *end[place + 1 :])
        for end in ends
        for place, axis in enumerate(axes)
        for item in axis
        if item is not end[place]
    ]
    draw.shuffle(singles)
    yield from singles[: bound - len(ends)]
    for _ in range(bound - len(ends) - len(singles)):
        yield tuple(draw.choice(axis) for axis in axes)
