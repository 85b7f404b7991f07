# SPDX-License-Identifier: Apache-2.0
"""Rows about the oracle: how many histories a second the real classes of a release take.

Histories are drawn beforehand; what is timed is the child that runs them, the way there and back,
and every answer and look as the comparison takes them. The model does not run meanwhile: drawing a
history and comparing it with the model takes several times as long.
"""

import time

from benchmarks.contestants import Passes
from benchmarks.measuring import Bench, rate, say, wait_until_quiet
from benchmarks.table import Goal, NotRun, Row, Section
from segproof_harness.histories.compare import IMAGE_EVERY
from segproof_harness.histories.traces import Trace
from segproof_harness.histories.workloads import make_history
from segproof_harness.releases.pinned import release_named
from segproof_harness.releases.process import OracleError, process_for
from segproof_harness.releases.release_subject import OracleSubject
from segproof_harness.structures.structure import structure_named

LENGTH = 100
GOALS = {
    "offset-index": 300,
    "time-index": 300,
    "transaction-index": 300,
    "index-file": 300,
    "log-segment": 100,
    "partition-log": None,
}
"""Goals in histories a second, by structure; whole logs have no goal."""
RELEASES = {"kafka": "kafka-4.3.1", "rocketmq": "rocketmq-5.5.1"}


def sections(bench: Bench) -> list[Section]:
    """Measure the newest release of each system; without its jars the rows say so."""
    section = Section(
        "Oracle: histories through the real classes",
        f"Histories of {LENGTH} operations run by the newest release in its JVM, drawn beforehand: "
        "what is timed is the child process, with every answer taken up by the parent, and "
        f"accessors and files at each {IMAGE_EVERY}th operation. Parent and child take turns, so "
        "one core is busy. Drawing the histories and running the model beside them is left out; it "
        "takes several times as long.",
        "nothing",
    )
    for structure in GOALS:
        section.rows.append(_row(bench, structure))
    return [section]


def _row(bench: Bench, structure: str) -> Row:
    release = RELEASES[structure_named(structure).system]
    unit, wanted = "histories/s", GOALS[structure]
    goal = None if wanted is None else Goal(wanted, is_ratio=False)
    say(f"oracle {structure}")
    try:
        passes, count = _passes(bench, structure, release)
    except (ValueError, OracleError) as reason:
        return Row(f"{structure}, {release}", unit, None, NotRun(str(reason)), goal=goal)
    return Row(f"{structure}, {release}", unit, None, rate(passes, count, 1.0), goal=goal)


def _passes(bench: Bench, structure: str, release: str) -> tuple[Passes, int]:
    """Return the seconds of each pass, and how many histories each has."""
    subject = OracleSubject(structure_named(structure), release_named(release))
    count = 20 if bench.quick else 200
    weights = dict.fromkeys(subject.absent.left_out, 0)
    made = [
        make_history(structure, release, seed, LENGTH, weights, releases=(release,))
        for seed in range(count)
    ]
    process = process_for(release)
    wait_until_quiet()
    passes = Passes()
    for number in range(1 + (1 if bench.quick else 3)):
        begin = time.perf_counter()
        for one in made:
            _play(subject, one)
        if number:  # the first one loads classes
            passes.seconds.append(time.perf_counter() - begin)
    process.end()
    return passes, count


def _play(subject: OracleSubject, trace: Trace) -> None:
    """Let the release run a history, and take what it answers step by step."""
    subject.prepare(trace.setup, trace.operations, IMAGE_EVERY)
    subject.start(trace.setup)
    for operation in trace.operations:
        subject.apply(operation)
