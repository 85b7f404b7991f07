# SPDX-License-Identifier: Apache-2.0
"""Write the page docs/results/proofs.md: each kernel's proof, and what became of each mutant.

    python -m segproof_tests.proofs.results --jobs 2
    python -m segproof_tests.proofs.results --only slot_search:_halve

With `--only` the lines of these kernels are printed, and nothing is written. The exit code is 1 if
a kernel is not proved, or if no condition sees a change, and no reason is known.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import Literal

from segproof_harness.claims.every_claim import CLAIMS, NOT_PROVED
from segproof_tests.proofs.conditions import Prover
from segproof_tests.proofs.drawn_calls import CALLS, changes_something
from segproof_tests.proofs.gaps import GAPS, UNSEEN
from segproof_tests.proofs.kernel_mutants import MUTANT_STEPS, judged, mutants

PAGE = Path(__file__).parents[4] / "docs" / "results" / "proofs.md"
OPENING = """\
# What the proofs cost, and what they see

Who should read this: everyone who asks how much the claims of the kernels say.

`python -m segproof_tests.proofs.results` writes this page. It proves each kernel. Then it changes
one operator or number of the kernel: `<` becomes `<=`, `+` becomes `-`, `//` becomes `%`, a number
becomes the next one. Such a changed kernel is a *mutant*, and its proof
should fail. [What "proved" means](../explanation/what-proved-means.md) says how a proof is made.

- *Refuted*: z3 finds values for which a condition of the mutant fails.
- *Refused*: a line of the mutant is never reached, or its source has a form that is refused.
- *Not seen*: the mutant is not refuted, and gives and writes what the kernel does in {calls} calls
  with drawn arguments. That is no proof that nothing changed.
- *Undecided*: z3 gives up on a condition of the mutant after {steps} steps; but a drawn call shows
  the change, so a test on such calls sees it.
- *Gap*: the mutant is proved, and does something else. No claim speaks of what was changed.

A *kernel* is a loop or a decision that the implementation runs, compiled or not. A *condition* is
one question to z3, such as whether a read is in range; what is true as it is written is not asked,
so a kernel may have none. Seconds are those of the processor, on a shared machine. *Slowest* is the
condition of a kernel that took the most of them. An empty place is 0.
"""
GAPS_OPENING = """\
## Gaps

What no condition sees, and why no claim speaks of it. The number before a change is its line,
counted from the `def` of the kernel.
"""
NOT_SEEN_OPENING = """\
## Not seen

These changes show in none of the drawn calls: nothing can show, or a rare call alone shows it, and
no claim speaks of that.
"""
Outcome = Literal["refuted", "refused", "not seen", "undecided", "gap"]
OUTCOMES: tuple[Outcome, ...] = ("refuted", "refused", "not seen", "undecided", "gap")


@dataclass(frozen=True)
class Proof:
    """What proving a kernel took."""

    conditions: int
    seconds: float
    slowest: float
    failures: tuple[str, ...]


@dataclass(frozen=True)
class Trial:
    """What became of one mutant."""

    change: str
    outcome: Outcome


Task = tuple[str, int]
"""A kernel, and the number of its mutant; -1 for the kernel itself."""


def outcome(task: Task) -> tuple[str, Proof | Trial]:
    """Prove a kernel, or try one of its mutants."""
    name, number = task
    if number < 0:
        prover = Prover()
        prover.prove(name)
        seconds = [one.seconds for one in prover.conditions] or [0.0]
        failures = tuple(f"{one.what}: {one.counterexample}" for one in prover.failures)
        return name, Proof(len(prover.conditions), sum(seconds), max(seconds), failures)
    mutant = list(mutants(Prover().source(name)[0]))[number]
    verdict = judged(name, mutant)
    if verdict in ("refuted", "refused"):
        return name, Trial(mutant.change, verdict)
    if not changes_something(name, mutant.definition):
        return name, Trial(mutant.change, "not seen")
    return name, Trial(mutant.change, "gap" if verdict == "survives" else "undecided")


def chosen(name: str, most: int) -> list[int]:
    """Return the numbers of so many mutants of a kernel, drawn by its name; 0: of all."""
    count = len(list(mutants(Prover().source(name)[0])))
    return sorted(Random(name).sample(range(count), min(count, most or count)))


def tried(
    names: Sequence[str], jobs: int, most: int
) -> tuple[dict[str, Proof], dict[str, list[Trial]]]:
    """Prove kernels and try their mutants, in so many processes."""
    from segproof_harness.cli.common import progress

    tasks: list[Task] = []
    for name in names:
        tasks += [(name, number) for number in (-1, *chosen(name, most))]
    proofs: dict[str, Proof] = {}
    trials: dict[str, list[Trial]] = {name: [] for name in names}
    # A process ends after some mutants: z3 keeps what it made of them.
    with (
        progress("proofs and mutants", unit="mutants") as show,
        get_context("spawn").Pool(jobs, maxtasksperchild=200) as pool,
    ):
        for done, (name, found) in enumerate(pool.imap(outcome, tasks, chunksize=4), 1):
            if isinstance(found, Proof):
                proofs[name] = found
            else:
                trials[name].append(found)
            show(done, len(tasks))
    return proofs, trials


Proofs = Mapping[str, Proof]
Trials = Mapping[str, Sequence[Trial]]


def page(proofs: Proofs, trials: Trials, most: int) -> str:
    """Return the text of the page."""
    found = Counter(one.outcome for of_kernel in trials.values() for one in of_kernel)
    conditions = sum(one.conditions for one in proofs.values())
    seconds = sum(one.seconds for one in proofs.values())
    proved = f"{len(proofs)} of {len(CLAIMS) + len(NOT_PROVED)} kernels"
    parts = [
        OPENING.format(calls=CALLS, steps=f"{MUTANT_STEPS:_}".replace("_", " ")),
        f"Of more than {most} mutants {most} are drawn; the kernel's name is the seed.\n"
        if most
        else "",
        f"{proved} are proved, with {conditions} conditions in {seconds:.0f} seconds.",
        f"Of {found.total()} mutants {found['refuted']} are refuted, {found['refused']} refused;",
        f"{found['not seen']} are not seen to differ, {found['undecided']} are undecided,",
        f"{found['gap']} are gaps.\n",
        table(proofs, trials),
        GAPS_OPENING,
        listed(trials, "gap", GAPS),
        "## Undecided\n",
        listed(trials, "undecided", {}),
        NOT_SEEN_OPENING,
        listed(trials, "not seen", UNSEEN),
    ]
    return "\n".join(parts)


def table(proofs: Proofs, trials: Trials) -> str:
    """Return a row for each kernel, also for those that are not proved."""
    head = ("kernel", "conditions", "seconds", "slowest", "mutants", *OUTCOMES)
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    for name in proofs:
        found = Counter(one.outcome for one in trials[name])
        proof = proofs[name]
        numbers = [str(found.total()), *(str(found[one] or "") for one in OUTCOMES)]
        times = [str(proof.conditions), f"{proof.seconds:.1f}", f"{proof.slowest:.2f}"]
        link = f"[`{name}`](../reference/proofs.md#{CLAIMS[name].anchor})"
        lines.append(f"| {' | '.join([link, *times, *numbers])} |")
    left = [f"\nNot proved is `{name}`: {why}." for name, why in NOT_PROVED.items()]
    return "\n".join([*lines, *left]) + "\n"


def listed(trials: Trials, outcome: Outcome, reasons: Mapping[str, str]) -> str:
    """Return the mutants with one outcome, kernel by kernel."""
    lines = []
    for name, of_kernel in trials.items():
        changes = [one.change for one in of_kernel if one.outcome == outcome]
        if changes:
            why = f": {reasons[name]}" if name in reasons else ""
            lines += [f"`{name}`{why}", "", "```text", *changes, "```", ""]
    return "\n".join(lines or ["None.", ""])


def main(arguments: Sequence[str]) -> int:
    """Run from a command line; return 1 if a proof fails or a mutant goes unseen without reason."""
    parser = argparse.ArgumentParser(description="Prove each kernel, and try each mutant of it.")
    parser.add_argument("--only", action="append", default=[], help="a kernel, module:name")
    parser.add_argument("--most", type=int, default=24, help="mutants of a kernel; 0: all")
    parser.add_argument("--jobs", type=int, default=1, help="so many processes")
    asked = parser.parse_args(arguments)
    proofs, trials = tried(asked.only or list(CLAIMS), asked.jobs, asked.most)
    if asked.only:
        print(table(proofs, trials), listed(trials, "undecided", {}), listed(trials, "gap", GAPS))
        print(listed(trials, "not seen", UNSEEN))
    else:
        PAGE.write_text(page(proofs, trials, asked.most), encoding="utf-8")
    wrong = [f"{name}: {one}" for name, proof in proofs.items() for one in proof.failures]
    for kind, reasons in (("gap", GAPS), ("not seen", UNSEEN)):
        found = {name for name in trials if any(one.outcome == kind for one in trials[name])}
        wrong += [f"{name}: {kind} without a reason" for name in sorted(found - reasons.keys())]
        if not asked.only:
            wrong += [
                f"{name}: no {kind} has its reason" for name in sorted(reasons.keys() - found)
            ]
    print("\n".join(wrong), file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
