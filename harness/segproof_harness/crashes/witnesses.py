# SPDX-License-Identifier: Apache-2.0
"""A violation as a directory: what the crash left, and how to see it again."""

from collections.abc import Iterator
from pathlib import Path

from segproof_harness.crashes.explore import Settings, Violation

__all__ = ["command_of", "described", "keep"]


def command_of(world: str, violation: Violation, settings: Settings) -> str:
    """Return the command that runs the history of a violation again."""
    history = " ".join(map(str, violation.history))
    return (
        f"segproof crash {world} --seeds {violation.seed}:{violation.seed + 1}"
        f" --history '{history}' --bound {settings.bound} --sector {settings.sector_bytes}"
        f" --second {settings.second} --modes {','.join(mode.name for mode in settings.modes)}"
        f"{' --faults' if settings.faults else ''}"
    )


def described(world: str, violation: Violation, settings: Settings) -> Iterator[str]:
    """Yield the lines that tell of a violation."""
    crash = "a crash in the recovery from a crash" if violation.is_second else "a crash"
    number = "" if violation.known is None else f" (known: {violation.known})"
    yield f"{violation.fault.kind}{number}: {violation.fault.words}"
    if violation.failing:
        yield f"  {violation.failing}"
    yield f"  {crash} in mode {violation.mode.name}, after:"
    for effect in violation.effects:
        yield f"    {effect}"
    yield f"  {command_of(world, violation, settings)}"


def keep(folder: Path, world: str, violation: Violation, settings: Settings) -> Path:
    """Write a violation into a new directory below `folder`, and return its path.

    `image` holds the files that the crash left, and `what.txt` what is wrong. Raises: OSError.
    """
    number = 0
    while (target := folder / f"{world}-{violation.seed}-{number}").exists():
        number += 1
    (target / "image").mkdir(parents=True)
    for name in sorted(violation.image.folders):
        (target / "image" / name.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name, data in violation.image.data().items():
        (target / "image" / name.lstrip("/")).write_bytes(data)
    text = "\n".join(described(world, violation, settings))
    (target / "what.txt").write_text(f"{text}\n", encoding="utf-8")
    return target
