# SPDX-License-Identifier: Apache-2.0
"""The pages of the profiles and of the releases: what each does otherwise, in words."""

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import pairwise
from pathlib import Path

from law_links import law_links

from segproof_harness.conformance.distinguishing_histories import read_distinctions
from segproof_harness.reports.release_methods import releases_text
from segproof_model.language.behaviours import Behaviour, Release
from segproof_model.releases import LINES, RELEASES, SEGPROOF

PROFILES_OPENING = f"""\
# Profiles

Who should read this: everyone who compares segproof with a release, or reads files of an older one.

A profile is a release, or segproof, as the model has it. The files of the structures say what the
newest release does. The *behaviours* of another release say what it does otherwise: a behaviour is
a sentence, with the laws that it bends and the methods that it replaces. The newest release of each
system has no behaviour; an older release is a list of behaviours. `{SEGPROOF.name}` is what
`segproof.kafka` and `segproof.rocketmq` do.

Below, each profile has its behaviours, the latest first. [Behaviour by release](releases.md) says
what began and ended from one release to the next, and has the histories that show it.
[The methods of old releases](methods.md) stand whole for two releases; for any release
`segproof explain` prints them:

```sh
segproof explain kafka-2.8.2
segproof explain kafka-2.8.2 LogSegment
segproof explain SecondCloseFails
```

Profiles so far: {", ".join(f"`{name}`" for name in RELEASES)}. Nothing is claimed about a release
without one.
"""
DEVIATIONS = """\
## What segproof does otherwise

Upstream's oddities live in the model only. The implementation differs from the newest releases in
these behaviours, each on purpose: it never answers what can't be right, and never half changes a
file. Some of them older releases have as well.
"""
OLDER = """\
## What older releases of {system} do otherwise

Against `{newest}`.
"""
TITLES = {"kafka": "Kafka", "rocketmq": "RocketMQ"}
MATRIX_OPENING = """\
# Releases at a glance

Who should read this: everyone who upgrades a broker, or asks which releases behave in one way.

A row is a behaviour in which some release differs from the newest one. A dot: the release has it.
A coloured cell is a change beside the next newer release: the behaviour
<span class="begins">ends with the newer one</span>, or it is
<span class="ends">one that only the newer one has</span>. The name of a behaviour leads to its
sentence and its laws in [behaviour by release](releases.md); a pointer on it shows the sentence.
"""

TRACES = Path(__file__).resolve().parent.parent / "reference" / "traces"
RELEASES_OPENING = """\
# Behaviour by release

Who should read this: everyone who reads files of an older broker, upgrades one, or doubts a
[profile](profiles.md). It says what the releases do differently. This page is generated
from the behaviours of the releases and from what the real classes answered.

It goes from the newest release to the oldest, and compares each with the next newer one. A
behaviour *begins* if the older release has it and the newer one lacks it. It *ends* if the newer
release has it and the older one lacks it. The tables count them for each release;
[the matrix](releases-matrix.md) shows them all at once.

A behaviour is linked to a history that shows it: run it with

```sh
segproof replay BEHAVIOUR.jsonl --subjects model,RELEASE
```

and the real classes of that release answer as the sentence says. Such a history was found by
changing nothing but this behaviour in the model; then the real classes of the release and of the
next newer one were asked. What no history shows stands at the end, with the reason why it is
believed.
"""
OVERVIEW = """
## {system}

{shown} of {count} behaviours are shown by a history and confirmed by the real classes.

| release | behaviours | begin | end |
| --- | --- | --- | --- |
"""
NOT_SHOWN = """
### Not shown by a history

| behaviour | releases | why it stands |
| --- | --- | --- |
"""
READ = "read in the source of the release, not run"
OTHER_HALF = "goes with `{}`, which is shown: one change of upstream's in two structures"
WHY = {
    "ActiveSegmentIsNotPrepared": OTHER_HALF.format("ClosingWritesLastEntry")
    + "; no structure of the harness is a log manager",
    "AppendTellsMaximum": OTHER_HALF.format("CallIsIndexedAsAWhole"),
    "MetadataVersionIsExact": "no structure of the harness has the file partition.metadata: the"
    " classes of both releases were asked by hand",
    "ReadAnswersOffsetAskedFor": OTHER_HALF.format("SearchAnswersLastOffset"),
    "RebuildEndsInEachSegment": "no history of 2.2.2 was found; what 0.11.0.3 does is shown by a"
    " trace of its own (`partition-log-end-of-producers-is-looked-up-below-0.11.jsonl`)",
    "RequestedEpochIsAnswered": "the class of 1.1.1 answers the offset alone: the model puts the"
    " requested epoch beside it",
    "SegmentsAreRemovedOneByOne": "no history of 2.2.2 was found whose files can't be renamed;"
    " 1.1.1 is shown by a trace of its own (`partition-log-segments-go-one-by-one-1.1.jsonl`)",
    "SnapshotReplacesFile": "no log of these releases meets such a file, since it writes above"
    " all snapshots of its folder ({law}`PROD-6`): the classes of both were asked by hand",
    "StoredProducersHaveBatches": "no log of these releases shows such a producer, whose last"
    " offset lies before any log start (`LogStartEvictsProducers`): the dump tools of both say so",
    "UnopenedTransactionsStay": OTHER_HALF.format("DeletionNeedsChannel"),
}
"""What holds up a behaviour that no structure of the harness shows."""


def shown_by_history() -> set[str]:
    """Return the behaviours that a history shows and the real classes confirm."""
    rows = read_distinctions(TRACES / "record.jsonl")
    return {row.behaviour for row in rows if row.confirmed and not row.refuted}


def system_of(behaviour: type[Behaviour]) -> str:
    """Return `kafka` or `rocketmq`."""
    return behaviour.__module__.split(".")[1]


def file_of(behaviour: type[Behaviour]) -> str:
    """Return where a behaviour stands, floor and module."""
    _, _, floor, module = behaviour.__module__.split(".")
    return f"`{floor}/{module}.py`"


def releases_of(system: str) -> list[Release]:
    """Return the releases of a system, the newest first."""
    return [RELEASES[f"{system}-{number}"] for number in LINES[system]]


# --- the page of the profiles -------------------------------------------------------------------


def behaviours_table(behaviours: Iterable[type[Behaviour]], *, with_releases: bool = False) -> str:
    """Return behaviours in words, and the laws that they bend."""
    lines = ["| behaviour | what is done otherwise | laws |", "| --- | --- | --- |"]
    if with_releases:
        lines = [f"{lines[0]} releases |", f"{lines[1]} --- |"]
    for one in behaviours:
        cells = [f"`{one.__name__}`", one.sentence(), law_links(one.laws)]
        if with_releases:
            cells.append(releases_text(one))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def profiles_page() -> str:
    """Return the page of the profiles."""
    parts = [PROFILES_OPENING, DEVIATIONS]
    for system, title in TITLES.items():
        own = [one for one in SEGPROOF.behaviours if system_of(one) == system]
        parts += [f"### segproof, {title}\n", behaviours_table(own, with_releases=True)]
    for system, title in TITLES.items():
        newest, *older = releases_of(system)
        parts.append(OLDER.format(system=title, newest=newest.name))
        for release in older:
            last_first = reversed(release.behaviours)
            parts += [f"### {release.name}\n", behaviours_table(last_first)]
    return "\n".join(parts)


# --- the page of the releases -------------------------------------------------------------------


def behaviour_cell(behaviour: type[Behaviour], shown: set[str]) -> str:
    """Return the name of a behaviour, linked to the history that shows it."""
    name = behaviour.__name__
    return f"{{download}}`{name} <traces/{name}.jsonl>`" if name in shown else f"`{name}`"


def step_text(newer: Release, older: Release, shown: set[str]) -> str:
    """Return what differs between two releases that follow each other."""
    number = older.name.partition("-")[2]
    came = [one for one in older.behaviours if not newer.has(one)]
    begin = [one for one in came if one.releases and one.releases.newest == number]
    again = [one for one in came if one not in begin]
    end = [one for one in newer.behaviours if not older.has(one)]
    text = f"\n({older.name})=\n### {older.name}, beside {newer.name.partition('-')[2]}\n"
    if begin:
        text += "\n| begins | what is done otherwise | laws | releases | where |\n"
        text += "| --- | --- | --- | --- | --- |\n"
    for one in begin:
        cells = (
            behaviour_cell(one, shown),
            one.sentence(),
            law_links(one.laws),
            releases_text(one),
            file_of(one),
        )
        text += f"| {' | '.join(cells)} |\n"
    for title, found in (("Begins again", again), ("Ends", end)):
        if found:
            text += f"\n{title}: {', '.join(f'`{one.__name__}`' for one in found)}.\n"
    return text if came or end else f"{text}\nNo difference is known.\n"


def system_text(system: str, shown: set[str]) -> str:
    """Return the part of one system."""
    releases = releases_of(system)
    own = [one for one in releases[0].order if one.releases and system_of(one) == system]
    missing = [one for one in own if one.__name__ not in shown]
    text = OVERVIEW.format(
        system=TITLES[system], shown=len(own) - len(missing), count=len(own)
    ) + overview_rows(releases)
    for newer, older in pairwise(releases):
        text += step_text(newer, older, shown)
    if missing:
        text += NOT_SHOWN
    for one in missing:
        why = WHY.get(one.__name__, READ)
        text += f"| `{one.__name__}` | {releases_text(one)} | {why} |\n"
    return text


def overview_rows(releases: Sequence[Release]) -> str:
    """Return for each release how many behaviours it has, and how many begin and end with it."""
    rows = ""
    for newer, one in zip([None, *releases], releases, strict=False):
        begin = [each for each in one.behaviours if newer and not newer.has(each)]
        end = [each for each in (newer.behaviours if newer else ()) if not one.has(each)]
        rows += f"| {one.name} | {len(one.behaviours)} | {len(begin)} | {len(end)} |\n"
    return rows


def releases_page() -> str:
    """Return the page of the releases."""
    shown = shown_by_history()
    return RELEASES_OPENING + "".join(system_text(system, shown) for system in TITLES)


# --- the matrix of the releases -----------------------------------------------------------------


def matrix_cells(behaviour: type[Behaviour], releases: Sequence[Release]) -> str:
    """Return a cell for each release, marked where it differs from the next newer one."""
    had = [one.has(behaviour) for one in releases]
    cells = ""
    for newer, has in zip([False, *had], had, strict=False):
        change = "" if newer == has else ' class="begins"' if has else ' class="ends"'
        cells += f"<td{change}>{'&bull;' if has else ''}</td>"
    return cells


def matrix_of(system: str) -> str:
    """Return the matrix of one system as HTML: 170 rows of Markdown take long to build."""
    releases = releases_of(system)
    numbers = [one.name.partition("-")[2] for one in releases]
    heads = "".join(f'<th scope="col"><span>{number}</span></th>' for number in numbers)
    lines = ['<div class="matrix"><table>', f"<thead><tr><td></td>{heads}</tr></thead><tbody>"]
    seen: set[type[Behaviour]] = set()
    for number, release in zip(numbers, releases, strict=True):
        anchor = f"{system}-{number}".replace(".", "-")
        for one in release.behaviours:
            if one in seen:
                continue
            seen.add(one)
            link = f'<a href="releases.html#{anchor}" title="{escape(one.sentence())}">'
            name = re.sub("(?<=[a-z])(?=[A-Z])", "<wbr>", one.__name__)
            head = f'<th scope="row">{link}{name}</a></th>'
            lines.append(f"<tr>{head}{matrix_cells(one, releases)}</tr>")
    return "\n".join([*lines, "</tbody></table></div>\n"])


def matrix_page() -> str:
    """Return the page of the matrices."""
    parts = [f"\n## {title}\n\n{matrix_of(system)}" for system, title in TITLES.items()]
    return MATRIX_OPENING + "".join(parts)


def pages() -> dict[str, str]:
    """Return the pages by path."""
    return {
        "reference/profiles.md": profiles_page(),
        "reference/releases.md": releases_page(),
        "reference/releases-matrix.md": matrix_page(),
    }
