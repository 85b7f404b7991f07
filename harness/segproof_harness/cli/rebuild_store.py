# SPDX-License-Identifier: Apache-2.0
"""The verb `rebuild` on a store of RocketMQ: its index files, made from the commit log."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof.counts import plural
from segproof_harness.cli.common import Show

if TYPE_CHECKING:
    from segproof.rebuilding.segment_build import Options
    from segproof.rebuilding.store_rebuild import RebuiltIndex
    from segproof.salvaging.store_salvage import SalvagedStore
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


GUESSED_BY = {
    "ambiguous old index": "several pairs fit the old files, this is one",
    "guessed old index": "as those of the old files, which were guessed too",
    "index of another log": "as those of the old files, which are of another log",
    "default": "no old index file tells them: RocketMQ's defaults",
}
"""Where a guess is from, by the `GeometryFrom`."""


def stores_below(path: Path) -> list[str]:
    """Return the stores of RocketMQ at or below a path.

    Partitions of Kafka with one folder of a store beside them are none. Raises: OSError.
    """
    from segproof.files import REAL_FILES
    from segproof.inventory.stores import find_places
    from segproof.reading.store_paths import PlaceKind, is_rather_kafkas

    found = find_places(os.fspath(path), REAL_FILES)
    stores = [place.path for place in found if place.kind is PlaceKind.STORE]
    return [one for one in stores if not is_rather_kafkas(one, REAL_FILES)]


def rebuild_store(
    store: str,
    out: str | None,
    options: "Options",
    given: GivenGeometry,
    release: "Release | None",
    show: Show,
) -> "RebuiltIndex":
    """Rebuild the index of one store. Raises: SegproofError; OSError."""
    from segproof.repair import rebuild_index
    from segproof_model.rocketmq.broker.index_service_releases import TagsAreNotIndexed
    from segproof_model.rocketmq.format.index_file_releases import EachPutIsCounted

    return rebuild_index(
        store,
        out,
        *given,
        in_place=out is None,
        index_tags=None if release is None else not release.has(TagsAreNotIndexed),
        count_puts=None if release is None else release.has(EachPutIsCounted),
        cut_tail=options.cut_tail,
        all_files=options.all_files or given != (None, None),
        dry_run=options.dry_run,
        backup=options.backup,
        on_progress=show,
    )


def store_left_out(rebuilt: "RebuiltIndex", *, dry_run: bool) -> Iterator[str]:
    """Yield what the new index does not have."""
    if guess := guess_words(rebuilt):
        yield guess
    for name in rebuilt.removed:
        yield f"{'to be removed' if dry_run else 'removed'}: {name}"
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


def guess_words(told: "RebuiltIndex | SalvagedStore") -> str | None:
    """Return the slots and entries of a new index in words if they are a guess."""
    from segproof.rebuilding.store_geometry import GeometryFrom

    if told.geometry_from in (None, GeometryFrom.GIVEN, GeometryFrom.OLD_INDEX):
        return None
    return (
        f"guessed: {told.hash_slot_num} slots and {told.index_num} entries in each index file"
        f" ({GUESSED_BY[told.geometry_from or '']}); a broker with another maxHashSlotNum or"
        " maxIndexNum finds no key in them: give --hash-slots and --index-num"
    )


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
