# SPDX-License-Identifier: Apache-2.0
"""What a node keeps beside its logs after a power loss: cut, empty, zeros, or one bit wrong."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.findings import Finding, Severity, Verdict
from segproof.verification import verify
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.files.shipped_directories import KAFKA
from segproof_harness.laws.every_law import LAWS
from segproof_tests.partition_files import copied_partition, name_of, write_segment
from segproof_tests.small_logs import batch

NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR
BOOTSTRAP = (KAFKA / "compacted" / "logdir" / "bootstrap.checkpoint").read_bytes()
"""Made by `kafka-storage.sh format`: a header, a batch of six records, and a footer."""
HEADER_BYTES, RECORDS_END = 83, 336
SNAPSHOT = "00000000000000000001-0000000001.checkpoint"
VOTE_0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":7,"votedId":-1,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":0}'
)
VOTE = (
    b'{"leaderId":1,"leaderEpoch":7,"votedId":1,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    b'"data_version":1}'
)
IDS = (
    b"#\n#Sat Nov 21\nversion=1\nnode.id=1\ncluster.id=I2eXt9rvSnyhct8BYmW6-w\n"
    b"directory.id=oG5Q4DkSR7CYBX0qVIYs0g\n"
)
CHECKPOINT = b"0\n1\nt 0 1\n"
OF_FILES: dict[str, tuple[str, bytes]] = {
    SNAPSHOT: ("DISK-51", BOOTSTRAP),
    "bootstrap.checkpoint": ("DISK-51", BOOTSTRAP),
    "quorum-state": ("DISK-53", VOTE),
    "meta.properties": ("DISK-54", IDS),
    "replication-offset-checkpoint": ("DISK-55", CHECKPOINT),
}


def metadata(folder: Path, start: int = 0) -> Path:
    """Write a log of the cluster's metadata that begins at an offset, and a vote."""
    path = write_segment(folder / "__cluster_metadata-0", batch(start), start)
    (path / "quorum-state").write_bytes(VOTE)
    return path


def damaged() -> st.SearchStrategy[Callable[[bytes], bytes]]:
    """Draw what happens to a file: the sound file too."""
    flips = st.tuples(st.integers(0, 1 << 12), st.integers(0, 7)).map(
        lambda one: (
            lambda data: (
                data[: one[0] % len(data)]
                + bytes([data[one[0] % len(data)] ^ (1 << one[1])])
                + data[one[0] % len(data) + 1 :]
            )
        )
    )
    cuts = st.integers(0, 1 << 12).map(lambda at: lambda data: data[: at % (len(data) + 1)])
    zeros = st.integers(0, 1 << 12).map(
        lambda at: lambda data: data[: at % (len(data) + 1)].ljust(len(data), b"\0")
    )
    return st.one_of(st.just(lambda data: data), flips, cuts, zeros)


@pytest.mark.checks("DISK-51", "DISK-53", "DISK-54", "DISK-55")
@given(name=st.sampled_from(sorted(OF_FILES)), damage=damaged())
def test_verify_judges_each_file_as_the_law_says(
    name: str, damage: Callable[[bytes], bytes]
) -> None:
    """A file alone is judged as the predicate of its law judges its bytes."""
    law, sound = OF_FILES[name]
    data = damage(sound)
    files = MemoryFiles()
    write_file(files, f"place/{name}", data)
    found = verify(f"place/{name}", files=files, laws=[law])
    assert LAWS[law].predicate(data) == (not list(found))


@pytest.mark.checks("DISK-52")
@given(start=st.integers(0, 3), offsets=st.sets(st.integers(0, 4), max_size=3))
def test_a_log_of_metadata_begins_within_a_snapshot(start: int, offsets: set[int]) -> None:
    """Kafka refuses to start where the records before the log are in no snapshot."""
    files, folder = MemoryFiles(), "data/__cluster_metadata-0"
    write_file(files, f"{folder}/{name_of(start, '.log')}", batch(start))
    for offset in offsets:
        write_file(files, f"{folder}/{offset:020d}-0000000001.checkpoint", BOOTSTRAP)
    found = list(verify("data", files=files, laws=["DISK-52"]))
    assert LAWS["DISK-52"].predicate(start, offsets) == (not found)
    # A log of a topic may begin anywhere.
    write_file(files, f"data/t-0/{name_of(start, '.log')}", batch(start))
    assert not list(verify("data/t-0", files=files, laws=["DISK-52"]))


def only(path: Path, law: str) -> Finding:
    """Return the only finding of a law."""
    (found,) = verify(path, laws=[law])
    return found


@pytest.mark.checks("DISK-51")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (BOOTSTRAP[:-1], "starts with a part of the cluster's metadata, 6 records"),
        (BOOTSTRAP[:RECORDS_END], "starts with a part of the cluster's metadata, 6 records"),
        (BOOTSTRAP[: HEADER_BYTES + 80], "starts with a part of the cluster's metadata, 0 records"),
        (BOOTSTRAP[: HEADER_BYTES - 1], "a node that loads it does not start"),
        (BOOTSTRAP[HEADER_BYTES:], "a node that loads it does not start"),
        (BOOTSTRAP[:RECORDS_END] + bytes(75), "a node that loads it does not start"),
        (bytes(411), "a node that loads it does not start"),
        (b"", "a node that loads it does not start"),
    ],
)
def test_what_a_node_makes_of_a_broken_snapshot(data: bytes, words: str, tmp_path: Path) -> None:
    """`verify` looked into no snapshot of the cluster's metadata, and called each sound."""
    folder = metadata(tmp_path)
    (folder / SNAPSHOT).write_bytes(data)
    summaries: list[Verdict] = []
    found = list(verify(tmp_path, on_summary=lambda one: summaries.append(one.verdict)))
    assert [("DISK-51", ERROR)] == [(one.law, one.severity) for one in found if one.is_defect]
    assert words in found[0].message
    assert [Verdict.READABLE_WITH_GAPS] == summaries
    assert words in only(folder / SNAPSHOT, "DISK-51").message


OFFSET = bytes(7) + b"\6"


@pytest.mark.checks("DISK-51")
@pytest.mark.parametrize(
    ("tail", "is_silent"),
    [
        (OFFSET + bytes(3), True),  # the size is not there
        (bytes(11), True),
        (bytes(12), False),
        (OFFSET + b"\0\0\0\15", False),  # 13 bytes: no batch is that short
        (OFFSET + b"\0\0\0\16", True),
        (OFFSET + b"\0\0\1\0" + bytes(4) + b"\2", True),
        (OFFSET + b"\0\0\1\0" + bytes(4) + b"\3", False),  # no magic
    ],
)
def test_what_kafka_takes_for_a_cut_batch(tail: bytes, is_silent: bool, tmp_path: Path) -> None:
    """It asks for 12 bytes, a size of 14 or more, and a magic up to 2 if 17 bytes are there."""
    folder = metadata(tmp_path)
    (folder / SNAPSHOT).write_bytes(BOOTSTRAP[:RECORDS_END] + tail)
    found = only(folder, "DISK-51")
    words = "starts with a part" if is_silent else "a node that loads it does not start"
    assert words in found.message


@pytest.mark.checks("DISK-41", "DISK-51")
def test_snapshots_beside_each_other(tmp_path: Path) -> None:
    """Kafka loads the one of the highest epoch, then offset. One in the making is removed."""
    folder = metadata(tmp_path)
    older = folder / "00000000000000000009-0000000001.checkpoint"
    newer = folder / "00000000000000000005-0000000002.checkpoint"
    part = folder / "00000000000000000007-0000000002.checkpoint.part"
    for path in (older, newer):
        path.write_bytes(BOOTSTRAP)
    part.write_bytes(BOOTSTRAP[:100])
    assert "is not whole" in only(tmp_path, "DISK-41").message
    assert "is not whole" in only(part, "DISK-41").message
    part.write_bytes(BOOTSTRAP)
    found = only(tmp_path, "DISK-41")
    assert (NOTE, True) == (found.severity, "is whole, with 6 records" in found.message)
    assert "copy this file away" in found.hint
    older.write_bytes(b"")
    found = only(tmp_path, "DISK-51")
    assert (str(older), WARNING) == (found.path, found.severity)
    assert f"Kafka loads {newer.name} instead" in found.message
    older.write_bytes(BOOTSTRAP)
    newer.write_bytes(b"")
    found = only(tmp_path, "DISK-51")
    assert (str(newer), ERROR) == (found.path, found.severity)


@pytest.mark.checks("CKPT-3", "DISK-40", "DISK-51", "DISK-53", "DISK-54", "DISK-55", "PROD-3")
@pytest.mark.parametrize(
    ("name", "law", "words"),
    [
        ("recovery-point-offset-checkpoint", "CKPT-3", "recovers every log from its begin"),
        ("log-start-offset-checkpoint", "CKPT-3", "records that were deleted"),
        ("replication-offset-checkpoint", "CKPT-3", "learns its high watermarks again"),
        ("cleaner-offset-checkpoint", "CKPT-3", "begins at the start of each log"),
        ("t-0/leader-epoch-checkpoint", "CKPT-3", "segproof salvage"),
        ("__cluster_metadata-0/quorum-state", "DISK-53", "may vote a second time"),
        ("__cluster_metadata-0/quorum-state", "DISK-53", "or this node is the only controller"),
        ("meta.properties", "DISK-54", "directory.id"),
        ("meta.properties", "DISK-54", "the node.id in server.properties"),
        ("bootstrap.checkpoint", "DISK-51", "another controller of this cluster"),
        (".kafka_cleanshutdown", "DISK-40", "If the power failed"),
        (f"t-0/{name_of(1014, '.snapshot')}", "PROD-3", "segproof salvage"),
    ],
)
def test_each_file_of_zeros_has_a_hint_of_its_own(
    name: str, law: str, words: str, tmp_path: Path
) -> None:
    """One hint for all said "copy it from another replica", also for recovery points."""
    copied_partition("txn-a", tmp_path).rename(tmp_path / "t-0")
    metadata(tmp_path)
    path = tmp_path / name
    path.unlink(missing_ok=True)
    path.write_bytes(bytes(125))
    for place in (tmp_path, path):
        found = next(verify(place, laws=[law]))
        assert (law, str(path)) == (found.law, found.path)
        assert words in found.hint
        is_of_a_broker = "offset-checkpoint" in name
        assert is_of_a_broker == ("take none from another broker" in found.hint)


@pytest.mark.checks("DISK-55")
@pytest.mark.parametrize("data", [b"", b"0", b"0\n"])
def test_an_emptied_checkpoint_is_told(data: bytes, tmp_path: Path) -> None:
    """Kafka reads no entry in it, without an error, as in one that is not written yet."""
    folder = write_segment(tmp_path / "t-0", batch(0))
    path = tmp_path / "log-start-offset-checkpoint"
    path.write_bytes(data)
    found = only(tmp_path, "DISK-55")
    assert (str(path), NOTE) == (found.path, found.severity)
    (folder / "leader-epoch-checkpoint").write_bytes(data)
    assert 2 == len(list(verify(tmp_path, laws=["DISK-55"])))
    path.write_bytes(b"0\n0")
    (folder / "leader-epoch-checkpoint").write_bytes(b"0\n0\n")
    assert not list(verify(tmp_path, laws=["DISK-55"]))


def changed(text: bytes, old: str, new: str) -> bytes:
    """Return a text with one place changed."""
    assert old.encode() in text
    return text.replace(old.encode(), new.encode("latin-1"))


READ_BY_KAFKA = (
    VOTE, VOTE_0, VOTE + bytes(4), VOTE + b"garbage", VOTE + b" {", b" \t" + VOTE, VOTE + b"\nx",
    VOTE + b"\rx", VOTE + b"\n" + b" " * 8300 + b"\xff",
    changed(VOTE, "A" * 22, "A" * 21 + "B"), changed(VOTE, "A" * 22, "A" * 22 + "=="),
    changed(VOTE, '"leaderId":1', '"leaderId":2147483647'), changed(VOTE, ":7", ":-5"),
    changed(VOTE, ":7", ":-0"), changed(VOTE, "}", ',"x":1,"x":2}'),
    changed(VOTE, "}", ',"leaderId":3}'), changed(VOTE, "}", ',"currentVoters":[]}'),
    changed(VOTE, '"data_version":1', '"data_version":1.9'),
    changed(VOTE, '"data_version":1', '"data_version":65537'),
    changed(VOTE, "leaderId", "l\\u0065aderId"), changed(VOTE_0, ':0,"c', ':99999999999,"c'),
    changed(VOTE_0, '[{"voterId":1}]', "[]"), changed(VOTE_0, ":1}]", ':1,"x":2}]'),
    changed(VOTE_0, "}],", '}],"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAQ",'),
    changed(VOTE_0, '"data_version":0', '"data_version":true'),
)  # fmt: skip
REFUSED_BY_KAFKA = (
    b"", b"\n" + VOTE, b"\xef\xbb\xbf" + VOTE, VOTE + b"\xff", VOTE + b"\n\xff", VOTE + b"\xe2",
    VOTE + b" " * 8300 + b"\xff", b"[]", b"null", b"{}", bytes(5), b"x" + VOTE, VOTE[:-1],
    VOTE[:-1] + b"\n}", changed(VOTE, "A" * 22, ""), changed(VOTE, "A" * 22, "xx"),
    changed(VOTE, "A" * 22, "A" * 21), changed(VOTE, "A" * 22, "A" * 23),
    changed(VOTE, "A" * 22, "A" * 22 + "="), changed(VOTE, "A" * 22, "A" * 21 + "+"),
    changed(VOTE, '"leaderId":1', '"leaderId":99999999999'), changed(VOTE, ":7", ":7.0"),
    changed(VOTE, ":7", ":true"), changed(VOTE, ":7", ':"7"'), changed(VOTE, ":7", ":07"),
    changed(VOTE, ":7", ":null"), changed(VOTE, "}", ',"x":NaN}'),
    changed(VOTE, "}", ',"x":-Infinity}'), changed(VOTE, "}", ',"x":"\t"}'),
    changed(VOTE, "}", ',"x":"\xff"}'), changed(VOTE, "}", ',"clusterId":1}'),
    changed(VOTE, "}", ',"appliedOffset":"x"}'), changed(VOTE, "}", ',"currentVoters":null}'),
    changed(VOTE, "}", ',"currentVoters":[{"voterId":1}]}'),
    changed(VOTE, '"data_version":1', '"data_version":"1"'),
    changed(VOTE, '"data_version":1', '"data_version":2'),
    changed(VOTE, '"data_version":1', '"data_version":99999999999999999999'),
    changed(VOTE, ',"data_version":1', ""), changed(VOTE_0, '"clusterId":"",', ""),
    changed(VOTE_0, '"appliedOffset":0,', ""), changed(VOTE_0, '"currentVoters":', '"x":'),
    changed(VOTE_0, '[{"voterId":1}]', "null"), changed(VOTE_0, '{"voterId":1}', "{}"),
    changed(VOTE_0, '{"voterId":1}', "1"), changed(VOTE_0, "}],", '}],"votedDirectoryId":1,'),
    changed(VOTE_0, ':0,"c', ':99999999999999999999,"c'),
)  # fmt: skip


def properties(**changed: str) -> bytes:
    """Return the lines of IDS with other values, or with more lines after them."""
    told = dict(line.split("=") for line in IDS.decode("ascii").splitlines()[2:])
    more = changed.pop("more", "")
    told |= {name.replace("_", "."): value for name, value in changed.items()}
    return ("".join(f"{name}={value}\n" for name, value in told.items()) + more).encode("latin-1")


ID = "oG5Q4DkSR7CYBX0qVIYs0g"
READ_AS_PROPERTIES = (
    IDS.replace(b"\n", b"\r"), properties(version="1 "), properties(version="01"),
    properties(node_id="+1"), properties(node_id="0000000000001"), properties(more="x=\xff\n"),
    properties(node_id="\\u0661"), IDS.replace(b"=", b" : "), IDS.replace(b"=", b" "),
    IDS.replace(b"node.id", b"node\\u002eid"), IDS.replace(b"node.", b"node.\\\n  "),
    properties(node_id="x", more="node.id=1"), properties(more="broker.id=x"), b"cluster.id=c\n",
    *(properties(directory_id=one) for one in (f"{ID[:-1]}h", f"{ID}==", f"{'A' * 20}ZA")),
    properties(node_id="2147483647"),
)  # fmt: skip
REFUSED_AS_PROPERTIES = (
    properties(node_id="1 "), properties(directory_id="oG5Q4DkSR7CYBX0qVIYs0g "),
    properties(node_id="1\f"), properties(more="x=\\u00zz\n"), properties(more="node.id="),
    IDS.replace(b"node.id", b"broker.id"), IDS.replace(b"node.id=1\n", b"#\\\nnode.id=1\\\n"),
    b"version=0\nbroker.id=\ncluster.id=c\n", properties(node_id="2147483648"),
    *(properties(directory_id=f"{'A' * 20}{end}") for end in ("Yw", "AQ")),  # reserved ones
    *(properties(directory_id=one) for one in ("AAAAAAAAAAD__________w", "", "x")),
)  # fmt: skip


@pytest.mark.checks("DISK-53", "DISK-54")
@pytest.mark.parametrize(
    ("name", "contents", "is_read"),
    [
        ("quorum-state", READ_BY_KAFKA, True),
        ("quorum-state", REFUSED_BY_KAFKA, False),
        ("meta.properties", READ_AS_PROPERTIES, True),
        ("meta.properties", REFUSED_AS_PROPERTIES, False),
    ],
)
def test_a_small_file_is_judged_as_kafka_reads_it(
    name: str, contents: tuple[bytes, ...], is_read: bool
) -> None:
    """A vote with zeros after its line was called unreadable; reserved ids of a directory were
    sound; and blanks, colons and escapes of `meta.properties` were taken for something else."""
    law, _ = OF_FILES[name]
    for data in contents:
        files = MemoryFiles()
        write_file(files, f"place/{name}", data)
        found = list(verify(f"place/{name}", files=files, laws=[law]))
        assert (is_read, is_read) == (not found, LAWS[law].predicate(data)), data


@pytest.mark.checks("DISK-67")
@given(
    log=st.sampled_from((b"", batch(0))),
    has_vote=st.booleans(),
    topic=st.sampled_from(("__cluster_metadata", "t")),
)
def test_a_vote_that_is_missing_beside_the_metadata(log: bytes, has_vote: bool, topic: str) -> None:
    """A log of metadata without its vote was sound."""
    files = MemoryFiles()
    contents = {name_of(0, ".log"): log} | ({"quorum-state": VOTE} if has_vote else {})
    for name, data in contents.items():
        write_file(files, f"data/{topic}-0/{name}", data)
    is_sound = topic == "t" or LAWS["DISK-67"].predicate(contents)
    for path in ("data", f"data/{topic}-0"):
        found = list(verify(path, files=files, laws=["DISK-67"]))
        assert [WARNING] * (not is_sound) == [one.severity for one in found]
        assert {f"data/{topic}-0/quorum-state"} >= {one.path for one in found}


@pytest.mark.checks("META-2", "CKPT-3")
@pytest.mark.parametrize("size", [1, 43, 341])
@pytest.mark.parametrize(
    ("name", "law"),
    [
        ("partition.metadata", "META-2"),
        ("leader-epoch-checkpoint", "CKPT-3"),
        ("../recovery-point-offset-checkpoint", "CKPT-3"),
        ("../replication-offset-checkpoint", "CKPT-3"),
        ("../log-start-offset-checkpoint", "CKPT-3"),
        ("../cleaner-offset-checkpoint", "CKPT-3"),
    ],
)
def test_a_small_file_of_zeros_is_told_in_words(
    name: str, law: str, size: int, tmp_path: Path
) -> None:
    """The message was "line 1 is '\\x00\\x00...'", with a \\x00 for each byte."""
    folder = copied_partition("plain", tmp_path)
    (folder / name).write_bytes(bytes(size))
    (found,) = verify(tmp_path, laws=[law])
    assert "the file is zeros" in found.message
    assert "\\x00" not in found.message
