# SPDX-License-Identifier: Apache-2.0
"""The pinned jars through Maven: fetch them, write the lock anew, ask which releases there are.

One run of Maven copies every jar that is wanted, each by its own coordinates: nothing is resolved
beyond the lock. Jars arrive in a scratch folder, and only one with the pinned SHA-256 is moved to
its place. Maven is used as its user has set it up: settings, mirrors, proxies, local repository.

`python -m segproof_harness.releases.maven --write-lock`, for developers, resolves the coordinates
of every release, with all they need, and writes the lock.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from segproof_harness.releases.jars import LOCK, Jar, jar_folder, sha256_of, wrong_jars
from segproof_harness.releases.pinned import PINNED, Release

PLUGIN = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1"
THREADS = 4
"""Modules that Maven works on at a time: most of the time it waits for downloads."""
PHASE = "validate"
"""The first of Maven's phases; the modules' copying is bound to it."""
POLL_SECONDS = 0.2
LINES_SHOWN = 4
ADVICE = ("To see", "Re-run", "For more", "After correcting", "[Help", "  mvn")
"""How the lines begin with which Maven closes: they tell nothing of what went wrong."""
LOCAL = "LOCAL"
"""What stands for Maven's local repository in the class paths that it writes."""
PROJECT = (
    '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
    "<groupId>segproof.oracle</groupId><artifactId>{name}</artifactId><version>1</version>"
    "<packaging>pom</packaging>{body}</project>\n"
)

Show = Callable[[int, int], None]


class MavenError(RuntimeError):
    """Maven can't be run, or did not deliver; the text says why."""


@dataclass(slots=True)
class Fetched:
    """What a fetch has done."""

    jars: int = 0
    """How many were fetched now."""
    size_bytes: int = 0
    wrong: list[str] = field(default_factory=list)
    """Jars that came and were refused, a sentence each."""


def fetch(
    releases: Iterable[Release],
    *,
    offline: bool = False,
    show: Show = lambda done, total: None,
) -> Fetched:
    """Get the jars that these releases still lack; what is there and right is left alone.

    `show` is called with the releases that Maven is through with, and with all of them. A jar whose
    SHA-256 is not that of the lock is removed again, and named in the answer.
    Raises: MavenError, after what did come is in its place; OSError for a folder that can't be
    written.
    """
    shares = dict(_shares(releases))
    done = Fetched()
    if not shares:
        return done
    mvn = shutil.which("mvn")
    if mvn is None:
        raise MavenError("mvn is not on PATH; install Maven 3.6.3 or newer")
    folder = jar_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder) as scratch:
        arrived = Path(scratch, "jars")
        pom = _write_poms(
            Path(scratch), {name: _copy_body(jars, arrived) for name, jars in shares.items()}
        )
        command = [mvn, *_options(pom, offline), f"-T{THREADS}", PHASE]
        problem = _run(command, Path(scratch, "log"), lambda: _show(shares, arrived, show))
        for jar in (jar for jars in shares.values() for jar in jars):
            _take(arrived / jar.path, jar, folder, done)
    if problem is not None:
        raise MavenError(problem)
    return done


def published(releases: Iterable[Release]) -> dict[str, set[str]]:
    """Return by system the versions that the registry has now, of what these releases come as.

    Maven begins with an empty local repository, so that it has to ask. Raises: MavenError.
    """
    mvn = shutil.which("mvn")
    if mvn is None:
        raise MavenError("mvn is not on PATH; install Maven 3.6.3 or newer")
    asked = {tuple(each.coordinates[0].split(":")[:2]): each.system for each in releases}
    found: dict[str, set[str]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        target, home = Path(scratch, "newest"), Path(scratch, "repository")
        items = "".join(
            f"<artifactItem><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            "<version>RELEASE</version><type>pom</type>"
            f"<outputDirectory>{escape(str(target))}</outputDirectory></artifactItem>"
            for group, artifact in asked
        )
        pom = _write_poms(Path(scratch), {"newest": _copying(items)})
        command = [mvn, *_options(pom, False), f"-Dmaven.repo.local={home}", PHASE]
        problem = _run(command, Path(scratch, "log"), lambda: None)
        if problem is not None:
            raise MavenError(problem)
        for (group, artifact), system in asked.items():
            place = home / group.replace(".", "/") / artifact
            for listed in place.glob("maven-metadata-*.xml"):
                versions = ElementTree.parse(listed).iter("version")
                found.setdefault(system, set()).update(each.text or "" for each in versions)
    return found


def _shares(releases: Iterable[Release]) -> Iterator[tuple[str, list[Jar]]]:
    """Yield what to fetch for each release: a jar of several goes to the first of them."""
    seen: set[Jar] = set()
    for release in releases:
        missing = [jar for jar in wrong_jars(release) if jar not in seen]
        seen.update(missing)
        if missing:
            yield release.name, missing


def _show(shares: dict[str, list[Jar]], arrived: Path, show: Show) -> None:
    through = sum((arrived / jars[-1].path).exists() for jars in shares.values())
    show(through, len(shares))


def _take(path: Path, jar: Jar, folder: Path, done: Fetched) -> None:
    """Move a jar that has arrived to its place, if it is the one that is pinned."""
    if not path.is_file():
        return
    found = sha256_of(path)
    if found != jar.sha256:
        name = ":".join(filter(None, jar.coordinates))
        done.wrong.append(
            f"{name}: Maven gave a file with SHA-256 {found}, pinned is {jar.sha256}; it is "
            "refused: look at Maven's mirrors and at its local repository"
        )
        return
    place = folder / jar.path
    place.parent.mkdir(parents=True, exist_ok=True)
    path.replace(place)
    done.jars += 1
    done.size_bytes += jar.size_bytes


def _options(pom: Path, offline: bool) -> list[str]:
    options = ["--batch-mode", "--fail-at-end", "-Dstyle.color=never", "--file", str(pom)]
    return [*options, "--offline"] if offline else options


def _write_poms(folder: Path, bodies: dict[str, str]) -> Path:
    """Write a project with a module for each body; return the path of its pom."""
    modules = "".join(f"<module>{name}</module>" for name in bodies)
    projects = {"all": f"<modules>{modules}</modules>", **bodies}
    for name, body in projects.items():
        path = folder / ("" if name == "all" else name) / "pom.xml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(PROJECT.format(name=name, body=body), encoding="utf-8")
    return folder / "pom.xml"


def _copy_body(jars: Iterable[Jar], target: Path) -> str:
    """Return what makes the goal `copy` bring exactly these jars, in a repository's layout."""
    items = []
    for jar in jars:
        group, artifact, version, classifier = jar.coordinates
        place = escape(str((target / jar.path).parent))
        items.append(
            f"<artifactItem><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version><classifier>{classifier}</classifier>"
            f"<outputDirectory>{place}</outputDirectory></artifactItem>"
        )
    return _copying("".join(items))


def _copying(items: str) -> str:
    group, artifact, version = PLUGIN.split(":")
    return (
        f"<build><plugins><plugin><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version><executions><execution><phase>{PHASE}</phase>"
        "<goals><goal>copy</goal></goals><configuration><artifactItems>"
        f"{items}</artifactItems></configuration></execution></executions></plugin>"
        "</plugins></build>"
    )


def _run(command: Sequence[str], log: Path, meanwhile: Callable[[], None]) -> str | None:
    """Run Maven; return what it says went wrong, or None if all is well."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
        )
        try:
            while process.poll() is None:
                meanwhile()
                time.sleep(POLL_SECONDS)
        finally:
            process.terminate()
            process.wait()
    if process.returncode == 0:
        return None
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    told = [line.removeprefix("[ERROR] ") for line in lines if line.startswith("[ERROR] ")]
    told = [line for line in told if line.strip() and not line.startswith(ADVICE)]
    shown = "\n".join((told or lines[-LINES_SHOWN:])[:LINES_SHOWN])
    return f"Maven failed with exit code {process.returncode}:\n{shown}"


def write_lock(path: Path = LOCK) -> None:
    """Resolve the coordinates of every release with all they need, and write the lock.

    Raises: MavenError.
    """
    mvn = shutil.which("mvn")
    if mvn is None:
        raise MavenError("mvn is not on PATH")
    with tempfile.TemporaryDirectory() as scratch:
        bodies = {name: _dependencies_body(release) for name, release in PINNED.items()}
        pom = _write_poms(Path(scratch), bodies)
        jars = Path(scratch, "jars")
        command = [mvn, *_options(pom, False)]
        command += [f"{PLUGIN}:copy-dependencies", f"-DoutputDirectory={jars}"]
        command += ["-Dmdep.useRepositoryLayout=true", f"{PLUGIN}:build-classpath"]
        command += ["-Dmdep.outputFile=class-path", f"-Dmdep.localRepoProperty={LOCAL}"]
        problem = _run(command, Path(scratch, "log"), lambda: None)
        if problem is not None:
            raise MavenError(problem)
        texts = []
        for name in PINNED:
            listed = Path(scratch, name, "class-path").read_text(encoding="utf-8").strip()
            paths = [entry.removeprefix(f"{LOCAL}/") for entry in listed.split(os.pathsep)]
            rows = [[each, (jars / each).stat().st_size, sha256_of(jars / each)] for each in paths]
            texts.append(f' "{name}": [\n' + ",\n".join(f"  {json.dumps(row)}" for row in rows))
    path.write_text("{\n" + "\n ],\n".join(texts) + "\n ]\n}\n", encoding="ascii")


def _dependencies_body(release: Release) -> str:
    texts = []
    for coordinates in release.coordinates:
        group, artifact, version = coordinates.split(":")
        texts.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
    return f"<dependencies>{''.join(texts)}</dependencies>"


if __name__ == "__main__":
    if sys.argv[1:] != ["--write-lock"]:
        sys.exit("usage: python -m segproof_harness.releases.maven --write-lock")
    with contextlib.suppress(KeyboardInterrupt):
        write_lock()
