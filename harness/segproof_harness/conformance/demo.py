# SPDX-License-Identifier: Apache-2.0
"""The main job on the real files that ship with the package.

Verify them; compare what `dump` and `lookup` say with recorded answers of the real classes, and of
stores of RocketMQ what their index answers; replay random histories on model and implementation,
and on the real classes of the newest releases, if their jars are there; then verify and replay
again on Spark. What is missing here (Java, an extra, jars) reads `not run` with the reason and the
remedy, never as a pass. Nothing is downloaded.
"""

import itertools
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from segproof_harness.files.shipped_directories import partition_of, scenarios, stores

if TYPE_CHECKING:
    from segproof_harness.releases.pinned import Release

PASSED, FAILED, NOT_RUN = "passed", "FAILED", "not run"
PROFILE = "kafka-4.3.1"
HISTORIES = 500
HISTORY_LENGTH = 50
SECONDS_A_STRUCTURE = 5.0
"""A slow machine replays fewer histories; the table says how many."""
ORACLE_HISTORIES = 100
"""Of each structure, on the real classes of a release."""
ORACLE_SECONDS = 6.0
"""How long those of one release may take, its start aside."""
ENTRY_POINTS = "segproof.demo"
"""Group of entry points: functions that take `say` and yield further rows."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    what: str
    verdict: str
    """`passed`, `FAILED` or `not run`."""
    figures: str
    """What was done, or why it was not run and what to do."""
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {**asdict(self), "seconds": round(self.seconds, 1)}


def run(say: Say) -> Iterator[Row]:
    """Do everything, one row after the other; `say` gets a line for each thing that is wrong."""
    yield timed("verify real files", lambda: _verify(say))
    yield timed("answers of Kafka 4.3.1", lambda: _compare(say, None))
    yield timed(f"the same, profile {PROFILE}", lambda: _compare(say, PROFILE))
    yield timed("verify RocketMQ stores", lambda: _verify_stores(say))
    yield timed("answers of RocketMQ", lambda: _compare_stores(say))
    for name in structure_ids():
        yield timed(f"replay {name}", partial(_replay, name, say))
    yield from _oracle(say)
    yield from _others(say)


def structure_ids() -> tuple[str, ...]:
    """Return the structures that are replayed."""
    from segproof_harness.structures.structure import STRUCTURE_IDS

    return STRUCTURE_IDS


BEGINS: ContextVar[Say] = ContextVar("BEGINS", default=lambda _: None)
"""What is told the name of each row when its work begins."""


def timed(what: str, do: Callable[[], tuple[bool, str]]) -> Row:
    """Return the row of what is done now: whether all was well, and its figures."""
    BEGINS.get()(what)
    started = time.monotonic()
    sound, figures = do()
    return Row(what, PASSED if sound else FAILED, figures, time.monotonic() - started)


def _verify(say: Say) -> tuple[bool, str]:
    return _verify_all(say, [partition_of(scenario) for scenario in scenarios()], "directories")


def _verify_stores(say: Say) -> tuple[bool, str]:
    return _verify_all(say, stores(), "stores")


def _verify_all(say: Say, places: list[Path], what: str) -> tuple[bool, str]:
    from segproof.verification import verify

    notes = wrong = size = 0
    for place in places:
        size += sum(path.stat().st_size for path in place.rglob("*") if path.is_file())
        for finding in verify(place, deep=True):
            if finding.is_defect:
                wrong += 1
                say(str(finding))
            else:
                notes += 1
    figures = f"{len(places)} {what}, {size / 1e6:.1f} MB, every record: {wrong} findings"
    return wrong == 0, f"{figures}, {notes} notes"


def _compare(say: Say, profile_name: str | None) -> tuple[bool, str]:
    from segproof_harness.conformance.recorded_answers import Tally, compare_scenario
    from segproof_model.releases import release_named

    release = None if profile_name is None else release_named(profile_name)
    total = Tally()
    for scenario in scenarios():
        total.add(compare_scenario(scenario, release))
    for line in total.mismatches:
        say(line)
    lookups = total.compared["offset_queries"] + total.compared["time_queries"]
    return total.mismatched == 0, (
        f"{total.total} answers, {lookups} of them lookups: {total.mismatched} differ"
    )


def _compare_stores(say: Say) -> tuple[bool, str]:
    from segproof_harness.conformance.recorded_store_answers import compare_store, load_scenario

    total = differ = 0
    for store in stores():
        tally = compare_store(load_scenario(store.parent), None)
        total += tally.total
        differ += tally.mismatched
        for line in tally.mismatches:
            say(f"{store.parent.name}: {line}")
    releases = ", ".join(sorted({store.parent.name.rpartition("-")[2] for store in stores()}))
    return differ == 0, f"{total} answers of {releases}: {differ} differ"


def _replay(structure_id: str, say: Say) -> tuple[bool, str]:
    from segproof_harness.histories.replay import replay_seeds

    until = time.monotonic() + SECONDS_A_STRUCTURE
    seeds = _seeds(HISTORIES, until)
    result = replay_seeds(structure_id, "segproof", seeds, HISTORY_LENGTH)
    for finding in result.findings:
        say(f"{finding.message}; {finding.reproduce}")
    counters = result.counters
    return not result.findings, (
        f"{counters.histories} histories, {counters.operations} operations, "
        f"{counters.answers_compared} answers: {len(result.findings)} differ"
    )


def _seeds(count: int, until: float) -> Iterator[int]:
    """Yield so many seeds, fewer where time is up before."""
    return itertools.takewhile(lambda seed: time.monotonic() < until, range(count))


def _oracle(say: Say) -> Iterator[Row]:
    """Yield a row for the newest release of each system, or one that says why it was not run."""
    from segproof_harness.releases.pinned import NEWEST
    from segproof_harness.releases.readiness import readiness

    for release in NEWEST:
        ready = readiness(release)
        if ready.is_ready:
            yield timed(f"oracle {release.name}", partial(_replay_oracle, release, say))
        else:
            yield Row(f"oracle {release.name}", NOT_RUN, f"oracle: not run: {ready.why}", 0.0)


def _replay_oracle(release: "Release", say: Say) -> tuple[bool, str]:
    """Replay on the model and on the real classes, every structure that they serve."""
    from segproof_harness.conformance.sample_check import structures_served
    from segproof_harness.histories.replay import Result, replay_seeds
    from segproof_harness.releases.process import OracleError, process_for

    served, total = structures_served(release), Result()
    try:
        process_for(release.name).start()
        for structure_id in served:
            until = time.monotonic() + ORACLE_SECONDS / len(served)
            seeds = _seeds(ORACLE_HISTORIES, until)
            subjects = ("model", release.name)
            total.add(replay_seeds(structure_id, release.name, seeds, HISTORY_LENGTH, subjects))
    except OracleError as error:
        say(str(error))
        return False, "the release can't be asked"
    finally:
        process_for(release.name).end()
    for finding in total.findings:
        say(f"{finding.message}; {finding.reproduce}")
    counters = total.counters
    return not total.findings, (
        f"{counters.histories} histories of {len(served)} structures, {counters.operations} "
        f"operations, {counters.answers_compared} answers: {len(total.findings)} differ"
    )


def _others(say: Say) -> Iterator[Row]:
    """Yield the rows of the packages that stand on top of this one, or say that there are none."""
    entries = metadata.entry_points(group=ENTRY_POINTS)
    if not entries:
        words = "no installed package has an entry point of the group " + ENTRY_POINTS
        yield Row("verify and replay on Spark", NOT_RUN, words, 0.0)
    for entry in entries:
        rows: Callable[[Say], Iterator[Row]] = entry.load()
        yield from rows(say)
