# SPDX-License-Identifier: Apache-2.0
"""Log directories of a broker: folders that end a start, partitions twice, missing small files."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from segproof.findings import Finding, Severity, Verdict
from segproof.inventory import folder_extents
from segproof.verification import partition_places, verify
from segproof_harness import cli
from segproof_harness.files.shipped_directories import KAFKA, partition_of
from segproof_harness.reports.verdicts import split_commands
from segproof_tests.changed_bytes import flip_bits
from segproof_tests.partition_files import split_copies
from segproof_tests.printed_rows import Capsys, jsonl
from segproof_tests.reported_findings import verified

PLAIN = partition_of(KAFKA / "plain")


def ids(
    node: int = 1,
    directory: str = "a",
    *,
    version: int = 1,
    cluster: str = "I2eXt9rvSnyhct8BYmW6-w",
) -> str:
    """Return the text of a `meta.properties`; `directory` is one letter of its id, or nothing."""
    key = "node.id" if version else "broker.id"
    text = f"#\nversion={version}\n{key}={node}\ncluster.id={cluster}\n"
    return text + (f"directory.id={directory * 22}\n" if directory else "")


def broker(folder: Path, *, node: int = 1, directory: str = "a", version: int = 1) -> Path:
    """Return a log directory with one partition."""
    shutil.copytree(PLAIN, folder / "plain-0")
    (folder / "meta.properties").write_text(ids(node, directory, version=version))
    return folder


def of(path: Path, law: str) -> list[Finding]:
    """Return the findings of one law."""
    return list(verify(path, laws=[law]))


@pytest.mark.checks("DISK-47")
@pytest.mark.parametrize("name", ["lost+found", ".snapshot", "data", "analytics", "plain-0.bak"])
def test_a_folder_that_ends_a_start_is_an_error(tmp_path: Path, name: str) -> None:
    """`verify` said nothing of these folders, or that Kafka does not read them."""
    data = broker(tmp_path / "data")
    (data / name).mkdir()
    (data / name / "of-others").symlink_to("/no/such/place")
    (one,) = of(data, "DISK-47")
    assert (str(data / name), Severity.ERROR) == (one.path, one.severity)
    assert "Kafka's start ends here" in one.message
    assert not [two for two in verify(data) if two.law == "DISK-3" and two.path == one.path]


ODD_NAMES = {
    "orders-+5": "partition 5 of topic orders: at its",
    "topic-\u0663": "partition 3 of topic topic: at its",
    "plain-0.bak-stray": "partition 0 of topic plain (one of those that end in -stray): at its",
    "plain-0.bak-delete": "partition 0 of topic plain that is to be deleted, and deletes it",
    f"plain-0.{'a' * 31}-delete": "partition 0 of topic plain that is to be deleted",
}


@pytest.mark.checks("DISK-3")
@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize(
    ("content", "is_brokers"), [("empty", True), ("folder", False), ("partition", True)]
)
def test_a_folder_that_kafka_takes_for_a_partition(
    tmp_path: Path, name: str, content: str, *, is_brokers: bool
) -> None:
    """ "Kafka does not read it" was said of these; one that it deletes was sound."""
    data = broker(tmp_path / "data")
    if not is_brokers:
        (data / "meta.properties").unlink()
    (data / name).mkdir()
    if content == "folder":
        (data / name / "files").mkdir()
    elif content == "partition":
        shutil.copytree(PLAIN, data / name, dirs_exist_ok=True)
    (found,) = [one for one in of(data, "DISK-3") if one.path == str(data / name)]
    assert ODD_NAMES[name] in found.message
    is_warned = name.endswith("-delete") and is_brokers
    assert (Severity.WARNING if is_warned else Severity.NOTE) is found.severity
    assert name.endswith("-delete") is ("copy the folder to another disk" in found.hint)
    assert "does not read" not in found.hint


@pytest.mark.checks("DISK-3")
def test_a_trash_folder_is_a_partition_for_kafka(tmp_path: Path) -> None:
    """`.Trash-1000` of a desktop is the name of a topic and a partition."""
    data = broker(tmp_path / "data")
    (data / ".Trash-1000" / "files").mkdir(parents=True)
    (found,) = of(data, "DISK-3")
    assert "partition 1000 of topic .Trash: at its next start it makes files" in found.message
    (data / "meta.properties").unlink()
    (found,) = of(data, "DISK-3")
    assert "neither a partition" in found.message


@pytest.mark.checks("DISK-47")
def test_partitions_in_a_foreign_folder_are_verified_too(tmp_path: Path) -> None:
    """The start ends at the folder; what is in it may be what somebody looks for."""
    data = broker(tmp_path / "data")
    shutil.copytree(PLAIN, data / "old" / "gone-0")
    (one,) = of(data, "DISK-47")
    assert str(data / "old") == one.path
    told: list[str] = []
    list(verify(data, on_summary=lambda summary: told.append(summary.path)))
    assert str(data / "old" / "gone-0") in told


@pytest.mark.checks("DISK-3")
def test_what_is_no_folder_ends_no_start(tmp_path: Path) -> None:
    """Kafka passes over files and over links that lead nowhere: notes."""
    data = broker(tmp_path / "data")
    (data / "link").symlink_to("/no/such/place")
    (data / "notes.txt").write_text("x")
    found = [one for one in verify(data) if one.law in ("DISK-3", "DISK-47")]
    assert {"link", "notes.txt"} == {Path(one.path).name for one in found}
    assert {Severity.NOTE} == {one.severity for one in found}


@pytest.mark.checks("DISK-48")
def test_a_partition_in_two_directories_of_a_broker(tmp_path: Path, capsys: Capsys) -> None:
    """Both were sound, below one path and as two paths of one call."""
    one, two = broker(tmp_path / "one"), broker(tmp_path / "two", directory="b")
    for path in (two / "plain-0").glob("00000000000000000693.*"):
        path.unlink()
    found = of(tmp_path, "DISK-48")
    assert [str(one / "plain-0"), str(two / "plain-0")] == [each.path for each in found]
    assert ["this copy has more" in found[0].message, f"{one}/plain-0 has more" in found[1].message]
    assert {Severity.ERROR} == {each.severity for each in found}
    command = found[1].reproduce.split()[1:]
    for given in (["verify", str(one), str(two), "--law", "DISK-48"], command):
        rows = jsonl(capsys, *given, code=1)
        paths = {row["path"] for row in rows if row.get("type") is None}
        assert {str(one / "plain-0"), str(two / "plain-0")} == paths
        verdicts = {row["verdict"] for row in rows if row.get("kind") == "partition"}
        assert {Verdict.READABLE_WITH_DEFECTS.value} == verdicts
    assert not list(verify(one, laws=["DISK-48"]))
    assert list(verify(one, laws=["DISK-48"], beside=partition_places([one, two])))


@pytest.mark.checks("DISK-48")
@pytest.mark.parametrize("most", [149, 150, 10**9])
def test_so_many_batches_of_two_folders_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """All batches of two folders were kept in memory, however many they were."""
    monkeypatch.setattr(folder_extents, "BATCHES_MAX", most)
    broker(tmp_path / "one")
    broker(tmp_path / "two", directory="b")
    found = of(tmp_path, "DISK-48")
    words = "both have the same batches" if most >= 150 else "too many batches to be compared"
    assert [True, True] == [words in one.message for one in found]
    assert [most < 150] * 2 == [
        one.message.count("more than 149 sound batches") == 2 for one in found
    ]
    assert [most < 150] * 2 == ["compare what was saved" in one.hint for one in found]


@pytest.mark.checks("DISK-48")
def test_one_folder_that_a_link_names_again(tmp_path: Path) -> None:
    """The hint said to move one of two copies: who moved the folder had only a dangling link."""
    one, two = broker(tmp_path / "one"), broker(tmp_path / "two", directory="b")
    shutil.rmtree(two / "plain-0")
    (two / "plain-0").symlink_to(one / "plain-0")
    found = list(verify(one, laws=["DISK-48"], beside=partition_places([one, two])))
    assert ["it is the same folder, by a link" in each.message for each in found] == [True]
    assert all("never the folder to which it leads" in each.hint for each in found)


LAST = "00000000000000000693.log"


def _zeroed(one: Path, two: Path) -> None:
    (one / LAST).write_bytes(bytes((two / LAST).stat().st_size))


def _cut_and_damaged(one: Path, two: Path) -> None:
    (one / LAST).unlink()
    flip_bits(two / LAST, 100)


def _renamed(one: Path, two: Path) -> None:
    (two / "00000000000000000602.log").unlink()
    (one / LAST).rename(one / f"{LAST}.bak")


@pytest.mark.checks("DISK-48")
@pytest.mark.parametrize(
    ("damage", "words", "moves"),
    [
        (lambda one, two: None, "both have the same batches", True),
        (lambda one, two: (one / LAST).unlink(), "{two} has more", True),
        (lambda one, two: (two / LAST).unlink(), "this copy has more", True),
        (split_copies, "each has offsets that the other lacks", False),
        (_zeroed, "{two} have all offsets of the other's, and more", False),
        (lambda one, two: _zeroed(two, one), "of this copy have all offsets", False),
        (_cut_and_damaged, "{two} has more, and it is damaged", False),
        (_renamed, "each has offsets that the other lacks", False),
    ],
)
def test_only_what_was_read_says_which_copy_has_more(
    tmp_path: Path, damage: Callable[[Path, Path], object], words: str, *, moves: bool
) -> None:
    """The copy whose last log had the greater number "had more", with zeros in it too."""
    one, two = broker(tmp_path / "one"), broker(tmp_path / "two", directory="b")
    damage(one / "plain-0", two / "plain-0")
    found = of(tmp_path, "DISK-48")[0]
    assert str(one / "plain-0") == found.path
    assert words.format(two=two / "plain-0") in found.message
    assert moves is found.hint.startswith("stop the broker")
    assert moves is not ("neither folder replaces" in found.hint)


def _damaged(path: Path, name: str) -> None:
    flip_bits(path / name, (path / name).stat().st_size // 2)


SECOND = "00000000000000000060.log"


def _both_damaged(one: Path, two: Path) -> None:
    _damaged(one, SECOND)
    _damaged(two, LAST)


def _gone_and_damaged(one: Path, two: Path) -> None:
    (one / SECOND).unlink()
    _damaged(two, LAST)


def _same_damaged(one: Path, two: Path) -> None:
    _both_damaged(one, two)
    _damaged(two, SECOND)


def _expired_and_shorter(one: Path, two: Path) -> None:
    (one / "00000000000000000000.log").unlink()
    (two / LAST).unlink()


@pytest.mark.checks("DISK-48")
@pytest.mark.parametrize(
    ("damage", "directory", "severity"),
    [
        (_both_damaged, "b", Severity.ERROR),
        (_both_damaged, "", Severity.WARNING),
        (_gone_and_damaged, "a", Severity.WARNING),
        (_same_damaged, "", None),
        (_expired_and_shorter, "", None),
        (lambda one, two: None, "", None),
    ],
)
def test_two_copies_that_are_whole_together(
    tmp_path: Path,
    damage: Callable[[Path, Path], object],
    directory: str,
    severity: Severity | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each had what the other lacks, and no hint said which segment can stand in for which."""
    one, two = broker(tmp_path / "one"), broker(tmp_path / "two it's", directory=directory)
    damage(one / "plain-0", two / "plain-0")
    monkeypatch.chdir(tmp_path)
    found = list(verify(".", laws=["DISK-48"]))
    told = ["together they are whole" in each.message for each in found]
    assert [severity is not None] * 2 == told
    if severity is None:
        assert not any("make one whole copy" in each.hint for each in found)
        return
    assert {severity} == {each.severity for each in found}
    assert found[0].hint == found[1].hint
    assert f"{LAST} of" in found[0].message or f"{SECOND} of" in found[0].message
    for command in split_commands(found[0].hint)[1]:
        subprocess.run(["bash", "-ec", command.replace("segproof", "true")], check=True)
    (joined,) = (tmp_path / "joined").glob("*/*")
    assert not [each for each in verify(joined) if each.is_defect]
    whole = {path.name: path.read_bytes() for path in PLAIN.glob("*.log")}
    assert whole == {path.name: path.read_bytes() for path in joined.glob("*.log")}


@pytest.mark.checks("DISK-48")
@pytest.mark.parametrize(
    ("node", "directory", "severity"),
    [
        (2, "b", None),
        (1, "a", Severity.WARNING),
        (1, "", Severity.WARNING),
        (1, "b", Severity.ERROR),
    ],
)
def test_replicas_and_copies_are_no_error(
    tmp_path: Path, node: int, directory: str, severity: Severity | None
) -> None:
    """Another broker has replicas, and a backup has the id of its directory, as DISK-66 warns."""
    broker(tmp_path / "one")
    broker(tmp_path / "two", node=node, directory=directory)
    found = of(tmp_path, "DISK-48")
    assert ({severity} if severity else set()) == {one.severity for one in found}


@pytest.mark.checks("DISK-48")
def test_the_same_directory_twice_is_no_duplicate(tmp_path: Path) -> None:
    """A path that is given twice, or by a link; but a link in another directory is one."""
    data = broker(tmp_path / "data")
    (tmp_path / "link").symlink_to(data)
    beside = partition_places([data, tmp_path / "link", data / "plain-0"])
    assert [] == list(verify(data, laws=["DISK-48"], beside=beside))
    assert [] == list(verify(data / "plain-0", laws=["DISK-48"], beside=beside))
    other = tmp_path / "other"
    other.mkdir()
    (other / "meta.properties").write_text(ids(1, "b"))
    (other / "plain-0").symlink_to(data / "plain-0")
    found = list(verify(tmp_path, laws=["DISK-48"]))
    assert {str(data / "plain-0"), str(other / "plain-0")} == {one.path for one in found}


@pytest.mark.checks("DISK-49")
@pytest.mark.parametrize("version", [0, 1])
def test_a_topic_id_that_is_missing_under_kraft(tmp_path: Path, version: int) -> None:
    """`verify` said sound; the broker's start renames the folder, and the topic is empty."""
    data = broker(tmp_path / "data", version=version)
    text = (data / "plain-0" / "partition.metadata").read_text()
    (data / "plain-0" / "partition.metadata").unlink()
    found = of(data, "DISK-49")
    assert [Severity.ERROR] * version == [one.severity for one in found]
    shutil.copytree(PLAIN, data / "plain-1")
    (one,) = of(data, "DISK-49")
    assert (Severity.ERROR if version else Severity.WARNING) is one.severity
    topic_id = text.rpartition(" ")[2].strip()
    assert f"the id {topic_id}" in one.hint
    (data / "plain-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    assert not any(one.is_defect for one in verify(data / "plain-0"))


@pytest.mark.checks("DISK-49")
def test_files_that_were_moved_away_by_their_age(tmp_path: Path) -> None:
    """The message says where the log begins now, the hint to bring the rest back."""
    data = broker(tmp_path / "data")
    for path in (data / "plain-0").iterdir():
        if not path.name.startswith(f"{693:020d}"):
            path.unlink()
    found = of(data, "DISK-49")
    names = {"partition.metadata", "leader-epoch-checkpoint"}
    assert names == {os.path.basename(one.path) for one in found}
    assert all("the log begins at offset 693" in one.message for one in found)
    assert all("moved away by " in one.hint for one in found)


@pytest.mark.checks("DISK-49")
def test_a_lone_copy_of_a_partition_misses_nothing(tmp_path: Path) -> None:
    """Old releases write no topic id: without a broker's files nothing shows that it is missing."""
    for name in ("plain-0", "other-0"):
        shutil.copytree(PLAIN, tmp_path / name)
    (tmp_path / "other-0" / "partition.metadata").unlink()
    assert [] == of(tmp_path, "DISK-49")


@pytest.mark.checks("DISK-49")
@pytest.mark.parametrize("shown_by", ["a sibling", "a topic id", "a snapshot", "nothing"])
def test_epochs_that_a_copy_lacks(shown_by: str, tmp_path: Path) -> None:
    """It was "sound" unless `meta.properties` lay beside the partitions."""
    shutil.copytree(PLAIN, tmp_path / "plain-0")
    if shown_by == "a sibling":
        shutil.copytree(PLAIN, tmp_path / "other-0")
    (tmp_path / "plain-0" / "leader-epoch-checkpoint").unlink()
    if shown_by != "a topic id":
        (tmp_path / "plain-0" / "partition.metadata").unlink()
    for path in (tmp_path / "plain-0").glob("*.snapshot"):
        if shown_by != "a snapshot":
            path.unlink()
    for given in (tmp_path, tmp_path / "plain-0"):
        found = of(given, "DISK-49")
        assert [Severity.WARNING] * (shown_by != "nothing") == [one.severity for one in found]
    shutil.rmtree(tmp_path / "plain-0")
    old = partition_of(KAFKA / "v1-gzip")
    shutil.copytree(old, tmp_path / "plain-0")
    assert [] == of(tmp_path, "DISK-49")


@pytest.mark.checks("DISK-26")
@pytest.mark.parametrize("place", ["one", "two"])
def test_a_folder_of_two_partitions_is_an_error(tmp_path: Path, place: str) -> None:
    """A link from one partition to another was a note, with the hint "nothing for a link"."""
    one, two = broker(tmp_path / "one"), broker(tmp_path / "two", directory="b")
    shutil.rmtree(two / "plain-0")
    (tmp_path / place / "u-0").symlink_to(one / "plain-0")
    (found,) = of(tmp_path, "DISK-26")
    assert (str(tmp_path / place / "u-0"), Severity.ERROR) == (found.path, found.severity)
    assert f"{one}/plain-0: a broker loads two logs" in found.message
    # A folder that no broker loads may have any name.
    (tmp_path / place / "u-0").unlink()
    (tmp_path / "u-0").symlink_to(one / "plain-0")
    (found,) = of(tmp_path, "DISK-26")
    assert Severity.NOTE == found.severity


def together(*paths: Path, law: str) -> list[Finding]:
    """Return the findings of one law in one call with several paths."""
    beside = partition_places(paths)
    return [one for path in paths for one in verify(path, laws=[law], beside=beside)]


@pytest.mark.checks("DISK-66")
@pytest.mark.parametrize(
    ("two", "severity", "words"),
    [
        (ids(), Severity.ERROR, '"Duplicate directory ID"'),
        (ids().replace("a" * 22, "a" * 21 + "d=="), Severity.ERROR, '"Duplicate directory ID"'),
        (ids(2, ""), Severity.NOTE, "node 2 of cluster"),
        (ids(1, "b", cluster="c"), Severity.NOTE, "node 1 of cluster c"),
        (ids(1, "b"), None, ""),
        (ids(1, "", version=0), None, ""),
        (ids(1, "b", version=0).replace("broker.id=1\n", ""), None, ""),
        ("version=1", None, ""),
    ],
)
def test_the_ids_of_directories_in_one_call(
    tmp_path: Path, two: str, severity: Severity | None, words: str
) -> None:
    """Two directories with one id were sound in one call."""
    paths = [broker(tmp_path / "one"), broker(tmp_path / "two")]
    (paths[1] / "meta.properties").write_text(two)
    found = together(*paths, law="DISK-66")
    assert [severity] * 2 * (severity is not None) == [one.severity for one in found]
    assert all(words in one.message for one in found[1:])
    assert not list(verify(paths[0], laws=["DISK-66"]))


@pytest.mark.checks("DISK-66")
@pytest.mark.parametrize(
    ("more", "counts", "is_given_back"),
    [
        ({"one": ["a-0"], "two": ["b-0"]}, "1 partition only here, 1 only there, 0 in both", True),
        ({"one": ["a-0", "c-0"], "two": ["c-0", "b-0"]}, "1 only there, 1 in both", True),
        ({"one": ["a-0", "b-0"], "two": ["b-0"]}, "0 only there, 1 in both", False),
        ({"one": [], "two": ["b-0"]}, "0 partitions only here, 1 only there", False),
    ],
)
def test_no_partition_is_left_out_for_a_copied_id(
    tmp_path: Path, more: dict[str, list[str]], counts: str, *, is_given_back: bool
) -> None:
    """The hint let one of two directories out of log.dirs, though each had its own partitions."""
    paths = [bare(tmp_path / name) for name in more]
    for path in paths:
        for name in more[path.name]:
            shutil.copytree(PLAIN, path / name)
    found = together(*paths, law="DISK-66")
    assert counts in found[0].message
    assert [is_given_back] * 2 == ["write its own directory.id" in one.hint for one in found]
    assert [is_given_back] * 2 == ["leave both in log.dirs" in one.hint for one in found]
    shared = ", ".join(sorted(set(more["one"]) & set(more["two"])))
    for one in found if shared else ():
        assert f"in both ({shared})" in one.message
        assert f"settle the partitions that are in both ({shared}), as DISK-48" in one.hint
    words = "either of its folders may have more" if shared else "only the one that has every"
    assert [not is_given_back] * 2 == [words in one.hint for one in found]
    twice = together(*paths, law="DISK-48")
    assert [Severity.WARNING] * 2 * (len(shared) > 0) == [one.severity for one in twice]
    below = of(tmp_path, "DISK-66")
    assert [one.hint for one in found] == [one.hint for one in below]


@pytest.mark.checks("DISK-26")
def test_one_directory_by_two_paths_is_told(tmp_path: Path, capsys: Capsys) -> None:
    """Each was sound, without a word; the same path twice is no such case."""
    data, link = broker(tmp_path / "data"), tmp_path / "link"
    link.symlink_to(data)
    (one,) = together(data, link, law="DISK-26")
    assert (str(link), Severity.NOTE) == (one.path, one.severity)
    assert f"{data} once more" in one.message
    assert 0 == cli.run(one.reproduce.split()[1:])
    assert "once more" in capsys.readouterr().out
    assert not together(data, Path(f"{data}/."), law="DISK-26")
    assert not together(data, link, law="DISK-66")


@pytest.mark.checks("DISK-26")
@pytest.mark.parametrize("is_of_one_broker", [True, False])
def test_a_folder_of_two_partitions_in_two_paths(tmp_path: Path, is_of_one_broker: bool) -> None:
    """A link from one log directory to another partition in a second one was sound."""
    one = broker(tmp_path / "one")
    two = broker(tmp_path / "two", directory="b", node=1 if is_of_one_broker else 2)
    (two / "other-3").symlink_to(one / "plain-0")
    found = together(one, two, law="DISK-26")
    severity = Severity.ERROR if is_of_one_broker else Severity.NOTE
    assert [severity] * 2 == [each.severity for each in found]
    assert [str(one / "plain-0"), str(two / "other-3")] == [each.path for each in found]
    assert not list(verify(one, laws=["DISK-26"]))


@pytest.mark.checks("DISK-50")
@pytest.mark.parametrize("name", ["plain-1", "other-0"])
def test_a_topic_id_beside_a_partition_that_is_given_alone(tmp_path: Path, name: str) -> None:
    """The partition was sound alone, though the ids beside it contradict its own."""
    data = broker(tmp_path / "data")
    shutil.copytree(PLAIN, data / name)
    file = data / name / "partition.metadata"
    if name == "plain-1":
        assert not of(data / "plain-0", "DISK-50")
        file.write_text("version: 0\ntopic_id: xxsUBRy_SyaGc84hz7GIkA")
    for folder, other in (("plain-0", name), (name, "plain-0")):
        (one,) = of(data / folder, "DISK-50")
        assert (str(data / folder / "partition.metadata"), Severity.WARNING) == (
            one.path,
            one.severity,
        )
        assert str(data / other) in one.message
    (data / "meta.properties").unlink()
    assert [Severity.NOTE] == [one.severity for one in of(data / name, "DISK-50")]


@pytest.mark.checks("DISK-50")
@pytest.mark.parametrize("cluster", ["I2eXt9rvSnyhct8BYmW6-w", "another"])
def test_topic_ids_in_two_paths(tmp_path: Path, cluster: str) -> None:
    """A topic has one id in its cluster; two brokers' directories in one call were sound."""
    one, two = broker(tmp_path / "one"), broker(tmp_path / "two", node=2)
    (two / "meta.properties").write_text(ids(2, "b", cluster=cluster))
    assert not together(one, two, law="DISK-50")
    file = two / "plain-0" / "partition.metadata"
    file.write_text("version: 0\ntopic_id: xxsUBRy_SyaGc84hz7GIkA")
    found = together(one, two, law="DISK-50")
    assert [Severity.WARNING] * 2 * (cluster != "another") == [each.severity for each in found]


def bare(folder: Path) -> Path:
    """Write what a broker keeps in a data directory without a partition."""
    broker(folder)
    for inner in [one for one in folder.iterdir() if one.is_dir()]:
        shutil.rmtree(inner)
    return folder


@pytest.mark.checks("DISK-20")
@pytest.mark.parametrize("going", [0, 1, 2])
def test_a_data_directory_without_a_partition(tmp_path: Path, going: int) -> None:
    """Before its first partition, or while the last one is deleted, it was "unreadable"."""
    data = bare(tmp_path / "data")
    for number in range(going):
        shutil.copytree(PLAIN, data / f"old-{number}.0123456789abcdef0123456789abcdef-delete")
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint"):
        (data / name).write_text("0\n0\n")
    found, summaries = verified(data)
    assert [] == [one for one in found if one.is_defect]
    assert [(str(data), Verdict.SOUND)] == [(one.path, one.verdict) for one in summaries]
    assert cli.run(["ls", str(data)]) == 0


@pytest.mark.checks("DISK-20")
@pytest.mark.parametrize("lost", ["no file but .lock", "named by a checkpoint", "empty", "a store"])
def test_a_data_directory_whose_partitions_are_gone(tmp_path: Path, lost: str) -> None:
    """It is not sound where a partition should be in it, or nothing is a broker's."""
    data = bare(tmp_path / "data")
    if lost == "no file but .lock":
        (data / "meta.properties").unlink()
        (data / ".lock").touch()
    elif lost == "named by a checkpoint":
        (data / "replication-offset-checkpoint").write_text("0\n1\nold 0 5\n")
    elif lost == "empty":
        (data / "old-0").mkdir()
    else:
        (data / "meta.properties").unlink()
        (data / "checkpoint").touch()
    assert "DISK-20" in {one.law for one in verify(data)}
