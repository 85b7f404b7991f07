# SPDX-License-Identifier: Apache-2.0
"""The pinned jars of every release: where they lie, and that they are the right ones.

The lock lists, for each release, the jars of its class path in the layout of a Maven repository,
with size and SHA-256.

Layout of the lock: {"RELEASE": [[path below the folder, size_bytes, sha256], ...], ...}.
Used by: oracle.child, the verb `oracle`.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from segproof_harness.oracle.releases import Release

__all__ = ["FOLDER_VARIABLE", "Jar", "class_path", "extra_folders", "jar_folder", "pinned_jars"]

FOLDER_VARIABLE = "SEGPROOF_ORACLE_JARS"
"""The environment variable that names a folder of jars, in the layout of a Maven repository."""
LOCK = Path(__file__).with_name("jars.lock.json")
QUIET = Path(__file__).with_name("quiet")
"""Settings of loggers: old releases read them from the class path, and print without them."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar of the lock."""

    path: str
    """Below the folder: `group/artifact/version/artifact-version.jar`."""
    size_bytes: int
    sha256: str


def jar_folder() -> Path:
    """Return the folder of the jars: that of the environment variable, else the user's cache."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named)
    cache_home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache_home) / "segproof" / "jars"


@cache
def _lock() -> dict[str, tuple[Jar, ...]]:
    written = json.loads(LOCK.read_text(encoding="ascii"))
    return {name: tuple(Jar(*row) for row in rows) for name, rows in written.items()}


def pinned_jars(release: Release) -> tuple[Jar, ...]:
    """Return the jars of a release, in the order of its class path."""
    return _lock()[release.name]


def problem_of(release: Release) -> str | None:
    """Return why the jars of a release can't be used, in words, or None if they can.

    Sizes are compared here; digests by `wrong_jars`.
    """
    folder = jar_folder()
    for jar in pinned_jars(release):
        path = folder / jar.path
        if not path.is_file():
            return f"{path} is missing"
        if path.stat().st_size != jar.size_bytes:
            return f"{path} has not the size that is pinned"
    return None


def wrong_jars(release: Release) -> list[str]:
    """Return what is wrong with the jars of a release, a sentence each, by digest."""
    folder = jar_folder()
    found = []
    for jar in pinned_jars(release):
        path = folder / jar.path
        if not path.is_file():
            found.append(f"{path} is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != jar.sha256:
            found.append(f"{path} is not the jar that is pinned: its SHA-256 differs")
    return found


def class_path(release: Release) -> tuple[Path, ...]:
    """Return the class path of a release.

    Raises: FileNotFoundError that says which jar is missing and how to get it.
    """
    problem = problem_of(release)
    if problem is not None:
        raise FileNotFoundError(f"{problem}: run segproof oracle fetch {release.name}")
    folder = jar_folder()
    return tuple(folder / jar.path for jar in pinned_jars(release))


def extra_folders(release: Release) -> tuple[Path, ...]:
    """Return the folders that come before the jars on the class path."""
    return (QUIET,)
