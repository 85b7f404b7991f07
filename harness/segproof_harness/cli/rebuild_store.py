# SPDX-License-Identifier: Apache-2.0
"""The verb `rebuild` on a store of RocketMQ: its index files, made from the commit log."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof.counts import plural
from segproof_harness.cli.common import (
    Show,
    complain,
)

if TYPE_CHECKING:
    from segproof.rebuilding.segment_build import Options
    from segproof.rebuilding.store_rebuild import RebuiltIndex
    from segproof.rocketmq.index_table import Geometry
    from segproof_model.language.behaviours import Release

GivenGeometry = tuple[int | None, int | None]
"""Slots and entries of each index file that the caller gives; None: not given."""
IndexNumOption = Annotated[
    int | None,
    typer.Option(
        "--index-num",
        min=2,
        metavar="N",
        help="For a store of RocketMQ: entries of each new index file (maxIndexNum of the broker)."
        " Default: that of the old files, else 20000000.",
    ),
]


def stores_below(path: Path) -> list[str]:
    """Return the stores of RocketMQ at or below a path. Raises: OSError."""
    from segproof.files import REAL_FILES
    from segproof.reading.store_paths import PlaceKind, find_places

    found = find_places(os.fspath(path), REAL_FILES)
    return [place.path for place in found if place.kind is PlaceKind.STORE]


def rebuild_store(
    store: str,
    out: str | None,
    options: "Options",
    given: GivenGeometry,
    release: "Release | None",
    show: Show,
) -> "RebuiltIndex":
    """Rebuild the index of one store. Raises: SegproofError; OSError."""
    from segproof.rebuilding.store_rebuild import rebuild_index
    from segproof_model.rocketmq.broker.index_service_releases import TagsAreNotIndexed
    from segproof_model.rocketmq.format.index_file_releases import EachPutIsCounted

    return rebuild_index(
        store,
        out,
        *_geometry(store, given),
        in_place=out is None,
        index_tags=None if release is None else not release.has(TagsAreNotIndexed),
        count_puts=None if release is None else release.has(EachPutIsCounted),
        cut_tail=options.cut_tail,
        all_files=options.all_files or given != (None, None),
        dry_run=options.dry_run,
        backup=options.backup,
        on_progress=show,
    )


def _geometry(store: str, given: GivenGeometry) -> "Geometry":
    """Return slots and entries: those given, else the old files', else RocketMQ's defaults.

    Raises: InvalidArgumentError where the old files do not tell; OSError.
    """
    from segproof.errors import InvalidArgumentError
    from segproof.files import REAL_FILES
    from segproof.rocketmq.geometry import DEFAULT_GEOMETRY, find_geometries, index_file_names
    from segproof.rocketmq.index_table import Geometry

    hash_slots, index_num = given
    folder = os.path.join(store, "index")
    old = DEFAULT_GEOMETRY
    if (hash_slots is None or index_num is None) and os.path.isdir(folder):
        names = index_file_names(REAL_FILES.list_directory(folder))
        found = find_geometries(folder, names, hash_slot_num=hash_slots)
        told = [
            answer.geometry
            for _, answer in sorted(found.items())
            if answer.geometry is not None and answer.origin != "ambiguous"
        ]
        if told:
            old = told[-1]
        elif names:
            raise InvalidArgumentError(
                "the old index files do not tell how many slots and entries they have: give"
                " --hash-slots and --index-num (maxHashSlotNum and maxIndexNum of the broker)",
                path=folder,
            )
    if old is DEFAULT_GEOMETRY and hash_slots is None and index_num is None:
        complain(
            f"no old index file tells how many slots and entries to make: {old.hash_slot_num} and"
            f" {old.index_num}, RocketMQ's defaults; --hash-slots and --index-num say others"
        )
    slots = old.hash_slot_num if hash_slots is None else hash_slots
    return Geometry(slots, old.index_num if index_num is None else index_num)


def store_left_out(rebuilt: "RebuiltIndex") -> Iterator[str]:
    """Yield what the new index does not have."""
    for name in rebuilt.removed:
        yield f"removed: {name}"
    if rebuilt.doubted_times:
        yield (
            f"store times: {plural(rebuilt.doubted_times, 'message')} with an impossible one; the"
            " index has the likely one"
        )
    if rebuilt.left_bytes:
        with_messages = ""
        if rebuilt.left_messages:
            sound = plural(rebuilt.left_messages, "sound message")
            with_messages = f", with {sound} behind damage, which no key finds now"
        yield f"left out: {rebuilt.left_bytes} bytes of the commit log{with_messages}"


def store_words(rebuilt: "RebuiltIndex") -> str:
    """Return what the index was built from."""
    if any(file.is_kept for file in rebuilt.files):
        return ""
    tags = "with" if rebuilt.index_tags else "without"
    source = rebuilt.tags_from if rebuilt.tags_from != "given" else "given release"
    return (
        f", built from {plural(rebuilt.messages, 'message')} {tags} entries for tags (by the"
        f" {source})"
    )
