# SPDX-License-Identifier: Apache-2.0
"""What `salvage` writes of a partition or a store: what was kept, and the gaps."""

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from segproof_harness.cli.common import Format, complain, write_prose, write_row

FULL = (errno.ENOSPC, errno.EDQUOT)
PARTITION_TO_SERVE = (
    "to serve it: stop the broker, move the old directory of this partition away, and nothing else,"
    ' and put the new one in its place; the page "A broken disk" has the steps'
)
"""What comes after the salvage of one partition: docs/tutorial/a-broken-disk.md."""
TO_SERVE = (
    'to serve it: the page "Bring back a whole saved directory" says what the new directory needs'
    " of the old one. Only then stop the broker, move the old one away, and put the new one in its"
    " place"
)
"""The same of a data directory or a store: docs/howto/bring-back-a-whole-directory.md."""
GAPS_SHOWN = 10
"""So many gaps stand in the text; jsonl has all that are told."""
LISTS = ("gaps", "lost_numbers", "misnamed_files", "offsets_beyond")
"""What is no plain field of the JSON object: it stands behind it, or at its end."""


@contextmanager
def telling_what_is_incomplete(out: Path) -> Iterator[None]:
    """Say of a directory that holds a part only what to do with it; errors go on."""
    from segproof.reading.unfinished import SALVAGE_MARKER

    marker = out / SALVAGE_MARKER
    was_there, before = marker.exists(), _names_in(out)
    try:
        yield
    except (OSError, KeyboardInterrupt) as error:
        if not was_there and marker.exists():
            is_full = isinstance(error, OSError) and error.errno in FULL
            room = " into one with more room" if is_full else ""
            new = sorted(_names_in(out) - before)
            what = ", ".join(str(out / name) for name in new) if before else "it"
            complain(f"{out} is incomplete: remove {what}, and save again{room}")
        raise


def _names_in(out: Path) -> set[str]:
    """Return what lies in a directory; nothing where it can't be listed."""
    with suppress(OSError):
        return {one.name for one in out.iterdir()}
    return set()


def write_saved(
    told: Any,
    kept: str,
    lines: Iterable[str],
    output_format: Format,
    beside: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write what was saved: as JSON its fields and each gap, as text `kept` and the lines.

    `beside` are further fields of the JSON object.
    """
    if output_format is Format.JSONL:
        names = [field.name for field in fields(told) if field.name not in LISTS]
        write_row({name: getattr(told, name) for name in names} | {**beside}, output_format)
        for gap in told.gaps:
            write_row(gap._asdict(), output_format)
        return
    write_prose(f"{told.directory}: {kept}")
    for line in lines:
        write_prose(f"  {line}", indent=4)


def gap_lines(told: Any, words: Callable[[Any], str]) -> Iterator[str]:
    """Yield the first gaps, how many more there are, and what the disk did not give."""
    for gap in told.gaps[:GAPS_SHOWN]:
        yield f"gap: {words(gap)}"
    if told.gap_count > GAPS_SHOWN:
        yield f"gap: {told.gap_count - GAPS_SHOWN} more; --format jsonl tells them"
    if told.unreadable_bytes:
        yield f"unreadable: the disk did not give {told.unreadable_bytes} bytes"
