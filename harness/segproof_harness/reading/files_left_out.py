# SPDX-License-Identifier: Apache-2.0
"""The files of a partition that `dump` leaves out, and whether that costs rows.

A cleaning that a crash cut off leaves `.swap` files beside the logs that they are made of. These
have all rows, so a dump of them is whole. `segproof.scan` compares no files, and refuses each.

Laws: LOAD-1, LOAD-2, DISK-60.
"""

import os
from collections.abc import Collection, Iterator
from typing import NamedTuple

from segproof.errors import SegproofError
from segproof.files import REAL_FILES, Files
from segproof.reading.file_names import NameKind, read_file_name
from segproof.reading.log_extents import unread_logs
from segproof.reading.waiting_logs import (
    LOG_SWAP,
    REPLACES_OTHERS,
    only_copy,
    records_wait,
    waiting_logs,
)
from segproof.verifying.replaced_logs import ReplacedLogs
from segproof.wording.partition_words import REPLACED

_FOREIGN = f"{REPLACES_OTHERS}; it is not made of them, as `segproof verify` says"


class LeftOut(NamedTuple):
    """Why a file is not read."""

    error: SegproofError
    costs_rows: bool
    """Whether rows may be in this file alone, or a start deletes rows that are shown."""


def files_left_out(
    directory: str, suffixes: Collection[str], files: Files = REAL_FILES
) -> Iterator[LeftOut]:
    """Yield the files of a directory that may hold rows, and are not read.

    These are logs that no other log has all of, and `.swap` files with these suffixes, which a
    start puts in the place of what is read. Raises: OSError.
    """
    names = files.list_directory(directory)
    waiting = waiting_logs(directory, names, files)
    for name in waiting:
        yield LeftOut(records_wait(os.path.join(directory, name)), True)
    kinds = {name: read_file_name(name) for name in names}
    swaps = [
        name
        for name, known in sorted(kinds.items())
        if known.kind is NameKind.PENDING and name.endswith(".swap") and known.suffix in suffixes
    ]
    replacing = ReplacedLogs(directory, kinds, set(), files)
    for name in swaps:
        path, base = os.path.join(directory, name), kinds[name].base_offset
        if name in waiting:
            continue
        if not name.endswith(LOG_SWAP):
            yield LeftOut(SegproofError(REPLACES_OTHERS, path=path), _is_in_no_place(name, names))
        elif base in replacing.foreign:
            yield LeftOut(SegproofError(_FOREIGN, law=REPLACED, path=path), True)
        else:
            only = only_copy(path, replacing.log_paths, files, ranges=replacing.ranges)
            words = REPLACES_OTHERS
            if only is not None:
                words += f"; no other log here has all of its offsets {only.first} to {only.last}"
            yield LeftOut(SegproofError(words, path=path), only is not None)
    for log in unread_logs(directory, names, files):
        yield LeftOut(SegproofError(log.problem, path=log.path), True)


def _is_in_no_place(name: str, names: Collection[str]) -> bool:
    """Return whether an index has no other file, though the log that it is made of is in place."""
    log = f"{name.partition('.')[0]}{LOG_SWAP}"
    return log not in names and name.removesuffix(".swap") not in names
