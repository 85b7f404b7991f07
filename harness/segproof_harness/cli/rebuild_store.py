# SPDX-License-Identifier: Apache-2.0
"""The verb `rebuild` on a store of RocketMQ: its index files, made from the commit log."""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    Show,
    check_profile_of,
    complain,
    plural,
    progress,
    refuse,
    summarise,
    write_findings,
    write_line,
    write_row,
)

if TYPE_CHECKING:
    from segproof.rebuilding.store_rebuild import RebuiltIndex
    from segproof.rocketmq.index_table import Geometry
    from segproof_model.language.behaviours import Release

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


FIELDS = ("path", "entries", "old_entries", "changed")
"""What is told of each file."""


@dataclass(frozen=True, slots=True)
class StoreRebuild:
    """What is asked for."""

    store: Path
    out: Path | None
    hash_slots: int | None
    index_num: int | None
    cut_tail: bool
    release: "Release | None"
    dry_run: bool


def is_store(path: Path) -> bool:
    """Return whether a directory is a store of RocketMQ. Raises: OSError."""
    from segproof.files import REAL_FILES
    from segproof.reading.store_paths import PlaceKind, place_of

    place = place_of(os.fspath(path), REAL_FILES)
    return place is not None and place.kind is PlaceKind.STORE


def rebuild_store(asked: StoreRebuild, output_format: Format) -> None:
    """Rebuild, and write what was done; exit code 1 for findings."""
    check_profile_of(asked.release, "rocketmq")
    from segproof.rebuilding.store_rebuild import rebuild_index
    from segproof_model.rocketmq.broker.index_service_releases import TagsAreNotIndexed
    from segproof_model.rocketmq.format.index_file_releases import EachPutIsCounted

    release = asked.release

    def rebuilt(show: Show) -> "RebuiltIndex":
        return rebuild_index(
            asked.store,
            asked.out,
            *_geometry(asked),
            in_place=asked.out is None,
            index_tags=None if release is None else not release.has(TagsAreNotIndexed),
            count_puts=None if release is None else release.has(EachPutIsCounted),
            cut_tail=asked.cut_tail,
            dry_run=asked.dry_run,
            on_progress=show,
        )

    write_rebuilt(rebuilt, FIELDS, _left_out, _summary, output_format, is_dry=asked.dry_run)


def write_rebuilt(
    rebuild: Callable[[Show], Any],
    fields: Sequence[str],
    left_out: Callable[[Any], Iterable[str]],
    summary: Callable[[Any], str],
    output_format: Format,
    *,
    is_dry: bool,
) -> None:
    """Rebuild, and write what was done; exit code 1 for findings. Refuses what `rebuild` refuses.

    `fields` are those of a row; `left_out` and `summary` return lines for stderr.
    """
    from segproof.errors import SegproofError

    started = time.monotonic()
    try:
        with progress("rebuild") as show:
            rebuilt = rebuild(show)
    except SegproofError as error:
        refuse(str(error))
    for file in rebuilt.files:
        _write_file(file, fields, output_format, is_dry=is_dry)
    write_findings(rebuilt.findings, output_format)
    for line in left_out(rebuilt):
        complain(line)
    if rebuilt.findings:
        summarise(f"nothing was written: {plural(len(rebuilt.findings), 'error')}")
        raise typer.Exit(EXIT_FINDINGS)
    changed = sum(file.changed for file in rebuilt.files)
    verb = "would change" if is_dry else "changed"
    nothing = "; nothing was written" if is_dry else ""
    summarise(
        f"{changed} of {len(rebuilt.files)} index files {verb}{summary(rebuilt)}, in"
        f" {time.monotonic() - started:.1f} s{nothing}"
    )


def _write_file(file: Any, fields: Sequence[str], output_format: Format, *, is_dry: bool) -> None:
    """Write what was done to one file; as text only if it was made new."""
    if output_format is Format.JSONL:
        write_row({name: getattr(file, name) for name in fields}, output_format)
        return
    if getattr(file, "is_kept", False):
        return
    verb = "unchanged"
    if file.changed:
        verb = "would change" if is_dry else "changed"
    before = "none" if file.old_entries is None else file.old_entries
    law = getattr(file, "law", None)
    why = f"; {law}: {file.why}" if law else ""
    write_line(f"{verb}: {file.path}: {file.entries} entries, before: {before}{why}")


def _geometry(asked: StoreRebuild) -> "Geometry":
    """Return slots and entries: those given, else the old files', else RocketMQ's defaults.

    Raises: OSError if the index folder can't be listed.
    """
    from segproof.files import REAL_FILES
    from segproof.rocketmq.geometry import DEFAULT_GEOMETRY, find_geometries, index_file_names
    from segproof.rocketmq.index_table import Geometry

    folder = os.path.join(os.fspath(asked.store), "index")
    old = DEFAULT_GEOMETRY
    if (asked.hash_slots is None or asked.index_num is None) and os.path.isdir(folder):
        names = index_file_names(REAL_FILES.list_directory(folder))
        found = find_geometries(folder, names, hash_slot_num=asked.hash_slots)
        told = [
            answer.geometry
            for _, answer in sorted(found.items())
            if answer.geometry is not None and answer.origin != "ambiguous"
        ]
        if told:
            old = told[-1]
        elif names:
            refuse(
                f"{folder}: the old index files do not tell how many slots and entries they have:"
                " give --hash-slots and --index-num (maxHashSlotNum and maxIndexNum of the broker)"
            )
    if old is DEFAULT_GEOMETRY and asked.hash_slots is None and asked.index_num is None:
        complain(
            f"no old index file tells how many slots and entries to make: {old.hash_slot_num} and"
            f" {old.index_num}, RocketMQ's defaults; --hash-slots and --index-num say others"
        )
    slots = old.hash_slot_num if asked.hash_slots is None else asked.hash_slots
    return Geometry(slots, old.index_num if asked.index_num is None else asked.index_num)


def _left_out(rebuilt: "RebuiltIndex") -> Iterator[str]:
    for name in rebuilt.removed:
        yield f"removed: {name}"
    if rebuilt.left_bytes:
        with_messages = ""
        if rebuilt.left_messages:
            sound = plural(rebuilt.left_messages, "sound message")
            with_messages = f", with {sound} behind damage, which no key finds now"
        yield f"left out: the last {rebuilt.left_bytes} bytes of the commit log{with_messages}"


def _summary(rebuilt: "RebuiltIndex") -> str:
    tags = "with" if rebuilt.index_tags else "without"
    source = rebuilt.tags_from if rebuilt.tags_from != "given" else "given release"
    return (
        f", built from {plural(rebuilt.messages, 'message')} {tags} entries for tags (by the"
        f" {source})"
    )
