# SPDX-License-Identifier: Apache-2.0
"""What `explain` says of a release, of one class as a release has it, and of a behaviour."""

import difflib
import sys
from typing import Any, NoReturn

from segproof_harness.cli.common import Format, refuse, summarise, write_prose, write_row
from segproof_harness.reports.release_methods import (
    behaviour_named,
    classes_of,
    methods_of,
    place_of,
    releases_text,
)
from segproof_model.language.behaviours import Behaviour, Release
from segproof_model.releases import BEHAVIOURS, RELEASES


def is_known(what: str) -> bool:
    """Return whether this is a release or a behaviour."""
    return what in RELEASES or any(one.__name__ == what for one in BEHAVIOURS)


def explain(what: str, structure: str | None, output_format: Format) -> None:
    """Write what there is to say of a release, of a class of it, or of a behaviour."""
    if what in RELEASES and structure is not None:
        _write_methods(RELEASES[what], structure, output_format)
    elif what in RELEASES:
        for behaviour in reversed(RELEASES[what].behaviours):
            facts = _facts(behaviour)
            if output_format is Format.JSONL:
                write_row(facts, output_format)
            else:
                write_prose(f"{facts['behaviour']}: {facts['sentence']}")
                write_prose(f"  {facts['releases']}; bends {', '.join(facts['laws'])}", indent=4)
        if not RELEASES[what].behaviours:
            summarise(f"{what}: the newest release, so the model's files say what it does")
    else:
        _write_behaviour(behaviour_named(what), output_format)


def _facts(behaviour: type[Behaviour]) -> dict[str, Any]:
    return {
        "behaviour": behaviour.__name__,
        "sentence": behaviour.sentence(),
        "laws": list(behaviour.laws),
        "releases": releases_text(behaviour),
    }


def _write_behaviour(behaviour: type[Behaviour], output_format: Format) -> None:
    facts = {**_facts(behaviour), "file": place_of(behaviour)}
    if output_format is Format.JSONL:
        write_row(facts, output_format)
        return
    for line in (
        facts["behaviour"],
        "",
        f"  {facts['sentence']}",
        "",
        f"releases: {facts['releases']}",
        f"bends:    {', '.join(facts['laws'])}",
        f"changes:  {', '.join(one.__name__ for one in behaviour.changes())}",
        f"file:     segproof_model/{facts['file']}",
    ):
        write_prose(line, indent=10 if ": " in line[:10] else 2)


def _write_methods(release: Release, name: str, output_format: Format) -> None:
    known = {one.__name__: one for one in classes_of(release)}
    if name not in known:
        _refuse_structure(name, list(known))
    for method, said in methods_of(release, known[name]).items():
        if output_format is Format.TEXT:
            sys.stdout.write(f"--- {name}.{method}\n")
        for words in said:
            by = None if words.behaviour is None else words.behaviour.__name__
            if output_format is Format.JSONL:
                write_row(
                    {"method": method, "behaviour": by, "source": words.source}, output_format
                )
            else:
                source = f"{words.source}\n" if words.source else ""
                write_prose(f"# {words.title}")
                sys.stdout.write(f"{source}\n")


def _refuse_structure(name: str, known: list[str]) -> NoReturn:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"; did you mean {near[0]}?" if near else ""
    what = f"it has {', '.join(known)}" if known else "it is the newest"
    refuse(f"no class {name!r} that this release has otherwise{hint}; {what}")
