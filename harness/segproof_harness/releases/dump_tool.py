# SPDX-License-Identifier: Apache-2.0
"""Kafka's own dump tool (`kafka-dump-log`), and what it says of files, in the terms of `dump`."""

import re
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segproof_harness.releases.broker import TOOL_SECONDS, run_java
from segproof_harness.releases.pinned import Release

MOVED_SINCE = (4, 3)
"""The first Kafka whose tool lies in an artefact of its own."""
TIMES = ("CreateTime", "LogAppendTime", "NoTimestampType")
COMPLAINT = re.compile(
    r"^(Mismatches in|Non-consecutive offsets|Found |Exception|Caused by|\S+Exception)"
    r"|invalid bytes at the end|isvalid: false|failed sanity check|is corrupt",
    re.MULTILINE | re.IGNORECASE,
)
"""What it says of damaged files; it exits with 0 nevertheless, but for an exception."""
_PAIR = re.compile(r"(\w+): (\[[^\]]*\]|OptionalLong\[-?\d+\]|\S+)")
_FILE = re.compile(r"Dumping (.+)")


@dataclass(slots=True)
class Told:
    """What the tool said."""

    stdout: str
    stderr: str
    returncode: int
    rows: dict[str, list[dict[str, str]]] = field(default_factory=dict)
    """By path: its pairs of names and values, of one line each; a record's has the key `|`."""

    @property
    def complaints(self) -> list[str]:
        """Its lines that say that something is wrong."""
        lines = (self.stdout + "\n" + self.stderr).splitlines()
        return [line for line in lines if COMPLAINT.search(line)]


def dump_tool(
    release: Release, files: Iterable[Path], *options: str, seconds: float = TOOL_SECONDS
) -> Told:
    """Run the tool of a release on some files. Raises: as `run_java`."""
    package = "org.apache.kafka.tools" if release.number >= MOVED_SINCE else "kafka.tools"
    named = ("--files", ",".join(map(str, files)))
    done = run_java(release, f"{package}.DumpLogSegments", *options, *named, seconds=seconds)
    return _parsed(done)


def _parsed(done: subprocess.CompletedProcess[str]) -> Told:
    told = Told(done.stdout, done.stderr, done.returncode)
    rows: list[dict[str, str]] = []
    for line in done.stdout.splitlines():
        if match := _FILE.fullmatch(line):
            rows = told.rows[match[1]] = []
        elif pairs := dict(_PAIR.findall(line.partition(" key: ")[0].partition(" payload: ")[0])):
            rows.append({"|": "", **pairs} if line.startswith("| ") else pairs)
    return told


def batch_of(row: dict[str, str]) -> dict[str, Any]:
    """Return the row of a batch, or of a message, with the names and types of `segproof dump`."""
    (kind,) = [name for name in TIMES if name in row]
    found: dict[str, Any] = {
        "last_offset": int(row.get("lastOffset", row.get("offset", ""))),
        "position": int(row["position"]),
        "size": int(row["size"]),
        "magic": int(row["magic"]),
        "compression": row["compresscodec"],
        "timestamp_type": kind,
        "max_timestamp": int(row[kind]),
        "crc_valid": row["isvalid"] == "true",
    }
    if found["magic"] >= 2:
        found |= {
            "base_offset": int(row["baseOffset"]),
            "record_count": int(row["count"]),
            "producer_id": int(row["producerId"]),
            "producer_epoch": int(row["producerEpoch"]),
            "base_sequence": int(row["baseSequence"]),
            "is_transactional": row["isTransactional"] == "true",
            "is_control": row["isControl"] == "true",
        }
    return found
