# SPDX-License-Identifier: Apache-2.0
"""The pages of the profiles and of the releases: what differs, flag by flag.

Used by: docs/generate.py.
"""

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from segproof_harness.oracle.distinguishing import Distinction, read_distinctions, steps
from segproof_model.laws.registry import LAWS
from segproof_model.profiles import (
    KAFKA_PROFILES,
    PROFILES,
    ROCKETMQ_PROFILES,
    SEGPROOF,
    Profile,
    differences,
)

OPENING = f"""\
# Profiles

Who should read this: whoever compares segproof with a release, or reads files of an older one.

A profile is a named set of behaviours, data of the model: `{SEGPROOF.name}` is what
`segproof.kafka` and `segproof.rocketmq` do, and each other name is a release. A structure of the
one system has no profile of the other. A flag that a profile does not list below
has the newest release's value. Profiles so far:
{", ".join(f"`{name}`" for name in PROFILES)}. Nothing is claimed about a release
without one.
"""
DEVIATIONS = """\
## What segproof does otherwise

Upstream's oddities live in the model only. The implementation differs from the newest releases in
these flags, each on purpose: it never answers what can't be right, and never half changes a file.
"""
RELEASES = """\
## What older releases of {system} do otherwise

Against `{newest}`.
"""
ROCKETMQ_PREFIX = "rmq_"
"""How the flags of RocketMQ begin; all others are Kafka's."""
SYSTEMS = (("Kafka", KAFKA_PROFILES), ("RocketMQ", ROCKETMQ_PROFILES))

TRACES = Path(__file__).resolve().parent.parent / "reference" / "traces"
RELEASES_OPENING = """\
# Behaviour by release

Who should read this: whoever reads files of an older broker, or upgrades one, and wants to know
what the releases do differently; whoever doubts a [profile](profiles.md). This page is generated
from the profiles and from what the real classes answered.

A row is a behaviour, a flag of the profiles; a column is a release, the newest first. A value that
differs from the newest release's is linked to a history that shows it: run it with

```sh
segproof replay FLAG-RELEASE.jsonl --subjects model,RELEASE
```

and the real classes of that release answer as the table says. Such a history was found by changing
nothing but this flag in the model; then the real classes of the release and of the next newer one
were asked. What no history shows is marked, and rests on what is said below the table.
"""
RELEASES_OF = """
## {system}

{shown} of {count} differences are shown by a history and confirmed by the real classes.

"""
NOT_SHOWN = """
### Not shown by a history

| behaviour | releases | histories tried | why it stands |
| --- | --- | --- | --- |
"""
WHY = {
    "rebuild_ends_in_one_segment": "no history of 2.2.2 was found; what 0.11.0.3 does is shown by a"
    " trace of its own (`partition-log-end-of-producers-is-looked-up-below-0.11.jsonl`)",
    "removed_segments_go_together": "no history of 2.2.2 was found whose files can't be renamed;"
    " 1.1.1 is shown by a trace of its own (`partition-log-segments-go-one-by-one-1.1.jsonl`)",
    "metadata_version_is_exact": "no structure of the harness has the file partition.metadata: the"
    " classes of both releases were asked by hand",
    "snapshot_overwrites_in_place": "no log of these releases meets such a file, since it writes"
    " above all snapshots of its folder ({law}`PROD-6`): the classes of both were asked by hand",
    "snapshot_without_batch": "no log of these releases shows such a producer, whose last offset"
    " lies before any log start (`log_start_evicts_producers`): the dump tools of both say so",
}
"""What holds up a flag that no structure of the harness shows."""


def value_text(value: Any) -> str:
    """Return a flag's value as a reader expects it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"`{value}`"


def law_links(laws: tuple[str, ...]) -> str:
    """Return references to the laws; one that is not stated yet is plain."""
    return ", ".join(f"{{law}}`{law}`" if law in LAWS else law for law in laws)


def table(profile: Profile, newest: Profile) -> str:
    """Return the table of the differences of two profiles."""
    lines = [
        f"| flag | meaning | laws | {newest.name} | {profile.name} |",
        "| --- | --- | --- | --- | --- |",
    ]
    is_rocketmq = newest in ROCKETMQ_PROFILES
    for name, old, new, sentence, laws in differences(newest, profile):
        if name.startswith(ROCKETMQ_PREFIX) is not is_rocketmq:
            continue
        lines.append(
            f"| `{name}` | {sentence} | {law_links(laws)} | {value_text(old)} | {value_text(new)} |"
        )
    return "\n".join(lines) + "\n"


def _cell(profiles: Sequence[Profile], profile: Profile, flag: str, found: dict[Any, str]) -> str:
    value = getattr(profile, flag)
    text = value_text(value)
    if value == getattr(profiles[0], flag):
        return text
    name = found.get((flag, value))
    return f"{{download}}`{text.strip('`')} <traces/{name}>`" if name else text


def _releases_table(profiles: Sequence[Profile], rows: Sequence[Distinction]) -> str:
    confirmed = {(row.flag, row.older) for row in rows if row.confirmed and not row.refuted}
    found = {
        (step.flag, getattr(step.older, step.flag)): step.file_name
        for step in steps()
        if (step.flag, step.older.name) in confirmed
    }
    heads = " | ".join(profile.name.partition("-")[2] for profile in profiles)
    lines = [f"| behaviour | {heads} |", f"| --- |{' --- |' * len(profiles)}"]
    for item in fields(Profile):
        if item.name == "name" or len({getattr(one, item.name) for one in profiles}) == 1:
            continue
        sentence, laws = item.metadata["sentence"], item.metadata["laws"]
        known = law_links(tuple(law for law in laws if law in LAWS))
        cells = " | ".join(_cell(profiles, one, item.name, found) for one in profiles)
        lines.append(f"| `{item.name}`: {sentence} ({known}) | {cells} |")
    return "\n".join(lines) + "\n"


def _releases_of(system: str, profiles: Sequence[Profile], rows: Sequence[Distinction]) -> str:
    own = [row for row in rows if row.older.startswith(profiles[0].name.partition("-")[0])]
    shown = [row for row in own if row.confirmed and not row.refuted]
    text = RELEASES_OF.format(system=system, shown=len(shown), count=len(own)) + _releases_table(
        profiles, own
    )
    missing = [row for row in own if row not in shown]
    if missing:
        text += NOT_SHOWN
    for row in missing:
        why = WHY.get(row.flag, "read in the source of the release, not run")
        text += f"| `{row.flag}` | {row.older} and older | {row.seeds_tried} | {why} |\n"
    return text


def pages() -> dict[str, str]:
    """Return the pages by path."""
    parts = [OPENING, DEVIATIONS]
    for system, (newest, *_) in SYSTEMS:
        parts += [f"### {system}\n", table(SEGPROOF, newest)]
    for system, (newest, *older) in SYSTEMS:
        parts.append(RELEASES.format(system=system, newest=newest.name))
        for profile in older:
            parts += [f"### {profile.name}\n", table(profile, newest)]
    return {"reference/profiles.md": "\n".join(parts), "reference/releases.md": _releases()}


def _releases() -> str:
    rows = read_distinctions(TRACES / "record.jsonl")
    return RELEASES_OPENING + "".join(
        _releases_of(system, profiles, rows) for system, profiles in SYSTEMS
    )
