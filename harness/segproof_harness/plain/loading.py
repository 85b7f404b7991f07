# SPDX-License-Identifier: Apache-2.0
"""Hold the plain loading of logs against the older one: the same files and arguments, both opened.

    python -m segproof_harness.plain.loading [--seeds 50] [--first 0] [--length 40]
        [--release NAME ...] [--show 1] [--remains] [--laws]

Histories run on the older model alone; behind each operation both load what a crash would leave;
with `--remains` among more files of interrupted splits, cleanings and deletions than crashes leave.
"""

import argparse
import random
import re
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any

from segproof_harness.outcomes import of_model
from segproof_harness.plain.partition_log import PLAIN, also_broken, judged_open
from segproof_harness.structures import structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_harness.workloads import choose_for, draw_operation
from segproof_model.directory import Directory
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised
from segproof_model.laws.kafka.broker import log_loader  # noqa: F401
from segproof_model.laws.register import Transition, broken_step_laws
from segproof_model.profiles import Profile, profile_named
from segproof_model.releases import RELEASES

LOG = structure_named("partition-log")


class Loadings:
    """Logs that both models load."""

    def __init__(self, release: Release, profile: Profile, remains: bool = False) -> None:
        self.release, self.profile, self.remains = release, profile, remains
        self.outcomes: Counter[str] = Counter()
        self.seconds = {"old": 0.0, "plain": 0.0}
        self.found: list[str] = []
        self.judges = False
        """Whether the laws are asked, too."""

    def history(self, seed: int, length: int) -> None:
        """Load what each operation of a history leaves."""
        choose = choose_for(LOG.structure_id, seed, (self.profile,))
        chance = random.Random(seed)
        old = ModelSubject(LOG, self.profile)
        old.start(LOG.draw_setup(choose))
        for step in range(length):
            old.apply(draw_operation(choose, old))
            reopening = LOG.by_name()["crash_reopen"].draw(choose, old.situation())
            arguments = dict(reopening.arguments)
            if self.remains:
                arguments["recovery_point"] = some_offset(chance, old.directory)
            images = dict(LOG.damage(arguments, dict(old.directory.files))) if LOG.damage else {}
            if self.remains:
                images = with_remains(chance, images)
            if difference := self.load(arguments, images):
                self.found.append(f"seed {seed} step {step} {arguments!r:.600}\n{difference}")
                return

    def load(self, arguments: Mapping[str, Any], images: Mapping[str, bytes]) -> str:
        """Load on both; return a difference, if any."""
        begun = perf_counter()
        directory = Directory(tuple(sorted(images.items())))
        old = LOG.open_model(arguments, directory, self.profile)
        middle = perf_counter()
        try:
            new = PLAIN.open(arguments, Files(images), self.release)
        except Exception:
            return traceback.format_exc()[-2500:]
        self.seconds["old"] += middle - begun
        self.seconds["plain"] += perf_counter() - middle
        error = of_model(old.outcome).error
        self.outcomes[error or "loaded"] += 1
        if self.judges:
            kind = self.release.kind(PartitionLog)
            given = judged_open(**arguments)
            step = Transition(kind, Files(images), "open", given, new.after, new.outcome)
            if broken := [*broken_step_laws(step), *also_broken(step)]:
                return f"    laws broken: {broken}"
        if error != of_model(new.outcome).error:
            return f"    answer: {old.outcome} / {new.outcome}"
        if isinstance(old.outcome, Raised):
            held: Any = ({}, {})
            after = dict(old.after.files), dict(new.after.images)
        else:
            held = PLAIN.seen_of_old(old.after), PLAIN.seen(new.after)
            after = dict(old.after.directory.files), dict(new.after.files.images)
        lines = [
            f"    {name}:\n      {one.get(name)}\n      {other.get(name)}"
            for one, other in (after, held)
            for name in sorted({**one, **other})
            if one.get(name) != other.get(name)
        ]
        return "\n".join(lines)


def with_remains(chance: random.Random, images: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files with copies of some, under the names that a crash leaves behind."""
    found = dict(images)
    logs = [name for name in images if name.endswith(".log")]
    for _ in range(chance.randrange(6) if logs else 0):
        stem = chance.choice(logs).removesuffix(".log")
        kind = chance.choice((".log", ".log", ".index", ".timeindex", ".txnindex", ".snapshot"))
        suffix = chance.choice((".swap", ".swap", ".cleaned", ".deleted", ""))
        if chance.random() < 0.3:
            found.pop(stem + kind, None)
        if suffix:
            source = chance.choice([stem + kind, chance.choice(logs)])
            found[stem + kind + suffix] = images.get(source, b"")
    return found


def some_offset(chance: random.Random, names: Iterable[str]) -> int:
    """Return an offset at or about where a segment begins."""
    bases = [int(name.split(".")[0]) for name in names if re.fullmatch("[0-9]{20}[.]log", name)]
    return max(0, chance.choice(bases or [0]) + chance.choice((-1, 0, 0, 1, 2)))


def main() -> None:
    """Compare, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=40)
    parser.add_argument("--release", nargs="*", default=None)
    parser.add_argument("--show", type=int, default=1)
    parser.add_argument("--laws", action="store_true", help="ask the laws, too")
    parser.add_argument("--remains", action="store_true", help="leave more than crashes do")
    given = parser.parse_args()
    bad = 0
    for name in given.release or LOG.profile_names:
        run = Loadings(RELEASES[name], profile_named(name), given.remains)
        run.judges = given.laws
        for seed in range(given.first, given.first + given.seeds):
            run.history(seed, given.length)
        count = sum(run.outcomes.values())
        speed = {who: round(count / (one or 1)) for who, one in run.seconds.items()}
        print(f"{name}: {dict(run.outcomes)}, {len(run.found)} differences; per second {speed}")
        for line in run.found[: given.show]:
            print(f"  {line}")
        bad += len(run.found)
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
