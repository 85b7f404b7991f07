# SPDX-License-Identifier: Apache-2.0
"""Which releases serve as oracle, and what each needs to run."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from segproof_model.releases import KAFKA, ROCKETMQ

System = Literal["kafka", "rocketmq"]

WHOLE = re.compile(r"\d+(\.\d+)+")
"""A version that is no candidate for a release."""
SCALA_2_13_SINCE = (2, 4)
"""The first Kafka whose core comes for Scala 2.13; older ones come for 2.12."""

OPEN_MODULES = (
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-exports=java.base/sun.nio.ch=ALL-UNNAMED",
)
"""What old releases reach into to unmap files; newer ones are not harmed by it."""
WITHOUT_STACK_TRACES = "-XX:-StackTraceInThrowable"
"""Exceptions are answers here, one operation in three: their kind is told, not where they arose."""
FOR_SHORT_LIVES = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
"""A JVM that compiles quickly, and collects with one thread. It trusts the classes: each jar has
the digest of the lock, and to verify them takes a fifth of a broker's start."""
FOR_SHORT_CALLS = (*FOR_SHORT_LIVES, "-Xmn8m")
"""The same, with new objects in memory that stays in the processor's cache: between short calls
Python works."""


@dataclass(frozen=True, slots=True)
class Release:
    """One published release."""

    system: System
    version: str
    part: Literal["", "broker", "tools"] = ""
    """What comes with it that no subject needs: a logger, for a broker; its command-line tools."""

    @property
    def name(self) -> str:
        """Its name, which is that of its profile.

        >>> Release("kafka", "4.4.0").name
        'kafka-4.4.0'
        """
        return "-".join(filter(None, (self.system, self.part, self.version)))

    @property
    def number(self) -> tuple[int, ...]:
        """Its version, to be compared.

        >>> Release("kafka", "0.11.0.3").number < (1, 1)
        True
        """
        return _number_of(self.version)

    @property
    def coordinates(self) -> tuple[str, ...]:
        """What Maven resolves, as `group:artifact:version`; the lock lists every jar of it."""
        if self.system == "rocketmq":
            group = "com.alibaba" if self.number < (4,) else "org.apache"
            return (f"{group}.rocketmq:rocketmq-store:{self.version}",)
        scala = "2.13" if self.number >= SCALA_2_13_SINCE else "2.12"
        core = (f"org.apache.kafka:kafka_{scala}:{self.version}",)
        more = {
            "broker": ("org.slf4j:slf4j-simple:1.7.36",),
            "tools": (f"org.apache.kafka:kafka-tools:{self.version}",),
        }
        return core + more.get(self.part, ())

    @property
    def java_options(self) -> tuple[str, ...]:
        """What its JVM is started with."""
        settings = ("-Xmx700m", "-Duser.timezone=UTC", *FOR_SHORT_CALLS)
        return (*OPEN_MODULES, *settings, WITHOUT_STACK_TRACES)


@cache
def _number_of(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


RELEASES = {
    release.name: release
    for release in (
        *(Release("kafka", version) for version in KAFKA),
        *(Release("rocketmq", version) for version in ROCKETMQ),
    )
}
"""Every release that the model knows by name, the newest of each system first."""

NEWEST = (RELEASES[f"kafka-{KAFKA[0]}"], RELEASES[f"rocketmq-{ROCKETMQ[0]}"])
"""The newest release of each system."""

BROKER = Release("kafka", "4.4.0", part="broker")
"""What a real broker is started from: `kafka-broker-4.4.0` in the lock. It is no subject."""
TOOLS = Release("kafka", "4.3.1", part="tools")
"""The newest tools that are published: of 4.4.0 there are none. They are no subject either."""

PINNED = {**RELEASES, BROKER.name: BROKER, TOOLS.name: TOOLS}
"""Everything that the lock has jars for."""


def unserved(system: System, versions: Iterable[str]) -> dict[str, str | None]:
    """Return the newest of each line of versions, where none as new is served, the newest first.

    With each the newest of its line that is, or None. Lines older than all that are served, and
    what is no whole release, are left out.

    >>> unserved("kafka", ["4.3.0", "4.3.99", "3.8.0", "3.8.1", "5.0.0-rc1", "0.9.0.1"])
    {'4.3.99': '4.3.1', '3.8.1': None}
    """
    served = [each for each in RELEASES.values() if each.system == system]
    newest: dict[tuple[int, ...], Release] = {}
    for release in served:
        newest.setdefault(_line_of(release.version), release)
    found: dict[tuple[int, ...], str] = {}
    for version in sorted(filter(WHOLE.fullmatch, versions), key=_number_of):
        found[_line_of(version)] = version
    return {
        version: newest[line].version if line in newest else None
        for line, version in sorted(found.items(), reverse=True)
        if line >= min(newest) and (line not in newest or _number_of(version) > newest[line].number)
    }


def _line_of(version: str) -> tuple[int, ...]:
    """Return the numbers of a version but for the last, that of the patch."""
    return _number_of(version)[:-1]


def release_named(name: str) -> Release:
    """Return the release. Raises ValueError with the known names."""
    if name not in RELEASES:
        raise ValueError(f"no release {name!r}; known: {', '.join(RELEASES)}")
    return RELEASES[name]
