# SPDX-License-Identifier: Apache-2.0
"""What a lookup answers, and the steps that led there."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field

from segproof.counts import plural, verb

Fact = int | str | None
Facts = dict[str, Fact]


@dataclass(frozen=True, slots=True)
class LookupStep:
    """One step of a lookup: what was done to which file, and what came out. `str` tells it."""

    action: str
    """Of a partition: `segment`, `offset-index`, `time-index`, `largest-timestamp`, `scan`,
    `next-segment`, or `leftover-entries`: entries that a truncation left, or damaged ones, were
    passed over. Of a store: `hash`, `no-log`, `file`, `slot`, `entry` or `end`; `log` where the
    commit log was read in place of an index."""
    path: str
    """The file or directory that was looked at."""
    facts: Facts
    """What came out, by name; bytes and counts as numbers, None for nothing."""

    def __str__(self) -> str:
        words = _WORDS[self.action](self.facts)
        if self.action in ("segment", "next-segment", "hash", "no-log"):
            return words
        return f"{os.path.basename(self.path)}: {words}"


class Steps:
    """The steps of one question, noted as they are taken, if they are wanted."""

    def __init__(self, wanted: bool = False) -> None:
        self.wanted = wanted
        self._taken: list[LookupStep] = []

    @property
    def taken(self) -> tuple[LookupStep, ...]:
        """Those so far."""
        return tuple(self._taken)

    def note(self, action: str, path: str, **facts: Fact) -> None:
        """Add a step."""
        if self.wanted:
            self._taken.append(LookupStep(action, path, facts))


@dataclass(frozen=True, slots=True)
class OffsetAnswer:
    """Where an offset lies: None in every field that has no answer, and then a `reason`."""

    target: int
    segment_base_offset: int | None = None
    """The segment that holds the batch; without a batch, the one that the floor picks."""
    index_offset: int | None = None
    """Offset of that segment's index entry for the target."""
    index_position: int | None = None
    """The position from which the log was scanned, in bytes."""
    batch_base_offset: int | None = None
    """Base offset of the first batch whose last offset is not below the target."""
    batch_position: int | None = None
    """Where that batch begins in its segment's log, in bytes."""
    batch_size: int | None = None
    """Its whole size in bytes."""
    reason: str | None = None
    """Why there is no batch, or what is wrong with it."""
    is_damaged: bool = False
    """Whether the checksum of the batch is wrong, so that its records may be too; or whether the
    log's offsets do not rise there, and a read finds another batch first."""
    steps: tuple[LookupStep, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class TimestampAnswer:
    """The first record at or after a timestamp in the segment that reaches it."""

    target: int
    """Milliseconds since 1970."""
    timestamp: int | None = None
    offset: int | None = None
    reason: str | None = None
    """Why there is no record, or what is wrong with its batch."""
    is_damaged: bool = False
    """Whether the checksum of the record's batch is wrong, or it does not belong where it lies."""
    steps: tuple[LookupStep, ...] = field(default=(), compare=False)


# --- steps in words


def _segment(facts: Facts) -> str:
    if facts["floor"] is None:
        return f"segment: none of {facts['segments']} begins at or below the target"
    return f"segment: of {facts['segments']} the floor is {facts['floor']}"


def _index(facts: Facts) -> str:
    if facts["entries"] is None:
        return "no such file, so the log is scanned from its start"
    shown = ("timestamp", "offset", "position")
    entry = ", ".join(f"{name} {facts[name]}" for name in shown if name in facts)
    if facts["slot"] is None:
        return f"no entry of {facts['entries']} is at or below {facts['target']}: {entry}"
    return f"slot {facts['slot']} of {facts['entries']} for {facts['target']}: {entry}"


def _counted(facts: Facts, name: str, word: str, one: str = "", many: str = "") -> str:
    return plural(int(facts[name] or 0), word, one, many)


def _leftovers(facts: Facts) -> str:
    were = verb(int(facts["passed_over"] or 0), "was", "were")
    return (
        f"{_counted(facts, 'passed_over', 'entry')} that no batch fits {were} passed over: left by"
        " a truncation, or damaged; `segproof verify` tells which"
    )


def _scan(facts: Facts) -> str:
    batches = _counted(facts, "batches", "batch")
    at = facts["batch_position"]
    found = "" if at is None else f", found at byte {at}"
    return f"{batches} scanned from byte {facts['from_position']}{found}"


def _index_file(facts: Facts) -> str:
    if facts["entries"] == 0:
        return "it has no entry"
    return (
        f"{_counted(facts, 'entries', 'entry')}, {facts['begin_timestamp']} to"
        f" {facts['end_timestamp']}; asked: {facts['taken']}"
    )


def _hash_slot(facts: Facts) -> str:
    head = f"entry {facts['entry']} is the newest" if facts["entry"] else "it is empty"
    return f"slot {facts['slot']} of {facts['slots']}: {head}"


def _chain_entry(facts: Facts) -> str:
    return (
        f"entry {facts['index']}: hash {facts['key_hash']}, offset {facts['phy_offset']}, time"
        f" {facts['time']}, before it {facts['prev_index']}; taken: {facts['taken']}"
    )


_WORDS: dict[str, Callable[[Facts], str]] = {
    "segment": _segment,
    "next-segment": lambda facts: f"next segment: {facts['base_offset']}",
    "offset-index": _index,
    "time-index": _index,
    "leftover-entries": _leftovers,
    "largest-timestamp": lambda facts: f"the largest timestamp is {facts['timestamp']}",
    "scan": _scan,
    "hash": lambda facts: f"hash: {facts['key']} has {facts['key_hash']}",
    "no-log": lambda _: "there is no commit log: other keys of the same hash count too",
    "log": lambda facts: (
        f"{_counted(facts, 'messages', 'message', 'was', 'were')} read, in"
        f" {_counted(facts, 'files', 'file')}"
    ),
    "file": _index_file,
    "slot": _hash_slot,
    "entry": _chain_entry,
    "end": lambda facts: f"here it ends: {facts['why']}",
}
