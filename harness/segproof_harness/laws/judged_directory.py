# SPDX-License-Identifier: Apache-2.0
"""A second opinion on `verify`: the model's laws, one by one, on the files of a small directory.

The verifier checks in one vectorised pass; here every law is its predicate of the model, as short
and as slow as that. Where the two part, one of them is wrong. A law says by the names of its
parameters what it judges, and is asked wherever the directory has all of that.

Not covered: names (FILE-n), rights and change meanwhile (DISK-1, -2), sizes (DISK-7), what a data
directory says of its partitions (DISK-38, -43), and laws that only a note speaks of.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

from segproof.files import REAL_FILES
from segproof.findings import Finding, Severity
from segproof.verification import VERIFIED_LAWS, verify
from segproof_harness.files.codecs import CODECS as ALL_CODECS
from segproof_harness.laws.every_law import LAWS
from segproof_harness.laws.reading_laws import READING_LAWS
from segproof_harness.reading.partition_under_profile import BATCH_LIMIT_BYTES, limited
from segproof_harness.reading.segment_file_rows import segment_files
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.language.states import outcome_of
from segproof_model.laws.kafka.format.log_bytes import valid_batches
from segproof_model.laws.kafka.format.segment_on_disk import SEGMENT_NAME

LIMIT_BYTES = 8 << 20
"""Larger directories take the model too long."""
CODECS = replace(ALL_CODECS, limit_bytes=BATCH_LIMIT_BYTES)
NOT_JUDGED = frozenset(
    {"FILE-1", "FILE-2", "DISK-1", "DISK-2", "DISK-6", "DISK-7", "DISK-38", "DISK-43"} | {"LOAD-19"}
)
ONLY_NOTES = frozenset(
    {"DISK-3", "DISK-19", "DISK-20", "DISK-26", "DISK-33", "DISK-39", "DISK-40", "DISK-41"}
    | {"LOAD-1"}
)
SMALL_FILE = re.compile(r"leader-epoch-checkpoint|partition\.metadata|[0-9]+\.snapshot")
ENTRY_SIZES = {".log": 1, ".index": 8, ".timeindex": 12}
Inputs = Mapping[str, Any]
"""What laws judge, by the name that they have for it."""


def broken_by(predicate: Callable[..., bool], inputs: Iterable[Inputs]) -> bool:
    """Return whether a predicate does not hold for some of the inputs that have all it takes."""
    names = signature(predicate).parameters
    asked = [{name: one[name] for name in names} for one in inputs if names.keys() <= one.keys()]
    return not all(predicate(**each) for each in asked)


class Judge:
    """What the model says of one directory, law by law."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self._files = files
        matches = [match for match in map(SEGMENT_NAME.fullmatch, files) if match is not None]
        bases = sorted({int(match[1]) for match in matches})
        self._logs = [base for base in bases if segment_file_name(base, ".log") in files]
        names = sorted(name for name in files if name.endswith(".snapshot"))
        offsets = {name: outcome_of(offset_of_name, name) for name in names}
        snapshots = {
            offset: files[name] for name, offset in offsets.items() if isinstance(offset, int)
        }
        whole = self._of_the_directory(snapshots)
        self._inputs: Sequence[Sequence[Inputs]] = (
            [whole],
            [self._of_a_segment(base) for base in bases],
            [one for base in bases for one in self._of_each_file(base)],
            [{**whole, "offset": offset, "snapshot": snapshots[offset]} for offset in snapshots],
        )
        """What there is to judge of the directory, each segment, each file, each snapshot."""

    def breaks(self, law_id: str) -> bool:
        """Return whether the directory breaks a law that can be judged."""
        predicate = READING_LAWS.get(law_id) or LAWS[law_id].predicate
        names = signature(predicate).parameters.keys()
        known = (each for each in self._inputs if any(names <= one.keys() for one in each))
        return broken_by(predicate, next(known, []))

    def broken(self) -> list[str]:
        """Return the laws that the directory breaks, of those that make a defect."""
        of_kafka = {law for law in VERIFIED_LAWS if not law.startswith("RMQ")}
        return [law for law in sorted(of_kafka - NOT_JUDGED - ONLY_NOTES) if self.breaks(law)]

    def _read(self, base_offset: int, suffix: str) -> bytes:
        return self._files.get(segment_file_name(base_offset, suffix), b"")

    def _of_the_directory(self, snapshots: Mapping[int, bytes]) -> Inputs:
        return {
            "files": self._files,
            "logs": [self._read(base, ".log") for base in self._logs],
            "base_offsets": self._logs,
            "transaction_indexes": [self._read(base, ".txnindex") for base in self._logs],
            "offsets": list(snapshots),
            "log_end_offset": self._end_offset,
            "codecs": CODECS,
            **self._small_file("checkpoint", "leader-epoch-checkpoint"),
            **self._small_file("metadata", "partition.metadata"),
        }

    def _small_file(self, known_as: str, name: str) -> Inputs:
        return {known_as: self._files[name]} if name in self._files else {}

    def _of_a_segment(self, base: int) -> Inputs:
        index = segment_file_name(base, ".index")
        return {
            "log": self._read(base, ".log"),
            "time_index": self._read(base, ".timeindex"),
            "transaction_index": self._read(base, ".txnindex"),
            "base_offset": base,
            "next_base_offset": next((other for other in self._logs if other > base), None),
            "codecs": CODECS,
            **self._small_file("offset_index", index),
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

    A law that is reported must be broken; where no defect is reported, every law must hold.
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
    judge = Judge({path.name: contents_of(path) for path in paths})
    findings = list(verify(directory, deep=True))
    found = {each.law for each in findings}
    with limited(os.fspath(directory)):
        for law_id in sorted({each.law for each in findings if each.is_defect} - NOT_JUDGED):
            if not judge.breaks(law_id):
                yield disagreement(law_id, directory, reported=True)
        if any(each.is_defect for each in findings):
            return
        for law_id in judge.broken():
            if law_id not in found:
                yield disagreement(law_id, directory, reported=False)


def disagreement(law_id: str, directory: Path, *, reported: bool) -> Finding:
    """Return the finding that `verify` and the model part on a law."""
    says = "broken" if reported else "not broken"
    return Finding(
        law_id,
        Severity.ERROR,
        LAWS[law_id].structure,
        os.fspath(directory),
        None,
        "not broken" if reported else "broken",
        says,
        f"verify calls this law {says}, and the model's predicate says otherwise",
        "keep the files and report a defect of segproof",
        f"segproof verify {directory} --deep --against model",
    )
