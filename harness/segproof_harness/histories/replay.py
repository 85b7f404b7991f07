# SPDX-License-Identifier: Apache-2.0
"""Replay histories, by seed or from a trace, and report what diverged."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from segproof.commands import command_line, quoted
from segproof.findings import Finding
from segproof_harness.histories.compare import (
    HISTORY_SECONDS,
    IMAGE_EVERY,
    Comparison,
    Counters,
    Divergence,
)
from segproof_harness.histories.release_differences import Expected
from segproof_harness.histories.shrink import shrink
from segproof_harness.histories.subject_names import subject_named
from segproof_harness.histories.time_limit import time_limit
from segproof_harness.histories.traces import Trace, read_trace
from segproof_harness.histories.workloads import (
    Weights,
    choose_for,
    draw_operation,
    make_history,
    written_weights,
)
from segproof_harness.structures.operations import Operation
from segproof_harness.structures.outcomes import Outcome
from segproof_harness.structures.structure import structure_named

LENGTH = 50
"""Operations of a history, by default."""
PROFILE = "segproof"
SUBJECTS = ("model", "impl")


Watch = Callable[[int, Operation, Mapping[str, Outcome]], None]


@dataclass(slots=True)
class Result:
    """What a replay found, and how much it compared."""

    findings: list[Finding] = field(default_factory=list)
    counters: Counters = field(default_factory=Counters)
    expected: Expected = field(default_factory=Expected)
    """Where subjects differ because their profiles do."""

    def add(self, other: "Result") -> None:
        """Add another run."""
        self.findings += other.findings
        self.counters.add(other.counters)
        self.expected.merge(other.expected)


def seed_command(
    structure_id: str,
    profile_name: str,
    seed: int,
    length: int,
    subjects: Sequence[str],
    weights: Weights | None = None,
) -> str:
    """Return the command that replays one seed."""
    chosen = f"--structure {structure_id} --profile {profile_name} --seed {seed} --length {length}"
    drawn = f" --weights {written_weights(weights)}" if weights else ""
    named = quoted(",".join(subjects))
    return f"segproof replay {chosen} --count 1{drawn} --subjects {named}"


def trace_command(path: str | Path, subjects: Sequence[str]) -> str:
    """Return the command that replays a trace."""
    return command_line("segproof", "replay", Path(path), "--subjects", ",".join(subjects))


def comparison(
    structure_id: str,
    profile_name: str,
    subjects: Sequence[str],
    *,
    image_every: int = IMAGE_EVERY,
) -> Comparison:
    """Return the subjects side by side. Raises ValueError for a name that is none."""
    structure = structure_named(structure_id)
    named = [subject_named(name, structure) for name in subjects]
    return Comparison(structure, profile_name, named, image_every=image_every)


def run_seed(
    comparing: Comparison, seed: int, length: int, weights: Weights | None = None
) -> Divergence | None:
    """Draw the history of a seed and run it, at once where all subjects take single operations."""
    if comparing.release_names:
        counted = comparing.counters.left_out
        return comparing.run(_made_for(comparing, seed, length, weights, counted))
    choose = choose_for(comparing.structure.structure_id, seed, (comparing.guide.release,))
    with time_limit(HISTORY_SECONDS):
        found = comparing.start(comparing.structure.draw_setup(choose))
        for _ in range(length):
            if found is not None:
                return found
            found = comparing.apply(draw_operation(choose, comparing.guide, weights))
        return found or comparing.finish()


def _made_for(
    comparing: Comparison,
    seed: int,
    length: int,
    weights: Weights | None,
    left_out: Counter[str] | None = None,
) -> Trace:
    """Return the history of a seed; for a release, without what it is not asked, which is counted
    in `left_out`."""
    return make_history(
        comparing.structure.structure_id,
        comparing.guide.profile_name,
        seed,
        length,
        weights,
        releases=comparing.release_names,
        left_out=left_out,
    )


def replay_seed(
    structure_id: str,
    profile_name: str,
    seed: int,
    length: int = LENGTH,
    subjects: Sequence[str] = SUBJECTS,
    weights: Weights | None = None,
) -> Result:
    """Run the history of one seed on the subjects."""
    return replay_seeds(structure_id, profile_name, (seed,), length, subjects, weights=weights)


def replay_seeds(
    structure_id: str,
    profile_name: str,
    seeds: Iterable[int],
    length: int = LENGTH,
    subjects: Sequence[str] = SUBJECTS,
    *,
    weights: Weights | None = None,
    findings_max: int = 10,
    traces: str | Path | None = None,
    progress: Callable[[int], None] = lambda seed: None,
    told: Callable[[Finding], None] = lambda finding: None,
) -> Result:
    """Run the histories of the seeds; end early after `findings_max` findings.

    A history that diverges is run again, and all is compared after each operation: so the finding
    is of the first step that differs. With a directory `traces` it is shrunk and saved there, and
    the finding names the command that replays it. `progress` is called with each seed that is
    done, `told` with each finding.
    """
    comparing = comparison(structure_id, profile_name, subjects)
    drawn = {**(weights or {}), **dict.fromkeys(comparing.left_out, 0)}
    result = Result(counters=comparing.counters)
    for seed in seeds:
        found = run_seed(comparing, seed, length, drawn)
        if found is not None:
            command = seed_command(structure_id, profile_name, seed, length, subjects, weights)
            trace = _made_for(comparing, seed, length, drawn)
            exact = comparison(structure_id, profile_name, subjects, image_every=1)
            if traces is None:
                finding = (exact.run(trace) or found).to_finding(structure_id, command)
            else:
                finding = _shrunk(trace, exact, subjects, Path(traces), command)
            result.findings.append(finding)
            told(finding)
        if comparing.parting is not None:
            made = partial(_made_for, comparing, seed, length, drawn)
            result.expected.add(comparing.parting, made)
        progress(seed)
        if len(result.findings) >= findings_max:
            break
    return result


def _shrunk(
    trace: Trace, comparing: Comparison, subjects: Sequence[str], folder: Path, seed_line: str
) -> Finding:
    """Shrink and save a history that diverges; return the finding of what is left."""
    small = shrink(trace, comparing.run)
    found = comparing.run(small)
    if found is None:
        raise RuntimeError(f"a divergence did not come again: {seed_line}")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{trace.structure_id}-{trace.profile_name}-{trace.seed}.jsonl"
    replace(small, seed=None).write(path)
    return found.to_finding(trace.structure_id, trace_command(path, subjects))


def replay_trace(
    path: str | Path, subjects: Sequence[str] = SUBJECTS, *, watch: Watch | None = None
) -> Result:
    """Run the history of a trace file on the subjects, and compare every byte at each step.

    `watch` is called with each step, its operation and everybody's answer, by name.
    Raises: TraceError for a file that is no trace, OSError for one that can't be read.
    """
    trace = read_trace(path)
    comparing = comparison(trace.structure_id, trace.profile_name, subjects, image_every=1)
    comparing.watch = watch
    found = comparing.run(trace)
    result = Result(counters=comparing.counters)
    if comparing.parting is not None:
        result.expected.add(comparing.parting, lambda: trace)
    if found is not None:
        result.findings.append(found.to_finding(trace.structure_id, trace_command(path, subjects)))
    return result
