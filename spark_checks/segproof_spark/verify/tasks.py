# SPDX-License-Identifier: Apache-2.0
"""The tasks of one verification: check units, check logs that were cut, join partitions.

They are three functions from rows to rows; the second and third are needed only after a cut. All
three run the verifier's own checks, so what changes meanwhile is looked at again as it does.
"""

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from itertools import chain, groupby
from operator import attrgetter
from typing import Any
from urllib.parse import urlsplit

from segproof.commands import quoted, words_in
from segproof.files import Files
from segproof.findings import Finding
from segproof.inventory.partitions import Partition
from segproof.inventory.segment_listing import sized
from segproof.inventory.segments import FileState, Segment, state_of
from segproof.kafka.batch_table import CheckedBatches
from segproof.verifying.partition_verification import PartitionCheck
from segproof.verifying.path_verification import check
from segproof.verifying.segment_carry import carried_from_bytes, carried_to_bytes
from segproof.verifying.segment_checks import Scanning
from segproof.verifying.segment_verification import SteadyCheck
from segproof.verifying.split_logs import (
    LogState,
    Piece,
    batches_from_bytes,
    batches_to_bytes,
    log_state,
    piece_of,
    scan_in_pieces,
)
from segproof.wording.reporting import Reporter, Wanted
from segproof_harness.reports.verdicts import split_commands
from segproof_spark.arrow_files import is_url
from segproof_spark.verify.checkpoint import Checkpoint, Mark
from segproof_spark.verify.plan import (
    Known,
    PieceUnit,
    SegmentUnit,
    Unit,
    WholeUnit,
    open_place,
    partition_of,
    units_of,
)
from segproof_spark.verify.rows import (
    CARRY,
    LOG_BATCHES,
    LOG_END,
    LOG_STATE,
    Row,
    chunked,
    finding,
    task_row,
)

STRUCTURE = "partition-log"


class Outcome(Enum):
    """How a unit was done."""

    CHECKED = "checked"
    RECALLED = "recalled"
    UNKEPT = "checked, and could not be written to the checkpoint"


class UnfitPieceError(Exception):
    """A piece of a log could not be read, or is of another state of the file."""


@dataclass(frozen=True, slots=True)
class Verifying:
    """The input of all tasks of a verification."""

    wanted: Wanted
    partitions: tuple[bytes, ...]
    """Those of the plan."""
    checkpoint: Checkpoint | None = None

    # --- units

    def check_units(self, tasks: Iterable[bytes]) -> Iterator[Row]:
        """Yield the rows of all units of some tasks."""
        for task in tasks:
            counts: Counter[Outcome] = Counter()
            size = 0
            for unit in units_of(task):
                outcome = yield from self._unit(unit)
                counts[outcome] += 1
                size += 0 if outcome is Outcome.RECALLED else _bytes_of(unit)
            yield _told(size, counts)

    def _unit(self, unit: Unit) -> Generator[Row, None, Outcome]:
        """Yield the rows of one unit; return how it was done."""
        if isinstance(unit, Known):
            yield from self._findings(unit.place, (one.to_json() for one in unit.findings))
            return Outcome.CHECKED
        if isinstance(unit, PieceUnit):
            return (yield from self._piece(unit))
        if isinstance(unit, SegmentUnit):
            return (yield from self._segment(unit.place, unit.partition, unit.number, unit.segment))
        return (yield from self._whole(unit))

    def _whole(self, unit: WholeUnit) -> Generator[Row, None, Outcome]:
        files, _ = open_place(unit.place)

        def found() -> Iterator[dict[str, Any]]:
            try:
                for each in check([unit.work], self.wanted, files):
                    yield each.to_json()
            except OSError as error:  # the place itself has gone
                reporter = Reporter(self.wanted)
                reporter.at(unit.work.directory, STRUCTURE).unreadable(error)
                yield from (each.to_json() for each in reporter.finish())

        if self.checkpoint is None:
            yield from self._findings(unit.place, found())
            return Outcome.CHECKED
        marked = self.checkpoint.mark(unit.work, files)
        kept = self.checkpoint.recall(marked)
        outcome = Outcome.RECALLED
        told = list(found()) if kept is None else kept.findings
        if kept is None:
            outcome = self._keep(marked, told, b"", files)
        yield from self._findings(unit.place, told)
        return outcome

    def _keep(
        self, mark: Mark | None, told: list[dict[str, Any]], carry: bytes, files: Files
    ) -> Outcome:
        """Write the findings to the checkpoint, if there is one; return the outcome."""
        if self.checkpoint is not None:
            try:
                self.checkpoint.keep(mark, told, carry, files)
            except OSError:
                return Outcome.UNKEPT
        return Outcome.CHECKED

    def _segment(
        self,
        place: str,
        partition: int,
        number: int,
        segment: Segment,
        pieces: Callable[[LogState | None], Iterable[Piece]] | None = None,
    ) -> Generator[Row, None, Outcome]:
        """Check a segment, most of whose log may have been read before."""
        files, _ = open_place(place)
        marked = kept = None
        if self.checkpoint is not None:
            marked = self.checkpoint.mark(segment, files)
            kept = self.checkpoint.recall(marked)
        if kept is not None:
            outcome, told, carried = Outcome.RECALLED, kept.findings, kept.carry
        else:
            segment = sized(segment, files)
            scan = None
            if pieces is not None:
                scan = scan_in_pieces(pieces(log_state(segment, files)))
            done = self._steady(segment, place, scan)
            told = [one.to_json() for one in done.findings]
            carried = carried_to_bytes(done.carry, segment.seen)
            outcome = self._keep(marked, told, carried, files)
        yield from self._findings(place, told)
        yield from chunked(partition, number, CARRY, carried)
        return outcome

    def _steady(self, segment: Segment, place: str, scan: Scanning | None) -> SteadyCheck:
        files, _ = open_place(place)
        try:
            steady = SteadyCheck(segment, self.wanted, files, scan)
            for _ in steady.run():
                pass
        except UnfitPieceError:
            return self._steady(segment, place, None)
        return steady

    def _piece(self, unit: PieceUnit) -> Generator[Row, None, Outcome]:
        """Yield what a piece of a log has; without a last row it could not be read."""
        files, _ = open_place(unit.place)
        key = unit.partition, unit.number, unit.start
        number = 1
        state = log_state(unit.segment, files)
        yield Row(*key, 0, LOG_STATE, json.dumps(state).encode())
        if self.checkpoint is not None and state is not None:
            marked = self.checkpoint.mark(unit.segment, files)
            if self.checkpoint.recall(marked) is not None:
                return Outcome.RECALLED
        segment, wanted = unit.segment, self.wanted
        try:
            for part in piece_of(segment, unit.start, unit.end, wanted, files):
                yield Row(*key, number, LOG_BATCHES, batches_to_bytes(part))
                number += 1
        except OSError:
            return Outcome.CHECKED  # check_logs reads it all, and says so
        yield Row(*key, number, LOG_END)
        return Outcome.CHECKED

    def _findings(self, place: str, told: Iterable[dict[str, Any]]) -> Iterator[Row]:
        for each in told:
            yield finding(with_command(each, place))

    # --- logs

    def check_logs(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Check each log whose pieces are among the rows; let all other rows pass.

        The rows come by partition, segment, piece and number.
        """
        counts: Counter[Outcome] = Counter()
        for (partition, number), group in groupby(rows, attrgetter("partition", "segment")):
            first, all_rows = _looked_at(group)
            if first.kind != LOG_STATE:
                yield from all_rows
                continue
            place, whole = partition_of(self.partitions[partition])
            outcome = yield from self._segment(
                place, partition, number, whole.segments[number], _pieces_from(all_rows)
            )
            counts[outcome] += 1
        yield _told(0, counts)

    # --- partitions

    def join_partitions(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Join the segments of each partition; let the findings pass.

        The rows come by partition, segment and number.
        """
        for key, group in groupby(rows, attrgetter("partition")):
            if key is None:
                yield from group
                continue
            place, partition = partition_of(self.partitions[key])
            found = self._joined(place, partition, group)
            yield from self._findings(place, (one.to_json() for one in found))
        yield _told(0, Counter())

    def _joined(self, place: str, partition: Partition, rows: Iterable[Row]) -> list[Finding]:
        files, _ = open_place(place)
        now = tuple(state_of(files, partition.path(name)) for name in partition.others)
        partition = replace(partition, others_seen=as_seen_here(partition.others_seen, now))
        joined = PartitionCheck(partition, self.wanted, files)
        count = 0
        for number, group in groupby(rows, attrgetter("segment")):
            if number != count:
                break
            carry, seen = carried_from_bytes(b"".join(row.payload or b"" for row in group))
            segment = partition.segments[number]
            seen = as_seen_here(seen, segment.look(files))
            joined.add(replace(segment, seen=seen), carry)
            count += 1
        if count != len(partition.segments):
            raise RuntimeError(f"segment {count} of {partition.directory} was not checked")
        return joined.finish()


def _told(bytes_read: int, counts: Counter[Outcome]) -> Row:
    """Return the row of a task that is at its end."""
    return task_row(bytes_read, counts.total(), counts[Outcome.RECALLED], counts[Outcome.UNKEPT])


def _bytes_of(unit: Unit) -> int:
    if isinstance(unit, PieceUnit):
        return unit.end - unit.start
    if isinstance(unit, SegmentUnit):
        return unit.segment.size_bytes
    return unit.work.size_bytes if isinstance(unit, WholeUnit) else 0


def _looked_at(rows: Iterator[Row]) -> tuple[Row, Iterator[Row]]:
    """Return the first of some rows, and all of them."""
    first = next(rows)
    return first, chain((first,), rows)


def _pieces_from(rows: Iterator[Row]) -> Callable[[LogState | None], Iterator[Piece]]:
    """Return a function that yields the pieces of a log in a state, from its rows."""

    def pieces(now: LogState | None) -> Iterator[Piece]:
        for start, group in groupby(rows, attrgetter("piece")):
            told, parts = _looked_at(group)
            if (
                now is None
                or told.kind != LOG_STATE
                or json.loads(told.payload or b"") != list(now)
            ):
                raise UnfitPieceError
            yield start, _parts(parts)

    return pieces


def _parts(rows: Iterable[Row]) -> Iterator[CheckedBatches]:
    for row in rows:
        if row.kind == LOG_END:
            return
        if row.kind == LOG_BATCHES:
            yield batches_from_bytes(row.payload or b"")
    raise UnfitPieceError


def as_seen_here(seen: tuple[FileState, ...], now: tuple[FileState, ...]) -> tuple[FileState, ...]:
    """Return what another machine has seen as this one sees it: devices have other numbers."""
    same = [(one.identity[1], one.size_bytes) for one in seen] == [
        (one.identity[1], one.size_bytes) for one in now
    ]
    return now if same else seen


def with_command(told: dict[str, Any], place: str) -> dict[str, Any]:
    """Return a finding whose command works where the file is: behind a URL only Spark's verb.

    A command in its hint loses its path: `segproof rebuild` needs a copy of the files.
    """
    if not is_url(place):
        return told
    words = words_in(told["reproduce"])
    query = urlsplit(place).query
    words[:3] = ["segproof", "spark", "verify", words[2] + (quoted(f"?{query}") if query else "")]
    hint, _ = split_commands(told["hint"])
    return {**told, "hint": hint, "reproduce": " ".join(words)}
