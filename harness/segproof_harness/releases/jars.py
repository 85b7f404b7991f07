# SPDX-License-Identifier: Apache-2.0
"""The pinned jars of every release: where they lie, and that they are the right ones.

The lock lists, for each release, the jars of its class path in the layout of a Maven repository,
with size and SHA-256.

Layout of the lock: {"RELEASE": [[path below the folder, size_bytes, sha256], ...], ...}.
"""

import hashlib
import json
import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from segproof.kernels.dispatch import user_cache
from segproof_harness.releases.pinned import Release

FOLDER_VARIABLE = "SEGPROOF_ORACLE_JARS"
"""The environment variable that names a folder of jars, in the layout of a Maven repository."""
LOCK = Path(__file__).with_name("jars.lock.json")
QUIET = Path(__file__).with_name("quiet")
"""Settings of loggers: old releases read them from the class path, and print without them."""


@dataclass(frozen=True, slots=True)
class Jar:
    """One jar of the lock."""

    path: str
    """Below the folder: `group/artifact/version/artifact-version[-classifier].jar`."""
    size_bytes: int
    sha256: str

    @property
    def coordinates(self) -> tuple[str, str, str, str]:
        """Group, artifact, version and classifier; the last is empty for most.

        >>> Jar("io/netty/netty-x/4.1/netty-x-4.1-linux-x86_64.jar", 0, "").coordinates
        ('io.netty', 'netty-x', '4.1', 'linux-x86_64')
        """
        *group, artifact, version, file_name = self.path.split("/")
        rest = file_name.removeprefix(f"{artifact}-{version}").removesuffix(".jar")
        return ".".join(group), artifact, version, rest.removeprefix("-")


def jar_folder() -> Path:
    """Return the folder of the jars: that of the environment variable, else the user's cache."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named).absolute()
    return Path(user_cache()).absolute() / "segproof" / "jars"


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
    folder, jars = jar_folder(), pinned_jars(release)
    sizes = [_size_of(folder / jar.path) for jar in jars]
    absent = [jar for jar, size in zip(jars, sizes, strict=True) if size is None]
    if absent:
        return f"{len(absent)} of {len(jars)} jars are not in {folder}, such as {absent[0].path}"
    for jar, size in zip(jars, sizes, strict=True):
        if size != jar.size_bytes:
            return f"{folder / jar.path} has not the size that is pinned"
    return None


def _size_of(path: Path) -> int | None:
    """Return the size of a file, or None where there is none that can be looked at."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def wrong_jars(release: Release) -> dict[Jar, str]:
    """Return the jars of a release that are not there, or not the right ones, and what is wrong."""
    folder = jar_folder()
    problems = ((jar, _problem_with(folder / jar.path, jar)) for jar in pinned_jars(release))
    return {jar: problem for jar, problem in problems if problem is not None}


def _problem_with(path: Path, jar: Jar) -> str | None:
    try:
        found = sha256_of(path)
    except FileNotFoundError:
        return f"{path} is missing"
    except OSError as error:
        return f"{path} can't be read: {error.strerror}"
    if found == jar.sha256:
        return None
    return f"{path} is not the jar that is pinned: its SHA-256 is {found}, not {jar.sha256}"


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def class_path(release: Release) -> tuple[Path, ...]:
    """Return the class path of a release, each jar of which has the SHA-256 of the lock now.

    Raises: FileNotFoundError that says which jar is missing, OSError for one that is not the right
    one, both with how to get it.
    """
    remedy = f"; run: `segproof oracle fetch {release.name}`"
    problem = problem_of(release)
    if problem is not None:
        raise FileNotFoundError(problem + remedy)
    if wrong := wrong_jars(release):
        raise OSError(next(iter(wrong.values())) + remedy)
    folder = jar_folder()
    return tuple(folder / jar.path for jar in pinned_jars(release))


def extra_folders(release: Release) -> tuple[Path, ...]:
    """Return the folders that come before the jars on the class path."""
    return (QUIET,)
