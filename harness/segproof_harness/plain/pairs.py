# SPDX-License-Identifier: Apache-2.0
"""Parts that no structure of the harness holds alone, in both models: driven by the same calls.

Used by: plain.producers, plain.epochs.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from inspect import signature
from random import Random
from time import perf_counter
from typing import Any

from segproof_harness.outcomes import Outcome, normalise, of_model
from segproof_model.directory import Directory
from segproof_model.language.behaviours import Behaviour, Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised, Step
from segproof_model.language.states import apply, frozen, opened, outcome_of
from segproof_model.laws.register import Transition, broken_state_laws, broken_step_laws
from segproof_model.profiles import Profile, profile_named
from segproof_model.releases import NEWEST_KAFKA, RELEASES

Flags = dict[str, Any]


class Differs(Exception):  # noqa: N818 - what was found, not what went wrong
    """The two models part."""


@dataclass
class Tally:
    """What was compared."""

    operations: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=lambda: {"old": 0.0, "plain": 0.0})
    found: list[str] = field(default_factory=list)


@dataclass
class Setting:
    """In which release, and by which chance, histories are run."""

    release: Release
    profile: Profile
    seed: int = 0
    judges: bool = False
    """Whether the laws are asked, too."""
    under: Flags = field(default_factory=dict)
    """Methods of the older model that are called under another profile."""
    tally: Tally = field(default_factory=Tally)

    @property
    def name(self) -> str:
        """The name of the release."""
        return self.release.name

    def chance(self) -> Random:
        """Return what draws a history."""
        return Random(f"{self.seed}")


def plain_form(value: Any) -> Any:
    """Return an answer of either model, made comparable; of a dictionary its items."""
    return normalise(list(value.items())) if isinstance(value, dict) else normalise(value)


class Pair:
    """One structure in both models."""

    def __init__(self, setting: Setting, see_old: Any, see: Any) -> None:
        self.setting, self.see_old, self.see = setting, see_old, see
        self.old: Any = None
        self.plain: Any = None
        self.images: dict[str, bytes] = {}
        self.given: tuple[tuple[Any, ...], dict[str, Any]] = (), {}
        """What a method of the plain one is called with."""
        self.also_broken: Callable[[Transition], Iterable[str]] = lambda step: ()
        """The ids of further laws that a step breaks."""

    def open(
        self, old: Callable[[Directory], Step[Any]], kind: Any, *arguments: Any, **named: Any
    ) -> bool:
        """Open both over the files that are there; return whether that was possible."""
        step = old(Directory(tuple(sorted(self.images.items()))))
        files = Files(self.images)
        plain: Any = opened(self.setting.release.kind(kind), files, *arguments, **named)
        outcomes = [
            of_model(one.outcome) if isinstance(one.outcome, Raised) else Outcome()
            for one in (step, plain)
        ]
        self.same("open", "answer", *outcomes)
        self.setting.tally.operations["open"] += 1
        if outcomes[0].error is not None:
            self.setting.tally.errors[outcomes[0].error] += 1
            self.same("open", "files", dict(step.after.files), dict(plain.after.images))
            self.images, self.old, self.plain = dict(step.after.files), None, None
            return False
        self.old, self.plain = step.after, plain.after
        self.compare("open")
        return True

    def call(self, name: str, *arguments: Any, others: Any = None, **named: Any) -> Any:
        """Call a method of both; `others` are the plain one's arguments. Return the outcome."""
        profile = self.setting.under.get(name, self.setting.profile)
        self.given = arguments if others is None else others, named

        def old(state: Any) -> Any:
            asked = state if profile is self.setting.profile else replace(state, profile=profile)
            answer = getattr(asked, name)(*arguments, **named)
            if isinstance(answer, Step) and asked is not state:
                back = replace(answer.after, profile=self.setting.profile)
                return Step(back, answer.outcome)
            return answer

        def plain(draft: Any) -> Any:
            method = getattr(draft, name)
            positional, named = self.given
            return method(*positional, **named)

        return self.do(f"{name}{arguments!r:.300}", old, plain, name)

    def do(self, what: str, old: Any, plain: Any, name: str = "") -> Any:
        """Let both do something, and compare; return the older one's outcome.

        Where the older one makes no Step it is a question, which the plain state is asked as it is.
        """
        tally = self.setting.tally
        tally.operations[name or what] += 1
        before = self.plain
        kept = self.see(before) if sum(tally.operations.values()) % 8 == 0 else None
        begun = perf_counter()
        answer = old(self.old)
        middle = perf_counter()
        is_step = isinstance(answer, Step)
        step = (
            apply(self.plain, plain) if is_step else Step(self.plain, outcome_of(plain, self.plain))
        )
        tally.seconds["old"] += middle - begun
        tally.seconds["plain"] += perf_counter() - middle
        self.plain = step.after
        outcome = answer
        if is_step:
            self.old, outcome = answer.after, answer.outcome
        if isinstance(outcome, Raised):
            tally.errors[str(outcome.kind)] += 1
        pairs = (outcome, step.outcome)
        forms = [one if isinstance(one, Raised) else plain_form(one) for one in pairs]
        self.same(what, "answer", *forms)
        self.compare(what)
        if self.setting.judges:
            self.same(what, "laws broken", [], list(self.broken_by(before, name, step)))
        if kept is not None:
            self.same(what, "state before", kept, self.see(before))
        return outcome

    def broken_by(self, before: Any, name: str, step: Step[Any]) -> Iterator[str]:
        """Yield the ids of the laws that a step of the plain one breaks, or the state it leaves."""
        yield from broken_state_laws(step.after)
        method = getattr(type(before), name, None)
        if callable(method):
            positional, named = self.given
            bound = signature(method).bind(before, *positional, **named)
            bound.apply_defaults()
            arguments = dict(list(bound.arguments.items())[1:])
            transition = Transition(type(before), before, name, arguments, step.after, step.outcome)
            yield from broken_step_laws(transition)
            yield from self.also_broken(transition)

    def write(self, name: str, data: bytes | None) -> None:
        """Write a file behind the back of both, or remove it."""

        def old(state: Any) -> Any:
            known = state.directory
            changed = known.remove(name) if data is None else known.write(name, data)
            if hasattr(state, "sees"):
                return Step(state.sees(changed))
            return Step(replace(state, directory=changed))

        def plain(draft: Any) -> None:
            if data is None:
                draft.files.remove(name)
            else:
                draft.files.write(name, data)

        self.do(f"file {name} {data!r:.60}", old, plain, "file")

    def compare(self, what: str) -> None:
        """Compare what both hold."""
        self.same(what, "state", self.see_old(self.old), self.see(self.plain))
        if hasattr(self.old, "directory"):
            self.images = dict(self.old.directory.files)
            self.same(what, "files", self.images, dict(self.plain.files.images))

    def same(self, what: str, where: str, old: Any, plain: Any) -> None:
        """Say where they part, if they do."""
        if old != plain:
            raise Differs(f"{what}: {where}\n    old   {old!r:.1500}\n    plain {plain!r:.1500}")


def held(state: Any) -> Any:
    """Freeze what was constructed: nobody changes it but through `apply`."""
    return frozen(state)


def run(setting: Setting, history: Callable[[Setting], None]) -> None:
    """Run one history; keep where the models part."""
    try:
        history(setting)
    except Differs as found:
        setting.tally.found.append(f"{setting.name} seed {setting.seed} {found}")


def main(
    histories: Iterable[Callable[[Setting], None]],
    alone: Iterable[tuple[tuple[type[Behaviour], ...], Flags, Flags]],
    description: str,
) -> None:
    """Compare under every release, or each behaviour alone; print what was found.

    `alone`: behaviours, the flags that say the same, and what `Setting.under` is then.
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--release", nargs="*", default=None)
    parser.add_argument("--alone", action="store_true", help="each behaviour on the newest release")
    parser.add_argument("--laws", action="store_true", help="ask the laws, too")
    given = parser.parse_args()
    settings = [
        Setting(RELEASES[name], profile_named(name))
        for name in given.release or RELEASES
        if not name.startswith("rocketmq")
    ]
    if given.alone:
        settings = [_alone(*one) for one in alone]
    bad = operations = 0
    for setting in settings:
        setting.judges = given.laws
        for seed in range(given.first, given.first + given.seeds):
            setting.seed = seed
            for history in histories:
                run(setting, history)
        tally = setting.tally
        count = sum(tally.operations.values())
        speed = {who: round(count / (one or 1)) for who, one in tally.seconds.items()}
        errors = dict(sorted(tally.errors.items()))
        print(
            f"{setting.name}: {count} operations, {len(tally.found)} differences, per second"
            f" {speed}, errors {errors}",
            *tally.found[:1],
            sep="\n  ",
            flush=True,
        )
        bad, operations = bad + len(tally.found), operations + count
    print(f"{operations} operations, {bad} differences")
    sys.exit(1 if bad else 0)


def _alone(behaviours: tuple[type[Behaviour], ...], flags: Flags, under: Flags) -> Setting:
    """Return the newest release with some behaviours, and the flags that say so."""
    release = NEWEST_KAFKA
    for behaviour in behaviours:
        release = release.flipped(behaviour)
    newest = profile_named(NEWEST_KAFKA.name)
    names = " and ".join(behaviour.__name__ for behaviour in behaviours)
    profiles = {name: replace(newest, **changed) for name, changed in under.items()}
    return Setting(replace(release, name=names), replace(newest, **flags), under=profiles)
