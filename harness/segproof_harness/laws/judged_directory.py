# SPDX-License-Identifier: Apache-2.0
"""A second opinion on `verify` of a partition: what its directory offers to the model's laws.

Not offered: names (FILE-n), rights and change meanwhile (DISK-1, -2), sizes (DISK-7), and what a
data directory says of its partitions (DISK-38, -43).
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from segproof.files import REAL_FILES
from segproof.findings import Finding
from segproof.verification import verify
from segproof_harness.files.codecs import CODECS as ALL_CODECS
from segproof_harness.laws.judge import ABSENT, LIMIT_BYTES, Inputs, Judge, disagreements_of
from segproof_harness.reading.partition_under_profile import BATCH_LIMIT_BYTES, limited
from segproof_harness.reading.segment_file_rows import segment_files
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.language.states import outcome_of
from segproof_model.laws.kafka.format.log_bytes import valid_batches
from segproof_model.laws.kafka.format.segment_on_disk import SEGMENT_NAME

CODECS = replace(ALL_CODECS, limit_bytes=BATCH_LIMIT_BYTES)
SMALL_FILE = re.compile(r"leader-epoch-checkpoint|partition\.metadata|[0-9]+\.snapshot")
ENTRY_SIZES = {".log": 1, ".index": 8, ".timeindex": 12}


class DirectoryJudge(Judge):
    """What the model says of one directory of a partition."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        matches = [match for match in map(SEGMENT_NAME.fullmatch, files) if match is not None]
        bases = sorted({int(match[1]) for match in matches})
        self._logs = [base for base in bases if segment_file_name(base, ".log") in files]
        names = sorted(name for name in files if name.endswith(".snapshot"))
        offsets = {name: outcome_of(offset_of_name, name) for name in names}
        snapshots: dict[object, bytes] = {
            offset: files[name] for name, offset in offsets.items() if isinstance(offset, int)
        }
        whole = self._of_the_directory(snapshots)
        super().__init__(
            [whole],
            [self._of_a_segment(base) for base in bases],
            [one for base in bases for one in self._of_each_file(base)],
            [
                {**whole, "offset": offset, "snapshot": snapshots.get(offset, ABSENT)}
                for offset in snapshots or [ABSENT]
            ],
        )

    def _read(self, base_offset: int, suffix: str) -> bytes:
        return self._files.get(segment_file_name(base_offset, suffix), b"")

    def _of_the_directory(self, snapshots: Mapping[object, bytes]) -> Inputs:
        return {
            "files": self._files,
            "logs": [self._read(base, ".log") for base in self._logs],
            "base_offsets": self._logs,
            "transaction_indexes": [self._read(base, ".txnindex") for base in self._logs],
            "offsets": list(snapshots),
            "log_end_offset": self._end_offset,
            "codecs": CODECS,
            "checkpoint": self._files.get("leader-epoch-checkpoint", ABSENT),
            "metadata": self._files.get("partition.metadata", ABSENT),
        }

    def _of_a_segment(self, base: int) -> Inputs:
        return {
            "log": self._read(base, ".log"),
            "time_index": self._read(base, ".timeindex"),
            "transaction_index": self._read(base, ".txnindex"),
            "base_offset": base,
            "next_base_offset": next((other for other in self._logs if other > base), None),
            "codecs": CODECS,
            "offset_index": self._files.get(segment_file_name(base, ".index"), ABSENT),
            "indexes": (self._read(base, ".index"), self._read(base, ".timeindex")),
        }

    def _of_each_file(self, base: int) -> Iterator[Inputs]:
        for suffix, size in ENTRY_SIZES.items():
            yield {"image": self._read(base, suffix), "entry_size": size, "is_closed": True}

    @property
    def _end_offset(self) -> int:
        """The offset behind the last batch that can be read."""
        if not self._logs:
            return 0
        batches = valid_batches(self._read(self._logs[-1], ".log"))
        return max([self._logs[-1], *(batch.last_offset + 1 for batch in batches)])


def partitions_below(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield the directories at or below `path` that hold a log."""
    for folder, _, names in os.walk(path):
        if any(name.endswith(".log") for name in names):
            yield Path(folder)


def contents_of(path: Path) -> bytes:
    """Return the bytes of a regular file. Raises OSError, for a named pipe too."""
    file = REAL_FILES.open(os.fspath(path))
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def disagreements(directory: Path) -> Iterator[Finding]:
    """Yield a finding for each law on which `verify` and the model part.

    Raises: OSError; ValueError for a directory above LIMIT_BYTES; TooLargeError for a batch above
    BATCH_LIMIT_BYTES.
    """
    paths = [Path(file.path) for file in segment_files(os.fspath(directory))]
    paths += [path for path in directory.iterdir() if SMALL_FILE.fullmatch(path.name)]
    size = sum(path.stat().st_size for path in paths)
    if size > LIMIT_BYTES:
        raise ValueError(
            f"{directory}: {size} bytes are more than the model is given, {LIMIT_BYTES}"
        )
    judge = DirectoryJudge({path.name: contents_of(path) for path in paths})
    findings = list(verify(directory, deep=True))
    with limited(os.fspath(directory)):
        yield from disagreements_of(judge, findings, directory)
