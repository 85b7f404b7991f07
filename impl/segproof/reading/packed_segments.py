# SPDX-License-Identifier: Apache-2.0
"""Remote segments that a storage plugin packed without changing bytes, seen as if unpacked.

The plugin tiered-storage-for-apache-kafka writes three objects for a segment. `.log` is the log, if
neither compressed nor encrypted. `.indexes` has the other files behind each other.
`.rsm-manifest` is JSON: `compression`, `encryption` if there is one, and in `segmentIndexes`
position and size of each file in `.indexes`; `transaction` is null without a transaction index.

Upstream: Aiven's tiered-storage-for-apache-kafka: SegmentManifestV1, SegmentIndexesV1,
    RemoteStorageManager.
Not covered: compressed or encrypted segments, and manifests of another version than 1. Their files
are seen as they are.
"""

import json
import posixpath
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

from segproof.files import File, Files, FileStatus
from segproof.reading.file_names import PACKED_SUFFIXES, read_remote_name
from segproof.reading.folder_names import KnownFolders

MANIFEST_SUFFIX, INDEXES_SUFFIX = PACKED_SUFFIXES
SUFFIXES = {
    "offset": ".index",
    "timestamp": ".timeindex",
    "producerSnapshot": ".snapshot",
    "leaderEpoch": ".leader_epoch_checkpoint",
    "transaction": ".txnindex",
}
"""What `segmentIndexes` calls each file in `.indexes`, and the suffix of the unpacked file."""
MANIFEST_BYTES_MAX = 6 << 20
"""A larger manifest is not read; that of a segment of 1 GiB in 4 MiB chunks has a few KiB."""


class Part(NamedTuple):
    """Where a file lies in `.indexes`, in bytes."""

    position: int
    size_bytes: int


def parts_of(stem: str, files: Files) -> dict[str, Part] | None:
    """Return by suffix where the files of a packed segment lie, or None if they can't be read.

    `stem` is the path of the segment's files without the suffix. Raises: OSError.
    """
    status = files.status(stem + INDEXES_SUFFIX)
    if status is None or not status.is_regular:
        return None
    try:
        with closing(files.open(stem + MANIFEST_SUFFIX)) as file:
            if file.size() > MANIFEST_BYTES_MAX:
                return None
            told = json.loads(file.pread(file.size(), 0))
        if told["version"] != "1" or told["compression"] is not False or told.get("encryption"):
            return None
        parts = {
            SUFFIXES[name]: Part(part["position"], part["size"])
            for name, part in told["segmentIndexes"].items()
            if part is not None
        }
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    is_right = all(
        type(part.position) is int
        and type(part.size_bytes) is int
        and 0 <= part.position <= part.position + part.size_bytes <= status.size_bytes
        for part in parts.values()
    )
    return parts if is_right else None


def with_unpacked(files: Files) -> Files:
    """Return files among which those of readable packed segments lie unpacked; read-only.

    They know their folders, so what asks many questions of one folder is handed one of these.
    """
    return files if isinstance(files, _Unpacked) else cast(Files, _Unpacked(files))


@dataclass(frozen=True)
class _Unpacked:
    """Other files; in the place of a manifest and its `.indexes` stand the files in these."""

    _files: Files
    folders: KnownFolders = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "folders", KnownFolders(cast(Files, self)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    def list_directory(self, path: str) -> list[str]:
        names = self._files.list_directory(path)
        for name in [name for name in names if name.endswith(MANIFEST_SUFFIX)]:
            known = read_remote_name(name)
            parts = self._parts(posixpath.join(path, known.stem)) if known else None
            if known is not None and parts is not None:
                packed = {known.stem + suffix for suffix in PACKED_SUFFIXES}
                unpacked = {known.stem + suffix for suffix in parts}
                names = sorted({*names, *unpacked} - packed)
        return names

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        found = None if writable or create else self._part(path)
        if found is None:
            return self._files.open(path, writable=writable, create=create)
        packed, part = found
        return cast(File, _PartFile(self._files.open(packed), path, part))

    def status(self, path: str) -> FileStatus | None:
        status = self._files.status(path)
        found = None if status is not None else self._part(path)
        if found is None:
            return status
        whole = self._files.status(found[0])
        return None if whole is None else replace(whole, size_bytes=found[1].size_bytes)

    def _part(self, path: str) -> tuple[str, Part] | None:
        """Return the path of the `.indexes` in which a file lies, and where; None for no such."""
        folder, name = posixpath.split(path)
        known = read_remote_name(name)
        if known is None or known.passing or known.suffix not in SUFFIXES.values():
            return None
        if self._files.status(path) is not None:
            return None
        stem = posixpath.join(folder, known.stem)
        part = (self._parts(stem) or {}).get(known.suffix)
        return None if part is None else (stem + INDEXES_SUFFIX, part)

    def _parts(self, stem: str) -> dict[str, Part] | None:
        """Return what `parts_of` does; None where the operating system fails: others report it."""
        try:
            return parts_of(stem, self._files)
        except OSError:
            return None


class _PartFile:
    """A part of an open file, as a file of its own that is only read."""

    def __init__(self, file: File, path: str, part: Part) -> None:
        self.path = path
        self._file = file
        self._part = part

    def size(self) -> int:
        return max(0, min(self._part.size_bytes, self._file.size() - self._part.position))

    def pread(self, size: int, position: int) -> bytes:
        size = max(0, min(size, self._part.size_bytes - position))
        return self._file.pread(size, self._part.position + position)

    def pread_into(self, buffer: memoryview, position: int) -> int:
        size = max(0, self._part.size_bytes - position)
        return self._file.pread_into(buffer[:size], self._part.position + position)

    def data_ranges(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        begin, end = self._part.position, min(end, self._part.size_bytes)
        for first, behind in self._file.data_ranges(begin + start, begin + end):
            yield first - begin, behind - begin

    def close(self) -> None:
        self._file.close()
