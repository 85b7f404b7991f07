# SPDX-License-Identifier: Apache-2.0
"""How the plain index file is driven."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.operations import Value
from segproof_harness.plain import Plain
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Step
from segproof_model.language.states import opened, refuse, undone_if_refused
from segproof_model.rocketmq.format.index_file import IndexFile
from segproof_model.rocketmq.format.index_file_deviations import ClosedFileIsClosed

RESOURCE = "ref_count is_available cleanup_over first_shutdown_timestamp_ms"
GEOMETRY = "file_name hash_slot_num index_num is_mapped"


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Open an index file at a time."""

    def made(draft: Files) -> IndexFile:
        given: Any = arguments
        draft.now_ms = given["now_ms"]
        names = ("end_phy_offset", "end_timestamp")
        placed = given["file_name"], *given["geometry"], *(given[name] for name in names)
        return release.kind(IndexFile)(draft, *placed)

    return opened(made, files)


def check_used(file: IndexFile) -> None:
    """Refuse to use a closed file for nothing, if its release refuses any use."""
    if file.release is not None and file.release.has(ClosedFileIsClosed):
        file.check_mapped()


def put_keys(file: IndexFile, rows: tuple[tuple[Any, ...], ...]) -> int:
    """Put one after the other, up to the first that has no room; return how many were put."""
    check_used(file)
    done = 0
    for row in zip(*rows, strict=True):
        if not file.put_key(*row):
            break
        done += 1
    return done


def select_phy_offset_many(
    file: IndexFile, keys: tuple[str, ...], max_num: int, begin: int, end: int
) -> Any:
    """Return (where each answer starts, all offsets); no release has this, so nothing is held."""
    check_used(file)
    starts: list[int] = [0]
    offsets: list[int] = []
    with undone_if_refused(file):
        for key in keys:
            offsets += file.select_phy_offset((), key, max_num, begin, end)
            starts.append(len(offsets))
    return tuple(starts), tuple(offsets)


def list_entries(file: IndexFile) -> Any:
    """Return each entry with its slot."""
    if not (file.is_available and file.is_mapped):
        refuse(ErrorKind.UNMAPPED)
    return file.entries_list()


def seen(file: Any) -> Any:
    """Return what a state holds beside the file."""
    held = [getattr(file.resource, name) for name in RESOURCE.split()]
    return [*held, *(getattr(file, name) for name in GEOMETRY.split()), tuple(file.header)]


def seen_of_old(file: Any) -> Any:
    """Return the same of the older model."""
    held = [getattr(file.resource, name) for name in RESOURCE.split()]
    header = tuple(getattr(file.header, name) for name in file.header.POSITIONS)
    return [*held, *(getattr(file, name) for name in GEOMETRY.split()), header]


PLAIN = Plain(
    open_it,
    {
        "put_keys": put_keys,
        "select_phy_offset_many": select_phy_offset_many,
        "list_entries": list_entries,
    },
    seen=lambda file: (seen(file), file.files.now_ms),
    seen_of_old=lambda file: (seen_of_old(file), file.now_ms),
    kind=IndexFile,
)
