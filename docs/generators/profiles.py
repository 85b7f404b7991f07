# SPDX-License-Identifier: Apache-2.0
"""The page of the profiles, docs/reference/profiles.md: what differs, flag by flag.

Used by: docs/generate.py.
"""

from typing import Any

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


def pages() -> dict[str, str]:
    """Return the page by path."""
    parts = [OPENING, DEVIATIONS]
    for system, (newest, *_) in SYSTEMS:
        parts += [f"### {system}\n", table(SEGPROOF, newest)]
    for system, (newest, *older) in SYSTEMS:
        parts.append(RELEASES.format(system=system, newest=newest.name))
        for profile in older:
            parts += [f"### {profile.name}\n", table(profile, newest)]
    return {"reference/profiles.md": "\n".join(parts)}
