# SPDX-License-Identifier: Apache-2.0
"""Hold the plain model against the older one: the same histories, every answer, byte and counter.

    python -m segproof_harness.plain.compare STRUCTURE [--seeds 200] [--first 0] [--length 60]
        [--release NAME ...] [--show 1] [--traces FOLDER] [--alone]

Histories are drawn by the harness, from where the older model stands.
"""

import argparse
import sys
import traceback
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from segproof_harness.operations import Operation
from segproof_harness.outcomes import Outcome
from segproof_harness.plain import PlainSubject
from segproof_harness.structures import Setup, structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_harness.traces import Trace, TraceError, read_trace
from segproof_harness.workloads import choose_for, draw_operation
from segproof_model.language.behaviours import Release
from segproof_model.laws.kafka.broker import (  # noqa: F401
    learned_by_recovery,
    log_loader,
    log_segments,
    partition_log,
)
from segproof_model.laws.kafka.format import (  # noqa: F401
    abstract_index,
    lazy_index,
    log_segment,
    offset_index,
    record_batch,
    record_file,
    segment_files,
    segment_names,
    segment_recovery,
    time_index,
    transaction_index,
)
from segproof_model.laws.register import broken_state_laws, broken_step_laws
from segproof_model.laws.rocketmq.broker import (  # noqa: F401
    index_building,
    index_service,
    message_store,
    store_checkpoint,
)
from segproof_model.laws.rocketmq.format import (  # noqa: F401
    consume_queue,
    index_chains,
    index_file,
    key_hash,
    message,
    reference_resource,
)
from segproof_model.profiles import Profile, profile_named
from segproof_model.releases import RELEASES


class Difference(NamedTuple):
    """Where the two models part."""

    release: str
    seed: object
    step: int
    operation: Operation
    what: str
    expected: Any
    actual: Any


class Run:
    """Histories on both models side by side."""

    def __init__(self, structure_id: str, release: Release, profile: Profile | None = None) -> None:
        self.structure = structure_named(structure_id)
        self.release = release
        self.profile = profile or profile_named(release.name)
        self.operations: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.bytes = 0
        self.seconds = {"old": 0.0, "plain": 0.0}
        self.found: Difference | None = None
        self.judges = False
        """Whether the laws are asked, too."""
        self.broken: list[str] = []

    def judged(self) -> list[str]:
        """Return the laws that the last step, or what it left, breaks."""
        steps, state = self.plain.transitions, self.plain.state
        found = [] if state is None else broken_state_laws(state)
        return found + [
            law
            for one in steps
            for law in (*broken_step_laws(one), *self.plain.plain.also_broken(one))
        ]

    def history(self, seed: int, length: int) -> Difference | None:
        """Run one random history up to the first difference."""
        choose = choose_for(self.structure.structure_id, seed, (self.profile,))
        old = self.begun(seed, self.structure.draw_setup(choose))
        for _ in range(length):
            if self.found is not None:
                break
            self.do(draw_operation(choose, old))
        return self.found

    def trace(self, trace: Trace, name: str) -> Difference | None:
        """Run a history that was kept up to the first difference."""
        self.begun(name, trace.setup)
        for operation in trace.operations:
            if self.found is not None:
                break
            self.do(operation)
        return self.found

    def begun(self, seed: object, setup: Setup) -> ModelSubject:
        """Open both models; return the older, from where it stands operations are drawn."""
        self.seed, self.step, self.found = seed, 0, None
        self.old = ModelSubject(self.structure, self.profile)
        self.plain = PlainSubject(self.structure, self.release)
        self.compare(
            setup.to_operation(),
            self.timed(partial(self.old.start, setup), partial(self.plain.start, setup)),
        )
        return self.old

    def do(self, operation: Operation) -> None:
        """Do the same on both models, and see whether the plain state before stays as it was."""
        self.step += 1
        if not self.plain.plain.has(self.release, operation):
            return
        before = self.plain.state
        kept = None if self.step % 8 or before is None else self.held(before)
        answers = self.timed(
            partial(self.old.apply, operation), partial(self.plain.apply, operation)
        )
        self.compare(operation, answers)
        if kept is not None and self.held(before) != kept:
            self.differ(operation, "state before", "as it was", "changed")

    def held(self, state: Any) -> Any:
        """Return what a plain state holds, the files too."""
        return self.plain.plain.seen(state), dict(self.plain.plain.files_of(state).images)

    def differ(self, operation: Operation, what: str, expected: Any, actual: Any) -> None:
        """Keep a difference of this step."""
        name = self.release.name
        self.found = Difference(name, self.seed, self.step, operation, what, expected, actual)

    def timed(self, old: Any, plain: Any) -> tuple[Outcome, Outcome]:
        """Let both do it."""
        begun = process_time()
        expected = old()
        middle = process_time()
        try:
            actual = plain()
            if self.judges:
                self.broken = self.judged()
        except Exception:
            actual = Outcome(error="".join(traceback.format_exc()[-1500:]))
        self.seconds["old"] += middle - begun
        self.seconds["plain"] += process_time() - middle
        return expected, actual

    def compare(self, operation: Operation, answers: tuple[Outcome, Outcome]) -> None:
        """Compare answers, files, accessors, and what the states hold beside them."""
        self.operations[operation.name] += 1
        if answers[0].error is not None:
            self.errors[answers[0].error] += 1
        images = self.old.image(), self.plain.image()
        self.bytes += sum(map(len, images[0].values()))
        pairs = [("answer", *answers), ("files", *images)]
        if answers[0] == answers[1]:
            if (self.old.state is None) != (self.plain.state is None):
                pairs.append(("is open", self.old.state is None, self.plain.state is None))
            elif self.old.state is not None:
                how = self.plain.plain
                held = how.seen_of_old(self.old.state), how.seen(self.plain.state)
                pairs += [("accessors", self.old.observe(), self.plain.observe()), ("state", *held)]
        pairs.append(("laws broken", [], self.broken))
        for what, expected, actual in pairs:
            if expected != actual:
                self.differ(operation, what, expected, actual)
                return


def traces_in(folder: Path | None, structure_id: str) -> Iterator[tuple[str, Trace]]:
    """Yield the histories of a structure that were kept in a folder, or below it."""
    for path in sorted(folder.rglob("*.jsonl")) if folder is not None else []:
        try:
            trace = read_trace(path)
        except (TraceError, UnicodeDecodeError):
            continue  # lines of JSON, but no history
        if trace.structure_id == structure_id:
            yield path.name, trace


def short(value: Any, size: int = 1200) -> str:
    """Return a value in words, cut."""
    text = value.error if isinstance(value, Outcome) and value.error else repr(value)
    return text if len(text) < size else text[: size - 200] + " ... " + text[-200:]


def shown(found: Difference) -> str:
    """Return a difference in lines."""
    expected, actual = found.expected, found.actual
    if isinstance(expected, dict) and isinstance(actual, dict):
        names = [n for n in {**expected, **actual} if expected.get(n) != actual.get(n)]
        expected = {name: expected.get(name) for name in names}
        actual = {name: actual.get(name) for name in names}
    return (
        f"  seed {found.seed} step {found.step} {found.operation!r:.300}\n    {found.what}:"
        f"\n    old   {short(expected)}\n    plain {short(actual)}"
    )


def main() -> None:
    """Compare, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("structure")
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=60)
    parser.add_argument("--release", nargs="*", default=None)
    parser.add_argument("--show", type=int, default=1, help="differences shown of a release")
    parser.add_argument("--traces", type=Path, help="a folder with histories that were kept")
    parser.add_argument("--laws", action="store_true", help="ask the laws, too")
    given = parser.parse_args()
    known = structure_named(given.structure).profile_names
    total, bad = 0, 0
    for name in given.release or known:
        run = Run(given.structure, RELEASES[name])
        run.judges = given.laws
        found: list[Difference] = []
        for kept, trace in traces_in(given.traces, given.structure):
            one = run.trace(trace, kept)
            found += [one] if one is not None else []
        for seed in range(given.first, given.first + given.seeds):
            one = run.history(seed, given.length)
            found += [one] if one is not None else []
        count = sum(run.operations.values())
        total, bad = total + count, bad + len(found)
        speed = {who: round(count / (one or 1)) for who, one in run.seconds.items()}
        print(
            f"{name}: {count} operations, {run.bytes} bytes, {sum(run.errors.values())} errors of"
            f" {len(run.errors)} kinds, {len(found)} differences; per second {speed}",
            flush=True,
        )
        for one in found[: given.show]:
            print(shown(one))
    print(f"{given.structure}: {total} operations, {bad} differences")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
