# SPDX-License-Identifier: Apache-2.0
"""Histories that tell releases apart: one for each behaviour that a release was the last to have.

A history is searched on which the model of that release, and the same without this one behaviour,
answer differently; it is shrunk, and run on the real classes of that release and of the next.

Layout of the record: JSON lines, one for each behaviour; see `Distinction`.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from segproof_harness.histories.compare import Comparison, Divergence
from segproof_harness.histories.shrink import shrink
from segproof_harness.histories.traces import Trace
from segproof_harness.histories.workloads import make_history
from segproof_harness.releases.child_messages import reason_without
from segproof_harness.releases.pinned import release_named
from segproof_harness.releases.release_subject import OracleSubject
from segproof_harness.structures.structure import STRUCTURE_IDS, Structure, structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_model.language.behaviours import Behaviour, Release
from segproof_model.language.outcomes import ErrorKind
from segproof_model.releases import BEHAVIOURS, LINES, RELEASES

SEEDS = 3000
LENGTH = 100
STRUCTURES = {
    "ABSIDX": ("offset-index", "time-index"),
    "OFFIDX": ("offset-index",),
    "TIMEIDX": ("time-index",),
    "TXNIDX": ("transaction-index",),
    "BATCH": ("record-batch", "record-file"),
    "SCAN": ("record-file", "record-batch"),
    "SEG": ("log-segment",),
    "FILE": ("log-segment",),
    "PROD": ("partition-log", "log-segment"),
    "LOG": ("partition-log",),
    "LOAD": ("partition-log",),
    "EPOCH": ("partition-log", "log-segment"),
    "CKPT": ("partition-log",),
    "LAZY": ("log-segment", "partition-log"),
    "RMQIDX": ("index-file", "index-service"),
    "RMQSVC": ("index-service", "message-store"),
    "RMQCKPT": ("store-checkpoint",),
    "RMQLOG": ("commit-log", "message-store"),
    "RMQCQ": ("consume-queue",),
}
"""Where histories that bend a law are looked for, by the law's area; other areas: everywhere."""


@dataclass(frozen=True, slots=True)
class Step:
    """A behaviour, the newest release that has it, and the next one, which has it not."""

    behaviour: type[Behaviour]
    older: Release
    newer: Release

    @property
    def name(self) -> str:
        """The behaviour's name."""
        return self.behaviour.__name__

    @property
    def system(self) -> str:
        """`kafka` or `rocketmq`."""
        return self.older.name.partition("-")[0]

    @property
    def file_name(self) -> str:
        """What its trace is called."""
        return f"{self.name}.jsonl"


@dataclass(frozen=True, slots=True)
class Distinction:
    """What was found for one behaviour."""

    behaviour: str
    older: str
    """The newest release that has it."""
    newer: str
    structure: str | None = None
    """None where no history was found."""
    seeds_tried: int = 0
    expected: str = ""
    """What the older release answers at the last step, and what it would answer otherwise."""
    otherwise: str = ""
    confirmed: tuple[str, ...] = ()
    """The releases whose real classes answered the history as their model."""
    refuted: tuple[str, ...] = ()


def steps() -> Iterator[Step]:
    """Yield each behaviour of releases, in their order."""
    for behaviour in BEHAVIOURS:
        if behaviour.releases is not None:
            system = behaviour.__module__.split(".")[1]
            newest = LINES[system].index(behaviour.releases.newest)
            newer, older = (f"{system}-{one}" for one in LINES[system][newest - 1 : newest + 1])
            yield Step(behaviour, RELEASES[older], RELEASES[newer])


def candidates(step: Step) -> list[Structure]:
    """Return the structures whose histories may show a behaviour, by the laws that it bends."""
    wanted: list[str] = []
    for law in step.behaviour.laws:
        wanted += STRUCTURES.get(law.partition("-")[0], ())
    known = [structure_named(name) for name in wanted or STRUCTURE_IDS]
    own = [one for one in dict.fromkeys(known) if one.system == step.system]
    return [
        one
        for one in own
        if reason_without(one.structure_id, release_named(step.older.name)) is None
    ]


def distinguish(
    step: Step, seeds: int = SEEDS, *, known: Sequence[Trace] = ()
) -> tuple[Distinction, Trace | None]:
    """Search a history that shows a behaviour, and ask the real classes of both releases about it.

    The `known` histories are tried first, then random ones.
    """
    blank = Distinction(step.name, step.older.name, step.newer.name)
    places = candidates(step)
    for structure in places:
        trace = _kept(step, structure, known)
        if trace is not None:
            return _confirmed(step, trace, blank), trace
    for first in range(0, seeds, 100):
        for structure in places:
            trace = _found(step, structure, range(first, min(first + 100, seeds)))
            if trace is not None:
                return _confirmed(step, trace, replace(blank, seeds_tried=first + 100)), trace
    return replace(blank, seeds_tried=seeds * len(places)), None


def _kept(step: Step, structure: Structure, known: Sequence[Trace]) -> Trace | None:
    """Return what shows the behaviour of the known histories, shrunk; None if none does."""
    for one in known:
        if one.structure_id == structure.structure_id:
            found = _shown(step, structure, replace(one, profile_name=step.older.name))
            if found is not None:
                return found
    return None


def _found(step: Step, structure: Structure, seeds: range) -> Trace | None:
    """Return what shows the behaviour of the histories of these seeds, shrunk, or None."""
    comparing = Comparison(structure, step.older.name, [flipped(step, structure)])
    both = (step.older.name, step.newer.name)
    weights = dict.fromkeys(_left_out(structure, both), 0)
    for seed in seeds:
        trace = make_history(
            structure.structure_id, step.older.name, seed, LENGTH, weights, releases=both
        )
        found = None if comparing.run(trace) is None else _shown(step, structure, trace)
        if found is not None:
            return found
    return None


def _shown(step: Step, structure: Structure, trace: Trace) -> Trace | None:
    """Return the history made as short as it can be while it shows the behaviour, or None.

    It must be one that both releases may be asked. A law that breaks shows nothing.
    """
    each = Comparison(structure, step.older.name, [flipped(step, structure)], image_every=1)
    left_out = _left_out(structure, (step.older.name, step.newer.name))
    if any(operation.name in left_out for operation in trace.operations):
        return None

    def run(candidate: Trace) -> Divergence | None:
        asked = all(_may_ask(structure, one, candidate) for one in (step.older, step.newer))
        found = each.run(candidate) if asked else None
        return None if found is not None and found.what == "law" else found

    return None if run(trace) is None else replace(shrink(trace, run), seed=None)


def _may_ask(structure: Structure, release: Release, trace: Trace) -> bool:
    """Return whether the history has only steps that a release may be asked."""
    model = ModelSubject(structure, release)
    if model.start(trace.setup).error == ErrorKind.ENDLESS:
        return False
    for operation in trace.operations:
        model.apply(operation)
        if model.event is not None and not structure.is_asked(model.event):
            return False
    return True


def flipped(step: Step, structure: Structure) -> ModelSubject:
    """Return the older release without the behaviour."""
    release = step.older.flipped(step.behaviour)
    return ModelSubject(structure, release, name=f"{step.older.name} without {step.name}")


def _left_out(structure: Structure, releases: Sequence[str]) -> frozenset[str]:
    """Return the operations that the real class of one of these releases has not."""
    known = map(release_named, releases)
    served = [one for one in known if reason_without(structure.structure_id, one) is None]
    absent = [OracleSubject(structure, one).absent.left_out for one in served]
    return frozenset[str]().union(*absent)


def _confirmed(step: Step, trace: Trace, found: Distinction) -> Distinction:
    structure = structure_named(trace.structure_id)
    shown = Comparison(structure, step.older.name, [flipped(step, structure)], image_every=1).run(
        trace
    )
    assert shown is not None, "a shrunk history shows what it was shrunk for"
    verdicts: dict[str, list[str]] = {"confirmed": [], "refuted": []}
    for name in (step.older.name, step.newer.name):
        release = release_named(name)
        if reason_without(trace.structure_id, release) is not None:
            continue
        real = Comparison(structure, name, [OracleSubject(structure, release)], image_every=1)
        verdict = "confirmed" if real.run(trace) is None else "refuted"
        verdicts[verdict].append(name)
    return replace(
        found,
        structure=trace.structure_id,
        expected=_text(shown.expected),
        otherwise=_text(shown.actual),
        confirmed=tuple(verdicts["confirmed"]),
        refuted=tuple(verdicts["refuted"]),
    )


def _text(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def read_distinctions(path: Path) -> list[Distinction]:
    """Return what was recorded; nothing where there is no such file."""
    if not path.exists():
        return []
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    lists = ("confirmed", "refuted")
    return [Distinction(**{**row, **{name: tuple(row[name]) for name in lists}}) for row in rows]


def write_distinctions(path: Path, found: Sequence[Distinction]) -> None:
    """Write the record, in the order of the behaviours."""
    order = [step.name for step in steps()]
    rows = sorted(found, key=lambda one: order.index(one.behaviour))
    path.write_text("".join(f"{json.dumps(asdict(row))}\n" for row in rows), encoding="utf-8")
