# SPDX-License-Identifier: Apache-2.0
"""The findings of finished units: a small file for each unit.

A unit is not read again where its files have the sizes, the modification times and the digests that
they had, the same is asked of it, and segproof's sources are the same. A digest is one of the first
and the last 64 KiB of a file: a change in the middle shows by the modification time only. Of a unit
that changed while it was read, or a moment before, whose files could not be read, or lie in a store
that tells no modification time, nothing is kept.

The files are plain: a line with the digest of the rest, a line of JSON, and what the segment hands
on to its partition as `segproof.verifying.segment_carry` writes it. Each is written under another
name first, so it is there whole or not at all; one that is damaged counts as none.
"""

import contextlib
import errno
import hashlib
import json
import os
import posixpath
import uuid
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from segproof.files import Files
from segproof.inventory.partitions import Partition
from segproof.inventory.segments import Segment
from segproof.reading.live_writer import changed_recently
from segproof.reading.store_paths import Place, PlaceKind
from segproof.rocketmq.geometry import index_file_names
from segproof.verifying.segment_carry import carried_from_bytes
from segproof.verifying.summarising import Work
from segproof.wording.reporting import Wanted
from segproof_harness.cli.common import release
from segproof_spark.arrow_files import errors_name, is_url, open_filesystem, shown
from segproof_spark.bundle import digest_of_sources
from segproof_spark.result_rows import FINDING_FIELDS

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


FORMAT = 2
DIGEST_BYTES = 64 << 10
LEVELS_MAX = 8
JUDGING = ("segproof", "segproof_spark.verify")
"""The packages that make the findings: if they change, all units are read again."""
UNREAD = frozenset({"DISK-1", "DISK-2"})
"""Laws of files that were unreadable or changed meanwhile: a later read may succeed."""


class CheckpointError(OSError):
    """The folder of a checkpoint can't be opened or made."""


class Mark(NamedTuple):
    """Which unit it is, and in which state its files are."""

    name: str
    """Of its file in the checkpoint."""
    told: dict[str, Any]
    """Everything that determines the findings of the unit."""
    paths: tuple[str, ...]
    """Of files and folders."""


class Kept(NamedTuple):
    """The findings of a unit."""

    findings: list[dict[str, Any]]
    carry: bytes


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The files of one checkpoint, for one kind of question."""

    place: str
    """A folder: an absolute path or a URL."""
    asked: str
    """The options of the verification, as JSON."""

    def mark(self, unit: Work | Segment, files: Files) -> Mark | None:
        """Return the mark of a unit, or None if its files can't be read or change just now."""
        described = _described(unit)
        try:
            paths = tuple(_paths_of(unit, files))
            states = [[path, *_state(path, files), _digest(path, files)] for path in paths]
        except OSError:
            return None
        if changed_recently(paths, files):
            return None
        told = {"unit": described, "asked": json.loads(self.asked), "files": states}
        key = json.dumps([described, told["asked"]], sort_keys=True).encode()
        return Mark(hashlib.sha256(key).hexdigest() + ".unit", told, paths)

    def recall(self, mark: Mark | None) -> Kept | None:
        """Return the findings of the unit in exactly this state, or None."""
        if mark is None:
            return None
        try:
            filesystem, folder = _opened(self.place)
            with filesystem.open_input_stream(f"{folder}/{mark.name}") as stream:
                data = stream.read()
        except OSError:
            return None
        return _read(data, mark)

    def keep(
        self, mark: Mark | None, findings: list[dict[str, Any]], carry: bytes, files: Files
    ) -> None:
        """Write the findings of a unit, unless the unit has changed since.

        Raises: OSError if it can't be written.
        """
        if mark is None or any(one["law"] in UNREAD for one in findings):
            return
        try:
            now = [[path, *_state(path, files)] for path in mark.paths]
        except OSError:
            return
        if now != [state[:-1] for state in mark.told["files"]]:
            return
        filesystem, folder = _opened(self.place)
        told = json.dumps({**mark.told, "findings": findings}).encode()
        rest = told + b"\n" + carry
        data = hashlib.sha256(rest).hexdigest().encode() + b"\n" + rest
        path = f"{folder}/{mark.name}"
        other = f"{path}.{uuid.uuid4().hex}.tmp"
        try:
            with filesystem.open_output_stream(other) as stream:
                stream.write(data)
            filesystem.move(other, path)
        except OSError:
            with contextlib.suppress(OSError):
                filesystem.delete_file(other)
            raise


def open_checkpoint(place: str, wanted: Wanted) -> Checkpoint:
    """Return the checkpoint in a folder, which is made if it is not there.

    Raises: CheckpointError.
    """
    place = place if is_url(place) else os.path.abspath(place)
    try:
        with errors_name(shown(place) if is_url(place) else place):
            filesystem, folder = _opened(place)
            filesystem.create_dir(folder, recursive=True)
    except OSError as error:
        raise CheckpointError(error.errno, error.strerror, error.filename) from None
    asked = {
        "format": FORMAT,
        "segproof": [release(), digest_of_sources(JUDGING)],
        **asdict(wanted),
        "laws": None if wanted.laws is None else sorted(wanted.laws),
    }
    return Checkpoint(place, json.dumps(asked, sort_keys=True))


@lru_cache(maxsize=2)
def _opened(place: str) -> "tuple[FileSystem, str]":
    from pyarrow.fs import LocalFileSystem

    if not is_url(place):
        return LocalFileSystem(), place
    filesystem, folder = open_filesystem(place)
    return filesystem, folder.rstrip("/")


def _read(data: bytes, mark: Mark) -> Kept | None:
    """Return the content of a file of the checkpoint, if it is whole and has this mark."""
    digest, _, rest = data.partition(b"\n")
    if digest != hashlib.sha256(rest).hexdigest().encode():
        return None
    head, _, carry = rest.partition(b"\n")
    try:
        told = json.loads(head)
        findings = told.pop("findings")
        if carry:
            carried_from_bytes(carry)
        is_right = all(set(one) == set(FINDING_FIELDS) for one in findings)
    except (ValueError, KeyError, TypeError):
        return None
    return Kept(findings, carry) if is_right and told == mark.told else None


def _described(unit: Work | Segment) -> list[Any]:
    """Return what a unit is, as JSON knows it."""
    if isinstance(unit, Segment):
        return [
            "segment", unit.directory, unit.base_offset, sorted(unit.suffixes),
            unit.next_base_offset, unit.is_stopped, sorted(unit.judged), list(unit.snapshots),
            unit.stem,
        ]  # fmt: skip
    if isinstance(unit, Partition):
        segments = [_described(segment) for segment in unit.segments]
        offsets = [list(each) for each in unit.offsets]
        return ["partition", unit.directory, segments, list(unit.others), offsets]
    return ["place", unit.kind.value, unit.path]


def _paths_of(unit: Work | Segment, files: Files) -> Iterator[str]:
    """Yield the files and folders that are read for a unit. Raises: OSError."""
    if isinstance(unit, Segment):
        yield from map(unit.path, sorted(unit.suffixes))
    elif isinstance(unit, Partition):
        for segment in unit.segments:
            yield from _paths_of(segment, files)
        yield from map(unit.path, unit.others)
    elif unit.kind is PlaceKind.INDEX_FILE:
        yield from _beside(unit, files)
    else:
        yield from _below(unit.path, files, 0)


def _beside(place: Place, files: Files) -> Iterator[str]:
    """Yield an index file, and all index files of its folder: they may tell its geometry."""
    folder, own = posixpath.split(place.path)
    yield place.path
    for name in index_file_names(files.list_directory(folder or ".")):
        if name != own:
            yield posixpath.join(folder, name)


def _below(path: str, files: Files, level: int) -> Iterator[str]:
    """Yield all that lies at or below a path, folders too: an empty one counts for the checks."""
    yield path
    status = files.status(path)
    if status is None or not status.is_directory:
        return
    if level >= LEVELS_MAX:
        raise OSError(errno.ELOOP, "too many levels", path)
    for name in files.list_directory(path):
        yield from _below(posixpath.join(path, name), files, level + 1)


def _state(path: str, files: Files) -> list[Any]:
    """Return size and modification time of a file, or the names in a folder.

    Raises: OSError, also if there is nothing, or a file whose modification time is not told.
    """
    status = files.status(path)
    if status is None:
        raise FileNotFoundError(errno.ENOENT, "no such file", path)
    if status.is_directory:
        return ["folder", files.list_directory(path)]
    if not status.modified_ns:
        raise OSError(errno.ENODATA, "no modification time", path)
    return [status.size_bytes, status.modified_ns]


def _digest(path: str, files: Files) -> str:
    """Return the digest of both ends of a file; of a folder nothing. Raises: OSError."""
    status = files.status(path)
    if status is not None and status.is_directory:
        return ""
    with closing(files.open(path)) as file:
        size = file.size()
        summed = hashlib.sha256(file.pread(min(size, DIGEST_BYTES), 0))
        if size > DIGEST_BYTES:
            start = max(DIGEST_BYTES, size - DIGEST_BYTES)
            summed.update(file.pread(size - start, start))
        return summed.hexdigest()
