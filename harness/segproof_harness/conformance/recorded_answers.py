# SPDX-License-Identifier: Apache-2.0
"""Compare our answers with recorded answers of the real classes, question by question.

A directory beside `expected.json` (or `.json.gz`) is asked everything that the file records: by the
implementation, and by the model of a release. The implementation knows no zero tail,
so segments that have one are asked of the model only.

Layout of expected.json: `segments`, and in each the lists that `QUESTIONS` names; their columns are
described in the file itself. A null or absent list was not recorded.
"""

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from segproof.errors import SegproofError
from segproof.kafka.offset_index import OffsetPosition
from segproof.lookup import SegmentReader
from segproof_harness.files.shipped_directories import load_expected, partition_of, scenarios_below
from segproof_harness.reading.log_file_rows import field_of
from segproof_harness.reading.partition_under_profile import SegmentAsFound, answered, entries_of
from segproof_model.language.behaviours import Release
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of, refusal
from segproof_model.releases import RELEASES, release_named

LARGE_READ_BYTES = 100_000
"""The second read of an offset query asks for so many bytes."""
MISMATCHES_MAX = 20
_SANITY = {
    None: "ok",
    ErrorKind.CORRUPT_INDEX: "CorruptIndexException",
    ErrorKind.INVALID_ARGUMENT: "IllegalArgumentException",
    ErrorKind.KAFKA_ERROR: "KafkaException",
}
"""How expected.json records what a sanity check said."""


class Answers:
    """One segment that is asked, as a release or as the implementation reads it."""

    def __init__(self, segment: SegmentAsFound | SegmentReader) -> None:
        self._segment: Any = segment
        self.is_release = isinstance(segment, SegmentAsFound)
        """Whether zero slots count as entries, so that every segment can be asked."""

    def _entries(self, index: Any) -> list[list[int]]:
        found = entries_of(index) if self.is_release else index or ()
        return [list(entry) for entry in found]

    def entries(self) -> list[list[int]]:
        """Return the offset index: offset, position."""
        return self._entries(self._segment.offset_index)

    def times(self) -> list[list[int]]:
        """Return the time index: timestamp, offset."""
        return self._entries(self._segment.time_index)

    def batches(self) -> list[list[Any]]:
        """Return the batches in the columns of expected.json."""
        found: list[Any] = []
        refusal(partial(found.extend, self._segment.log.batches()))
        return [batch_columns(batch) for batch in found]

    def offset_query(self, target: int) -> list[Any]:
        """Return index offset, index position, a read of one byte, the size of a large read."""
        entry = self._segment.lookup_offset_index(target)
        found = self._segment.first_batch_reaching(target, entry)
        if found is None:
            return [*entry, None, None]
        rest = self._segment.log.size_in_bytes() - found.position
        small = [found.offset, found.position, min(1, rest), found.size_bytes > 1]
        return [*entry, small, min(rest, LARGE_READ_BYTES)]

    def time_query(self, timestamp: int) -> list[Any]:
        """Return index timestamp, index offset, the record found."""
        entry = self._segment.lookup_time_index(timestamp)
        found = self._segment.find_offset_by_timestamp(timestamp, self._segment.base_offset)
        return [*entry, None if found is None else [found.timestamp, found.offset]]

    def fetch_upper_bound(self, position: int, size: int) -> list[list[int] | None]:
        """Return the entry, or None."""
        index = self._segment.offset_index
        if index is None:
            return [None]
        fetched = OffsetPosition(self._segment.base_offset, position)
        with answered(self._segment.path(".index")):
            found = index.fetch_upper_bound_offset(fetched, size)
        return [None if found is None else list(found)]

    def aborted(self) -> list[list[int]]:
        """Return producer id, first, last, last stable offset of each aborted transaction."""
        found = outcome_of(self._segment.transaction_index.all_aborted_txns)
        return [] if isinstance(found, Raised) else [list(entry[1:]) for entry in found]

    def collect_aborted(self, fetch_offset: int, upper_bound: int) -> list[Any]:
        """Return the producer ids and first offsets found, and whether that is all."""
        index = self._segment.transaction_index
        found = outcome_of(lambda: index.collect_aborted_txns(fetch_offset, upper_bound))
        if isinstance(found, Raised):
            return ["raised", found.kind]
        pairs = [[entry.producer_id, entry.first_offset] for entry in found.aborted_transactions]
        return [pairs, found.is_complete]

    def state(self) -> dict[str, Any]:
        """Return what is recorded once for a segment, by its name in expected.json."""
        segment = self._segment
        offsets, times, transactions = (
            segment.offset_index, segment.time_index, segment.transaction_index,
        )  # fmt: skip
        if offsets is None or times is None:
            return {}
        found = {
            "size": segment.log.size_in_bytes(),
            "index_entries_count": offsets.entries,
            "time_entries_count": times.entries,
            "index_last_offset": offsets.last_offset,
            "time_last": list(times.last_entry),
            "index_sanity": _sanity(offsets),
            "time_sanity": _sanity(times),
            "txn_sanity": _sanity(transactions),
        }
        if self.is_release:
            found["next_offset_as_found"] = segment.read_next_offset()
            found["max_ts_so_far"] = segment.max_timestamp_so_far()
            found["scan_error"] = segment.scan()[1]
        return found


def _sanity(index: Any) -> str:
    """Return what its sanity check says. Raises: SegproofError, from the implementation."""
    found = refusal(index.sanity_check)
    return _SANITY[None if found is None else found.kind]


@dataclass(slots=True)
class Tally:
    """How many answers were compared, of each kind, and the first mismatches."""

    compared: Counter[str] = field(default_factory=Counter)
    mismatched: int = 0
    mismatches: list[str] = field(default_factory=list)

    def compare(self, kind: str, asked: object, expected: object, found: object) -> None:
        """Count one answer."""
        self.compared[kind] += 1
        if expected != found:
            self.mismatched += 1
            if len(self.mismatches) < MISMATCHES_MAX:
                self.mismatches.append(f"{kind} {asked}: expected {expected}, found {found}")

    def add(self, other: "Tally") -> None:
        """Add another tally."""
        self.compared.update(other.compared)
        self.mismatched += other.mismatched
        self.mismatches += other.mismatches[: MISMATCHES_MAX - len(self.mismatches)]

    @property
    def total(self) -> int:
        """All answers compared."""
        return self.compared.total()


def older_releases(scenario: Path) -> list[str]:
    """Return the older releases whose answers are recorded, if the model knows them."""
    found = (re.fullmatch(r"expected-(.+?)\.json(\.gz)?", path.name) for path in scenario.iterdir())
    releases = sorted(match[1] for match in found if match)
    return [release for release in releases if f"kafka-{release}" in RELEASES]


def compare_scenario(scenario: Path, release: Release | None, recorded: str | None = None) -> Tally:
    """Ask everything that is recorded: the model of a release, or the implementation.

    `recorded` is the release whose answers they are; None: 4.3.1.

    Raises: OSError if the scenario can't be read.
    """
    expected = load_expected(scenario, recorded)
    directory = str(partition_of(scenario))
    tally = Tally()
    for segment in expected["segments"]:
        where = f"{scenario.name} {segment['base']}"
        if release is not None:
            answers = Answers(SegmentAsFound(directory, segment["base"], release))
            _compare_segment(tally, where, segment, answers)
        else:
            with SegmentReader(directory, segment["base"]) as reader:
                _compare_segment(tally, where, segment, Answers(reader))
    return tally


def _compare_segment(tally: Tally, where: str, segment: dict[str, Any], answers: Answers) -> None:
    has_tail = bool(segment["index_zero_tail"] or segment["time_zero_tail"])
    indexes_differ = has_tail and not answers.is_release
    for kind, rows in _listed(segment, answers, indexes_differ):
        for number, (wanted, found) in enumerate(rows):
            tally.compare(kind, f"{number} of {where}", wanted, found)
    for kind, (width, ask) in _asked(answers, indexes_differ).items():
        for row in segment.get(kind) or ():
            wanted = row[width:]
            if kind == "fetch_upper_bound" and not answers.is_release:
                wanted = [_exact_upper_bound(segment["index"], *row)]
            found = _outcome(ask, row[:width])
            tally.compare(kind, f"{row[:width]} of {where}", wanted, found)
    if indexes_differ:
        return
    for kind, found in answers.state().items():
        if kind in segment:
            tally.compare("state", f"{kind} of {where}", segment[kind], found)


def _listed(
    segment: dict[str, Any], answers: Answers, indexes_differ: bool
) -> Iterator[tuple[str, Iterator[tuple[Any, Any]]]]:
    """Yield the lists to compare row by row; a row that only one side has equals nothing."""
    entries, times = answers.entries(), answers.times()
    wanted = segment["index"]
    wanted_times = segment["timeindex"]
    if answers.is_release:
        wanted = wanted + [[segment["base"], 0]] * segment["index_zero_tail"]
        wanted_times = wanted_times + [[0, segment["base"]]] * segment["time_zero_tail"]
    yield "index", _paired(wanted, entries)
    yield "timeindex", _paired(wanted_times, times)
    yield "batches", _paired(segment["batches"], answers.batches())
    if segment.get("aborted") is not None:
        yield "aborted", _paired(segment["aborted"], answers.aborted())


def _paired(wanted: list[Any], found: list[Any]) -> Iterator[tuple[Any, Any]]:
    for number in range(max(len(wanted), len(found))):
        yield (
            wanted[number] if number < len(wanted) else "no row",
            found[number] if number < len(found) else "no such row",
        )


def _asked(
    answers: Answers, indexes_differ: bool
) -> dict[str, tuple[int, Callable[..., list[Any]]]]:
    """Return each kind of question: how many columns ask it, and who answers the others."""
    asked: dict[str, tuple[int, Callable[..., list[Any]]]] = {
        "collect_aborted": (2, answers.collect_aborted),
    }
    if not indexes_differ:
        asked["offset_queries"] = (1, answers.offset_query)
        asked["time_queries"] = (1, answers.time_query)
        asked["fetch_upper_bound"] = (2, answers.fetch_upper_bound)
    return asked


def _exact_upper_bound(
    entries: list[list[int]], position: int, size: int, recorded: list[int] | None
) -> list[int] | None:
    """Return the recorded answer but for one case: segproof finds the first entry (OFFIDX-16)."""
    return entries[0] if entries and entries[0][1] == position + size else recorded


def _outcome(ask: Callable[..., list[Any]], question: list[int]) -> Any:
    try:
        return ask(*question)
    except SegproofError as error:
        return f"{type(error).__name__}: {error}"


def batch_columns(batch: Any) -> list[Any]:
    """Return a batch, of either package, in the columns of expected.json."""
    records = outcome_of(lambda: list(batch.records()))
    offsets = [] if isinstance(records, Raised) else [record.offset for record in records]
    names = ("size_bytes", "magic", "compression", "max_timestamp", "timestamp_type")
    more = ("producer_id", "producer_epoch", "base_sequence", "is_transactional", "is_control")
    return [
        field_of(batch, "base_offset"),
        field_of(batch, "last_offset"),
        batch.position,
        *(field_of(batch, name) for name in (*names, *more)),
        field_of(batch, "is_valid"),
        field_of(batch, "partition_leader_epoch"),
        len(offsets),
        offsets[0] if offsets else -1,
        offsets[-1] if offsets else -1,
    ]


def main(arguments: Sequence[str]) -> int:
    """Compare every scenario below the directories given; print the figures."""
    if not arguments:
        print(
            "usage: python -m segproof_harness.conformance.recorded_answers DIR...", file=sys.stderr
        )
        return 2
    everything: dict[str, Tally] = {}
    for scenario in (each for name in arguments for each in scenarios_below(Path(name))):
        newest: list[tuple[str, str | None]] = [("kafka-4.3.1", None), ("segproof", None)]
        for name, release in newest + [(f"kafka-{old}", old) for old in older_releases(scenario)]:
            model = None if name == "segproof" else release_named(name)
            one = compare_scenario(scenario, model, release)
            everything.setdefault(name, Tally()).add(one)
            print(f"{scenario.name:16} {name:12} {one.total:7} {one.mismatched:5} mismatched")
    for name, tally in everything.items():
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(tally.compared.items()))
        print(f"{name}: {tally.total} answers compared, {tally.mismatched} mismatched: {kinds}")
        for line in tally.mismatches:
            print(f"  {line}")
    return 1 if any(tally.mismatched for tally in everything.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
