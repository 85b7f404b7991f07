# SPDX-License-Identifier: Apache-2.0
"""An index of a last segment that is longer than a broker's `segment.index.bytes`.

Upstream: Kafka 4.3.1: AbstractIndex.resize, LogLoader.
Laws: LOAD-19.
"""

import posixpath
from collections.abc import Mapping
from contextlib import closing

from segproof.files import Files
from segproof.findings import Severity
from segproof.hints import reads
from segproof.kafka.segment_names import segment_file_name
from segproof.reading.file_names import FileName, NameKind
from segproof.verifying.index_file_checks import OffsetIndexFile, TimeIndexFile
from segproof.wording.reporting import Reporter
from segproof.wording.rules import declare

declare("partition-log", Severity.WARNING,
    reads("give this topic a larger segment.index.bytes before a broker starts; if it has one of"
    " its own, verify with that"), "LOAD-19")  # fmt: skip


def report_long_indexes(
    path: str, kinds: Mapping[str, FileName], files: Files, reporter: Reporter
) -> None:
    """Report an index of the last segment whose entries do not fit what a broker makes of it."""
    size = reporter.wanted.segment_index_bytes or 0
    segments = [known for known in kinds.values() if known.kind is NameKind.SEGMENT]
    last = max((known.base_offset for known in segments if known.suffix == ".log"), default=None)
    for kind in (OffsetIndexFile, TimeIndexFile):
        limit = size // kind.entry_type.itemsize * kind.entry_type.itemsize
        if last is None or FileName(NameKind.SEGMENT, last, kind.suffix) not in segments:
            continue
        name = posixpath.join(path, segment_file_name(last, kind.suffix))
        try:
            with closing(files.open(name)) as file:
                length = file.size()
                entry = file.pread(kind.entry_type.itemsize, limit)
        except OSError:
            continue  # the check of the index reports it
        if len(entry) == kind.entry_type.itemsize and any(entry):
            reporter.at(name, shown_by=path).add(
                "LOAD-19",
                f"it has {length} bytes, and entries behind byte {limit}: with so small a"
                " segment.index.bytes Kafka can't load this partition, and its start fails",
                expected=limit,
                actual=length,
            )
