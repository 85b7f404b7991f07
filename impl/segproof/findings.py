# SPDX-License-Identifier: Apache-2.0
"""What a verifier says about data, never as an exception.

It gives one finding for each broken law, and one summary for each partition or store.
"""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum


class Severity(StrEnum):
    """How bad a finding is; only errors and warnings make an exit code of 1."""

    ERROR = "error"
    """A law is broken: reads may answer wrongly, or bytes are lost."""
    WARNING = "warning"
    """Something is missing or changing, which costs time or may hide an error."""
    NOTE = "note"
    """Worth knowing and no defect."""


FURTHER = " further places in this file break the same law"
"""The end of the message of a finding that counts places."""
NOT_LOOKED_INTO = frozenset({"DISK-45", "RMQDISK-41"})
"""Laws whose findings each name a file or directory that was recognised and not read."""


def places_of(message: str, actual: str | None) -> int:
    """Return in how many places a finding of these words says that the law is broken.

    It is one, but for the finding that counts those beyond the first ones: `actual` says how many.
    """
    is_counted = message.endswith(FURTHER) and actual is not None and actual.isdecimal()
    return int(actual or 1) if is_counted else 1


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken law at one place."""

    law: str
    """Id of the law."""
    severity: Severity
    structure: str
    """Id of the structure, such as `offset-index`."""
    path: str
    """The file or directory."""
    position: int | None
    """Byte in the file, counted from 0, where the entry or batch begins; None: no single place."""
    expected: str | None
    """What there should be, in words or as a number in decimal; None: the message says it."""
    actual: str | None
    """What there is, likewise."""
    message: str
    """What is wrong, in words."""
    hint: str
    """What to do."""
    reproduce: str
    """One command line that shows the finding again."""

    @property
    def is_defect(self) -> bool:
        """Whether it is more than a note."""
        return self.severity is not Severity.NOTE

    @property
    def places(self) -> int:
        """In how many places of the file the law is broken: see `places_of`."""
        return places_of(self.message, self.actual)

    @property
    def is_not_looked_into(self) -> bool:
        """Whether the finding is about a file or directory that was recognised and not read."""
        return self.law in NOT_LOOKED_INTO

    @property
    def files_not_looked_into(self) -> int:
        """How many files were recognised and not read: `actual` says it of a directory."""
        is_counted = self.is_not_looked_into and self.actual is not None and self.actual.isdecimal()
        return int(self.actual or 1) if is_counted else int(self.is_not_looked_into)

    def to_json(self) -> dict[str, int | str | None]:
        """Return the fields by name, in the order of every output, as JSON knows them."""
        return {**asdict(self), "severity": self.severity.value}

    def to_json_line(self) -> str:
        """Return the finding as one line of JSON, in ASCII, without the line's end."""
        return json.dumps(self.to_json())

    def __str__(self) -> str:
        at = "" if self.position is None else f" at byte {self.position}"
        return f"{self.severity.value}: {self.path}{at}: {self.message} [{self.law}]; {self.hint}"


class Verdict(StrEnum):
    """What a partition or store is worth, from the best to the worst."""

    SOUND = "sound"
    """No error and no warning in what was read; `Summary.not_looked_into` counts what was not."""
    INDEX_DAMAGE_ONLY = "index-damage-only"
    """Every record can be read. Only files are damaged that are made new from the log."""
    READABLE_WITH_DEFECTS = "readable-with-defects"
    """No record is known to be lost, and a law is broken outside the indexes."""
    NOT_CHECKED = "not-checked"
    """It was recognised, and nothing of it was read: it may be sound, or damaged."""
    READABLE_WITH_GAPS = "readable-with-gaps"
    """Some records can be read; others are damaged, out of reach or missing."""
    UNREADABLE = "unreadable"
    """No record can be read."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What was checked of one partition, store, directory or single file, and the verdict."""

    path: str
    """The partition, store, directory or file."""
    kind: str
    """`partition`, `store`, `index folder`, `index file`, `commit-log file`, `consume-queue file`,
    `store checkpoint`, `config file`; `remote folder`: segments in tiered storage; `file`: another
    single file; `directory`: what lies beside partitions."""
    verdict: Verdict
    """Judged by the errors and warnings that were asked for; notes do not count."""
    bytes_checked: int
    """Bytes of logs and indexes. What was read twice counts once; small files do not count."""
    batches: int
    """Record batches of Kafka's logs that were checked; or sound messages of RocketMQ's commit log,
    those behind damage too, which are as many as a salvage keeps."""
    segments: int
    """Segments of Kafka's, or files of RocketMQ's commit log; files where no log was asked for."""
    first_offset: int | None
    """Where the log begins: an offset, or for RocketMQ a byte of the commit log. None: unknown."""
    end_offset: int | None
    """The offset, or byte, behind the last batch or message that was reached. None: unknown."""
    lost_offsets: int | None
    """Offsets in no sound batch, because of damage; of RocketMQ messages, as its queues tell. None:
    how many are lost is unknown."""
    batches_behind_damage: int
    """Sound batches behind the first damage of the log: a recovery that cuts it there deletes them,
    and all later segments, whose batches count too. Of RocketMQ sound messages behind the first
    damage at which a recovery cuts the commit log; it goes on behind a blank end."""
    errors: int
    warnings: int
    notes: int
    """In how many places a law is broken, by severity: the sum of `Finding.places`. The findings of
    a law and a file are given one by one up to a bound, and one more counts the rest."""
    ignored: int = 0
    """How many of them the caller ignores; `verify` itself ignores none."""
    lost_at_least: int = 0
    """So many of those lost are known of: `lost_offsets`, where that is known."""
    missing_offsets: int = 0
    """Offsets from the first to the last in no batch of a log that could be read there: compaction
    leaves them, and so does a salvage. Of RocketMQ messages with which a salvage filled gaps."""
    unproven_offsets: int = 0
    """This many further offsets may be lost, or the log cleaner took them; 0 where no file bounds
    them."""
    not_looked_into: int = 0
    """Files in it that were recognised and not read: a note names each, or the directory that they
    are in (DISK-45, RMQDISK-41). The verdict says nothing about them."""

    @property
    def is_sound(self) -> bool:
        """Whether there is neither an error nor a warning."""
        return self.verdict is Verdict.SOUND

    def to_json(self) -> dict[str, int | str | None]:
        """Return the fields by name, as JSON knows them."""
        return {**asdict(self), "verdict": self.verdict.value}


def time_text(timestamp_ms: int) -> str:
    """Return a time in milliseconds since 1970 as ISO 8601 in UTC.

    A time outside of the years 1 to 9999 stays a number.

    >>> time_text(1795222321537)
    '2026-11-21T00:52:01.537Z'
    """
    try:
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return str(timestamp_ms)
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
