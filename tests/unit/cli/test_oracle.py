# SPDX-License-Identifier: Apache-2.0
"""The verbs `oracle`: what is fetched, what is refused, what is said; a script stands for Maven."""

import hashlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from segproof_harness import cli
from segproof_harness.conformance import sample_check as checking
from segproof_harness.releases import jars, readiness
from segproof_harness.releases.jars import FOLDER_VARIABLE, Jar
from segproof_harness.releases.pinned import PINNED, RELEASES
from segproof_harness.releases.readiness import READY, Readiness
from segproof_tests.printed_rows import Capsys

SHARED, OWN = "org/shared/1/shared-1.jar", "org/{name}/2/{name}-2-linux.jar"
NEWEST, OLDER = "kafka-4.4.0", "kafka-4.2.1"
MAVEN = """#!{python}
import pathlib, sys
from xml.etree import ElementTree
home = pathlib.Path({home!r})
with open(home / "called", "a") as called:
    print(*sys.argv[1:], file=called)
space = "{{http://maven.apache.org/POM/4.0.0}}"
pom = pathlib.Path(sys.argv[sys.argv.index("--file") + 1])
code = 0
for module in ElementTree.parse(pom).iter(space + "module"):
    project = ElementTree.parse(pom.parent / module.text / "pom.xml")
    for item in project.iter(space + "artifactItem"):
        told = {{each.tag.removeprefix(space): each.text for each in item}}
        if told["version"] == "RELEASE":
            (option,) = [each for each in sys.argv if each.startswith("-Dmaven.repo.local=")]
            place = pathlib.Path(option.partition("=")[2], *told["groupId"].split("."))
            (place / told["artifactId"]).mkdir(parents=True)
            listed = (home / told["artifactId"]).read_text()
            (place / told["artifactId"] / "maven-metadata-x.xml").write_text(listed)
            continue
        name = "-".join(filter(None, map(told.get, ("artifactId", "version", "classifier"))))
        stored = home / "remote" / (name + ".jar")
        with open(home / "asked", "a") as asked:
            print(stored.name, file=asked)
        if stored.exists():
            place = pathlib.Path(told["outputDirectory"])
            place.mkdir(parents=True)
            (place / stored.name).write_bytes(stored.read_bytes())
        else:
            print("[INFO] noise")
            print("[ERROR] could not resolve " + name)
            code = 1
sys.exit(code)
"""


def content(path: str) -> bytes:
    """Return what the jar of this path holds."""
    return f"jar {path}".encode()


def pinned(path: str) -> Jar:
    """Return a row of the lock."""
    return Jar(path, len(content(path)), hashlib.sha256(content(path)).hexdigest())


class Maven:
    """A script in Maven's place, and the repository that it asks."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.remote = home / "remote"
        self.remote.mkdir()
        script = home / "mvn"
        script.write_text(MAVEN.format(python=sys.executable, home=str(home)), encoding="utf-8")
        script.chmod(0o755)

    def offer(self, *names: str) -> None:
        """Let the repository have the jars of these releases."""
        for path in (SHARED, *(OWN.format(name=name) for name in names)):
            (self.remote / Path(path).name).write_bytes(content(path))

    def lines(self, name: str) -> list[str]:
        """Return what the script has written down: `called` or `asked`."""
        path = self.home / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maven:
    """Let there be a lock of small jars, Java, JPype, an empty folder and a Maven."""
    home = tmp_path / "bin"
    home.mkdir()
    lock = {name: (pinned(SHARED), pinned(OWN.format(name=name))) for name in PINNED}
    monkeypatch.setattr(jars, "_lock", lambda: lock)
    monkeypatch.setattr(readiness, "readiness_of_machine", lambda: Readiness(READY))
    monkeypatch.setattr(checking, "readiness_of_machine", lambda: Readiness("not run: no Java"))
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "jars"))
    monkeypatch.setenv("PATH", str(home))
    return Maven(home)


def run(capsys: Capsys, *arguments: str, code: int = 0) -> tuple[dict[str, Any], str]:
    """Run `oracle`; return the rows by release, and what it said beside."""
    assert code == cli.run(["oracle", *arguments, "--format", "jsonl"])
    shown = capsys.readouterr()
    rows = map(json.loads, shown.out.splitlines())
    return {row["release"]: row for row in rows}, shown.err


def test_list_says_why_a_release_is_not_ready(maven: Maven, capsys: Capsys) -> None:
    """Each release has a state; what is not fetched says how to fetch it."""
    rows, said = run(capsys, "list")
    assert list(PINNED) == list(rows)
    assert rows[NEWEST]["state"].startswith("not fetched: 2 of 2 jars are not in ")
    assert f"run: `segproof oracle fetch {NEWEST}`" == rows[NEWEST]["remedy"]
    assert f"0 of {len(PINNED)} releases ready" in said
    assert "segproof oracle fetch" in said
    checked, said = run(capsys, "check", NEWEST, code=1)
    assert rows[NEWEST]["state"] == checked[NEWEST]["state"]
    assert 1 == sum(
        "jars" in one for one in checked[NEWEST]["problems"]
    )  # once a line for each jar
    assert "remedy: run: `segproof oracle fetch`" in said
    assert 1 == cli.run(["oracle", "check", NEWEST])
    assert capsys.readouterr().out.endswith(" not fetched: 2 of 2 jars\n")


def test_list_without_java_and_without_jpype(
    maven: Maven, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the machine lacks comes before what is not fetched."""
    monkeypatch.undo()
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    rows, said = run(capsys, "list")
    assert {"not run: no Java found"} == {row["state"] for row in rows.values()}
    assert "remedy: install Java" in said
    monkeypatch.setattr(readiness, "_java_problem", lambda home, path: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    rows, said = run(capsys, "list")
    assert {"not run: JPype1 is not installed"} == {row["state"] for row in rows.values()}
    assert "remedy: `pip install 'segproof[oracle]'`" in said


@pytest.mark.parametrize("verb", [("run", NEWEST), ("distinguish", "CallIsIndexedAsAWhole")])
def test_what_needs_a_release_is_refused_before_it_begins(
    maven: Maven,
    capsys: Capsys,
    monkeypatch: pytest.MonkeyPatch,
    verb: tuple[str, ...],
) -> None:
    """Without jars, and without Java, one line says that nothing ran and what to do."""
    monkeypatch.chdir(maven.home)
    assert 2 == cli.run(["oracle", *verb])
    said = capsys.readouterr().err
    assert re.search(
        r"oracle: not run: \d releases? (is|are) not fetched; run: `seg.* kafka-", said
    )
    lacking = Readiness("not run: no Java found", "install Java")
    monkeypatch.setattr(readiness, "readiness_of_machine", lambda: lacking)
    assert 2 == cli.run(["oracle", *verb])
    assert "oracle: not run: no Java found; install Java" in capsys.readouterr().err
    assert not (maven.home / "traces").exists()


def test_fetch_brings_what_is_missing_and_no_more(
    maven: Maven, capsys: Capsys, tmp_path: Path
) -> None:
    """A jar of two releases is asked for once; what is there and right is not asked for again."""
    maven.offer(NEWEST, OLDER)
    rows, said = run(capsys, "fetch", NEWEST, OLDER)
    assert ["fetched", "fetched"] == [rows[name]["state"] for name in (NEWEST, OLDER)]
    assert "fetched now: 3 jars" in said
    assert 3 == len(maven.lines("asked")) == len(set(maven.lines("asked")))
    assert "--offline" not in maven.lines("called")[0]
    assert content(SHARED) == (tmp_path / "jars" / SHARED).read_bytes()
    assert [] == list((tmp_path / "jars").glob(".fetch*"))
    _, said = run(capsys, "fetch", NEWEST, OLDER)
    assert "fetched now: 0 jars" in said
    assert 1 == len(maven.lines("called"))
    rows, _ = run(capsys, "list")
    assert "ready" == rows[NEWEST]["state"]


def test_fetch_refuses_a_jar_that_is_not_the_pinned_one(
    maven: Maven, capsys: Capsys, tmp_path: Path
) -> None:
    """It is named, does not reach the folder, and the exit code is that of findings."""
    maven.offer(NEWEST)
    path = OWN.format(name=NEWEST)
    (maven.remote / Path(path).name).write_bytes(b"something else")
    rows, said = run(capsys, "fetch", NEWEST, code=1)
    assert f"org:{NEWEST}:2:linux: Maven gave a file with SHA-256 " in said
    assert "refused" in said
    assert not (tmp_path / "jars" / path).exists()
    assert rows[NEWEST]["state"].startswith("not fetched: 1 of 2 jars")


def test_fetch_keeps_what_came_when_maven_fails(
    maven: Maven, capsys: Capsys, tmp_path: Path
) -> None:
    """Maven's own words are shown; the jars that it did bring stay."""
    maven.offer(NEWEST)
    assert 2 == cli.run(["oracle", "fetch", NEWEST, OLDER, "--offline"])
    said = capsys.readouterr().err
    assert f"could not resolve {OLDER}-2-linux" in said
    assert "noise" not in said
    assert "without --offline" in said
    assert "--offline" in maven.lines("called")[0]
    assert (tmp_path / "jars" / OWN.format(name=NEWEST)).exists()


def test_fetch_without_maven(maven: Maven, capsys: Capsys, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is usage, and says what to install; with nothing to fetch Maven is not needed."""
    maven.offer(NEWEST)
    run(capsys, "fetch", NEWEST)
    monkeypatch.setenv("PATH", "/nonexistent")
    run(capsys, "fetch", NEWEST)
    assert 2 == cli.run(["oracle", "fetch", OLDER])
    assert "mvn is not on PATH; install Maven" in capsys.readouterr().err


def test_fetch_into_a_folder_that_can_not_be(
    maven: Maven,
    capsys: Capsys,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    """The folder is named, and the variable that names another."""
    (tmp_path / "file").touch()
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file" / "jars"))
    assert 2 == cli.run(["oracle", "fetch", NEWEST])
    said = capsys.readouterr().err
    assert str(tmp_path / "file") in said
    assert FOLDER_VARIABLE in said


def test_releases_tells_what_is_published_and_not_known(
    maven: Maven, capsys: Capsys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Newer patches and lines of which none is known; nothing that is known, old or a candidate."""
    published = {
        "kafka_2.13": ["3.8.0", "3.8.1", "4.3.0", "4.3.99", "99.0.0", "99.1.0-rc1", "4.4.0"],
        "kafka_2.12": ["0.9.0.1", "0.10.2.2"],
        "rocketmq-store": ["5.5.1", "5.99.0-SNAPSHOT"],
    }
    for artifact, versions in published.items():
        text = "".join(f"<version>{each}</version>" for each in versions)
        (maven.home / artifact).write_text(f"<metadata>{text}</metadata>", encoding="utf-8")
    rows, said = run(capsys, "releases")
    found = {"kafka-99.0.0": None, "kafka-4.3.99": "kafka-4.3.1", "kafka-3.8.1": None}
    assert found == {name: row["known"] for name, row in rows.items()}
    assert "3 releases not known" in said
    monkeypatch.setenv("PATH", "/nonexistent")
    assert 2 == cli.run(["oracle", "releases"])
    assert "oracle releases: not run: mvn is not on PATH" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["fetch", "check"])
def test_an_unknown_release_is_usage(verb: str, capsys: Capsys) -> None:
    """The message lists those that are known."""
    assert 2 == cli.run(["oracle", verb, "kafka-0.7"])
    assert NEWEST in capsys.readouterr().err


def test_check_names_a_jar_with_one_byte_changed(
    maven: Maven, capsys: Capsys, tmp_path: Path
) -> None:
    """Sizes can't tell it; check does, exit code 1; fetch brings the right one again."""
    maven.offer(NEWEST)
    run(capsys, "fetch", NEWEST)
    path = tmp_path / "jars" / OWN.format(name=NEWEST)
    path.write_bytes(b"J" + path.read_bytes()[1:])
    rows, _ = run(capsys, "check", NEWEST, code=1)
    problems = rows[NEWEST]["problems"]
    assert "broken" == rows[NEWEST]["state"]
    assert problems[0].startswith(f"{path} is not the jar that is pinned: its SHA-256 is ")
    _, said = run(capsys, "fetch", NEWEST)
    assert "fetched now: 1 jar," in said
    assert content(OWN.format(name=NEWEST)) == path.read_bytes()


def test_check_without_java_is_not_clean(maven: Maven, capsys: Capsys) -> None:
    """Right jars alone answer nothing: what can't be started is not ready."""
    maven.offer(NEWEST)
    run(capsys, "fetch", NEWEST)
    assert 1 == cli.run(["oracle", "check", NEWEST])
    shown = capsys.readouterr()
    assert f"error: {NEWEST}: not run: no Java" in shown.out
    assert "0 of 1 release ready" in shown.err


@pytest.mark.parametrize("profile", [NEWEST, "segproof"])
def test_replay_on_a_release_that_is_not_fetched(
    profile: str, maven: Maven, capsys: Capsys
) -> None:
    """It is usage, and names the command that fetches it."""
    command = ["replay", "--structure", "offset-index", "--profile", profile]
    assert 2 == cli.run([*command, "--subjects", f"model,{NEWEST}"])
    shown = capsys.readouterr()
    assert "" == shown.out
    assert f"{NEWEST}: oracle: not run: not fetched: 2 of 2 jars" in shown.err
    assert f"run: `segproof oracle fetch {NEWEST}`" in shown.err


def test_doctor_counts_the_releases(maven: Maven, capsys: Capsys) -> None:
    """Releases that are not fetched read `not run`, with the remedy."""
    assert 0 == cli.run(["doctor", "--format", "jsonl"])
    rows = {row["name"]: row for row in map(json.loads, capsys.readouterr().out.splitlines())}
    assert "not run" == rows["oracle"]["state"]
    assert rows["oracle"]["detail"].startswith(f"0 of {len(RELEASES)} releases in ")
    assert "segproof oracle fetch" == rows["oracle"]["remedy"]


def test_the_lock_is_complete() -> None:
    """Every release has jars, the first of them its own; each row can be asked of Maven."""
    lock = jars._lock()
    assert set(PINNED) == set(lock)
    for name, rows in lock.items():
        group, artifact, version = PINNED[name].coordinates[0].split(":")
        assert (group, artifact, version, "") == rows[0].coordinates
        for jar in rows:
            group, artifact, version, classifier = jar.coordinates
            file_name = "-".join(filter(None, (artifact, version, classifier))) + ".jar"
            assert f"{group.replace('.', '/')}/{artifact}/{version}/{file_name}" == jar.path
            assert 64 == len(jar.sha256)
            assert jar.size_bytes > 0


def test_a_jar_is_the_pinned_one_whenever_it_is_used(maven: Maven, capsys: Capsys) -> None:
    """One that was changed after it was fetched, to as many bytes, was run."""
    maven.offer(NEWEST)
    run(capsys, "fetch", NEWEST)
    first, _ = jars.class_path(PINNED[NEWEST])
    first.write_bytes(first.read_bytes()[::-1])
    assert jars.problem_of(PINNED[NEWEST]) is None
    with pytest.raises(OSError, match=rf"is not the jar.*; run: `segproof oracle fetch {NEWEST}`"):
        jars.class_path(PINNED[NEWEST])
    run(capsys, "fetch", NEWEST)
    assert first == jars.class_path(PINNED[NEWEST])[0]


def test_a_relative_folder_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The child works in another folder: a relative name would mean another place there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(FOLDER_VARIABLE, "jars")
    assert Path(os.getcwd(), "jars") == jars.jar_folder()
