# SPDX-License-Identifier: Apache-2.0
"""The checkpoint of leader epochs of a partition, read for what it says of the partition's log."""

import posixpath

from segproof.errors import SegproofError
from segproof.files import Files
from segproof.kafka.checkpoint_file import EpochEntry, LeaderEpochCheckpointFile
from segproof.reading.file_names import EPOCHS


def readable_epochs(path: str, files: Files) -> list[EpochEntry] | None:
    """Return the entries of a checkpoint; None if it can't be read."""
    try:
        return LeaderEpochCheckpointFile(path, files=files).read()
    except (OSError, SegproofError):
        return None


def epochs_begin(directory: str, files: Files) -> int | None:
    """Return the offset at which the first leader epoch of a partition begins.

    None without an entry in a checkpoint that can be read.
    """
    entries = readable_epochs(posixpath.join(directory, EPOCHS), files)
    return entries[0].start_offset if entries else None
