# SPDX-License-Identifier: Apache-2.0
"""What a data directory and a crash say of a log, held against the model's laws on drawn values."""

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from segproof.findings import Finding, Severity
from segproof.kafka.checkpoint_file import write_checkpoint
from segproof.verification import verify
from segproof.verifying.log_directories import places_below
from segproof_harness.laws.every_law import LAWS
from segproof_tests.partition_files import in_memory, name_of
from segproof_tests.small_logs import batch, log_of

DATA = "/data"
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)
BEHIND = frozenset(CHECKPOINTS) - {"log-start-offset-checkpoint"}
STATE = "0123456789abcdef" * 2


def inside(offset: int, suffix: str) -> str:
    """Return the name of a file of that offset in the partition."""
    return f"t-0/{name_of(offset, suffix)}"


def holds(law: str, *given: object) -> bool:
    """Return whether a law of the model holds."""
    return LAWS[law].predicate(*given)


def of(law: str, findings: list[Finding]) -> list[Finding]:
    """Return the findings of one law."""
    return [one for one in findings if one.law == law]


@pytest.mark.checks("DISK-38", "DISK-39", "DISK-43")
@given(
    base_offset=st.integers(0, 3),
    count=st.integers(0, 4),
    told=st.dictionaries(st.sampled_from(CHECKPOINTS), st.integers(0, 9)),
    others=st.sets(st.tuples(st.sampled_from(("t", "u-v")), st.integers(0, 2)), max_size=3),
    known=st.sets(st.tuples(st.sampled_from(("t", "u-v")), st.integers(0, 2)), max_size=3),
)
def test_offsets_of_a_data_directory(
    base_offset: int,
    count: int,
    told: dict[str, int],
    others: set[tuple[str, int]],
    known: set[tuple[str, int]],
) -> None:
    """What the checkpoints say of a log is reported exactly where it breaks a law."""
    contents = {inside(base_offset, ".log"): log_of(base_offset, base_offset + count)}
    contents |= {f"{topic}-{number}/": b"" for topic, number in known}
    listed = {("t", 0)} | others
    for name, offset in told.items():
        lines = [f"{topic} {number} {offset}" for topic, number in sorted(listed)]
        contents[name] = write_checkpoint(lines)
    findings = list(verify(DATA, files=in_memory(contents, DATA)))
    end = base_offset + count
    start = told.get("log-start-offset-checkpoint", 0)
    assert bool(of("DISK-43", findings)) is not holds("DISK-43", start, end)
    reach = max(end, start)
    behind = [name for name in BEHIND & told.keys() if not holds("DISK-38", told[name], reach)]
    # The folders of the other partitions are there, and without a log.
    ahead = [name for name in BEHIND & told.keys() if not holds("DISK-38", told[name], start)]
    empty = (others & known) - {("t", 0)}
    assert len(behind) + len(empty) * len(ahead) == len(of("DISK-38", findings))
    there = holds("DISK-39", listed, {("t", 0)} | known)
    assert (0 if there else len(told)) == len(of("DISK-39", findings))
    event(f"start {start > end}, behind {len(behind)}, there {there}")


@pytest.mark.checks("DISK-40")
@given(
    st.binary(max_size=9)
    | st.sampled_from(
        (
            b'{"version":0,"brokerEpoch":795}',
            b'{"version":0}',
            b'{"version":0,"brokerEpoch":"1"}',
            b'{"version":true,"brokerEpoch":1}',
            b"[0]",
            b"7",
            b"",
        )
    )
)
def test_marker_of_a_clean_stop(data: bytes) -> None:
    """A note says that its content is none of Kafka's."""
    contents = {inside(0, ".log"): batch(0), ".kafka_cleanshutdown": data}
    findings = list(verify(DATA, files=in_memory(contents, DATA)))
    assert bool(of("DISK-40", findings)) is not holds("DISK-40", data)


FOLDERS = st.sampled_from(
    (
        "lost+found", ".snapshot", "data", "u-", "-0", "u-+5", "u--5", "u-007", "u-2147483647",
        "u-2147483648", "u-\u0663", "u-x", "u-0.bak", "u-0-delete", "u-0-future", "u-0-stray",
        f"u-0.{STATE}-delete", "u-0.1-future", f"u v-0.{STATE}-stray", "remote-log-index-cache",
        "__cluster_metadata-0", "cluster-metadata", "u-1\n", "..-1", "u-0.old-1",
    )
)  # fmt: skip


@pytest.mark.checks("DISK-47")
@given(folders=st.sets(FOLDERS), is_brokers=st.booleans())
def test_folders_in_a_log_directory(folders: set[str], is_brokers: bool) -> None:
    """A folder at whose name a start ends is an error; without a broker's own files a note."""
    contents = {inside(0, ".log"): batch(0)} | {f"{name}/": b"" for name in folders}
    contents |= {"meta.properties": b"version=1\nnode.id=1\n"} if is_brokers else {}
    found = of("DISK-47", list(verify(DATA, files=in_memory(contents, DATA))))
    wrong = {f"{DATA}/{name}" for name in folders if not holds("DISK-47", [name])}
    assert wrong == {one.path for one in found}
    assert not found or {is_brokers} == {one.is_defect for one in found}


@pytest.mark.checks("DISK-46")
@given(
    st.sets(
        st.sampled_from(
            (
                "0-1-v1.log", "7-12-v1.base_index", "0-1-v1.compaction_index", "0-1-v1.log.staging",
                "0-1.log", "-0-1-v1.log", "0-1-v1.txt", "0-1-vx.log", "00-1-v1.logs",
            )
        )
    )
)  # fmt: skip
def test_layout_of_another_product(names: set[str]) -> None:
    """One finding, and nothing else, where a segment has a name of Redpanda's."""
    contents = {f"kafka/t/0_1/{name}": b"x" for name in names}
    contents[f"other/{inside(0, '.log')}"] = batch(0)
    findings = list(verify(DATA, files=in_memory(contents, DATA)))
    found = of("DISK-46", findings)
    assert bool(found) is not holds("DISK-46", names)
    if found:
        assert [DATA] == [one.path for one in found]
        assert not [one for one in findings if one.path.startswith(f"{DATA}/kafka")]


@pytest.mark.checks("DISK-48")
@given(
    places=st.sets(
        st.tuples(st.sampled_from(("disk1", "disk2")), st.sampled_from(("t-0", "t-00", "u-0"))),
        min_size=1,
    ),
    node=st.sampled_from("12"),
    directory=st.sampled_from(("a", "b", "")),
)
def test_partitions_of_one_broker_have_one_folder(
    places: set[tuple[str, str]], node: str, directory: str
) -> None:
    """An error in one directory, and in two of one broker with ids of their own."""
    contents = {f"{disk}/{name}/{name_of(0, '.log')}": batch(0) for disk, name in places}
    told = b"version=1\ncluster.id=c\nnode.id=%s\n"
    contents["disk1/meta.properties"] = told % b"1" + b"directory.id=" + b"a" * 22
    contents["disk2/meta.properties"] = told % node.encode()
    if directory:
        contents["disk2/meta.properties"] += b"directory.id=" + directory.encode() * 22
    found = of("DISK-48", list(verify(DATA, files=in_memory(contents, DATA))))
    keys = {place: ("t" if place[1] < "u" else "u", 0) for place in places}
    alone = [[key for (disk, _), key in keys.items() if disk == one] for one in ("disk1", "disk2")]
    is_one = node == "1" and directory == "b"
    groups = [alone[0] + alone[1]] if is_one else alone
    assert any(one.severity is Severity.ERROR for one in found) is not all(
        holds("DISK-48", group) for group in groups
    )
    assert found or len(set(keys.values())) == len(keys) or node == "2"


@pytest.mark.checks("DISK-49")
@given(
    own=st.sets(st.sampled_from(("partition.metadata", "leader-epoch-checkpoint"))),
    beside=st.sets(st.sampled_from(("partition.metadata", "leader-epoch-checkpoint"))),
)
def test_small_files_that_the_partitions_beside_have(own: set[str], beside: set[str]) -> None:
    """A file that another partition of the topic has is missed."""
    texts = {
        "partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ",
        "leader-epoch-checkpoint": b"0\n0\n",
    }
    contents = {f"t-{number}/{name_of(0, '.log')}": batch(0) for number in (0, 1)}
    contents |= {f"t-0/{name}": texts[name] for name in own}
    contents |= {f"t-1/{name}": texts[name] for name in beside}
    found = of("DISK-49", list(verify(DATA, files=in_memory(contents, DATA))))
    told = [one for one in found if one.path.startswith(f"{DATA}/t-0/")]
    assert bool(told) is not holds("DISK-49", own, beside)
    for one in told:
        assert ("AAAAAAAAAAAAAAAAAAAAAQ" in one.hint) is one.path.endswith("metadata")


@pytest.mark.checks("DISK-50")
@given(st.lists(st.sampled_from("AQgw"), min_size=4, max_size=4))
def test_topic_ids_that_contradict_each_other(ids: list[str]) -> None:
    """Two ids of one topic, and one id of two topics, were sound."""
    folders = {f"{topic}-{number}": topic for topic in "tu" for number in (0, 1)}
    contents = {f"{folder}/{name_of(0, '.log')}": batch(0) for folder in folders}
    for folder, last in zip(folders, ids, strict=True):
        text = f"version: 0\ntopic_id: {'B' * 21}{last}"
        contents[f"{folder}/partition.metadata"] = text.encode("ascii")
    found = of("DISK-50", list(verify(DATA, files=in_memory(contents, DATA))))
    pairs = list(zip(folders.values(), ids, strict=True))
    assert bool(found) is not holds("DISK-50", pairs)
    # What is being deleted, or is stray, has the id of a former topic.
    stray = {
        name.replace("/", f".{'a' * 32}-stray/"): each
        for name, each in contents.items()
        if name.startswith("t-1")
    }
    rest = {name: each for name, each in contents.items() if name.startswith("t-0")}
    assert not of("DISK-50", list(verify(DATA, files=in_memory({**rest, **stray}, DATA))))


@pytest.mark.checks("DISK-66")
@given(
    ids=st.lists(
        st.tuples(
            st.sampled_from(("c", "d")), st.sampled_from((1, 2)), st.sampled_from(("a", "b", ""))
        ),
        min_size=2,
        max_size=3,
    )
)
def test_log_directories_of_one_call_are_of_one_node(ids: list[tuple[str, int, str]]) -> None:
    """Two directories with one id were sound, as two paths of a call and below one path."""
    contents = {}
    for number, (cluster, node, directory) in enumerate(ids):
        told = f"version=1\ncluster.id={cluster}\nnode.id={node}\n"
        told += f"directory.id={directory * 22}\n" if directory else ""
        contents[f"disk{number}/meta.properties"] = told.encode("ascii")
        contents[f"disk{number}/t-{number}/{name_of(0, '.log')}"] = batch(0)
    files = in_memory(contents, DATA)
    paths = [f"{DATA}/disk{number}" for number in range(len(ids))]
    beside = [one for path in paths for one in places_below(path, files)]
    found = [
        one for path in paths for one in verify(path, files=files, laws=["DISK-66"], beside=beside)
    ]
    assert bool(found) is not holds("DISK-66", ids)
    told_ids = [directory for _, _, directory in ids if directory]
    copies = {path for path, one in zip(paths, ids, strict=True) if told_ids.count(one[2]) > 1}
    errors = {one.path for one in found if one.severity is Severity.ERROR}
    assert {f"{path}/meta.properties" for path in copies} == errors
    assert {Severity.ERROR, Severity.NOTE} >= {one.severity for one in found}
    below = list(verify(DATA, files=files, laws=["DISK-66"]))
    assert {(path, Severity.WARNING) for path in errors} == {
        (one.path, one.severity) for one in below
    }


NAMES = st.sampled_from(
    (
        "leader-epoch-checkpoint.tmp",
        "partition.metadata.tmp",
        "5.log",
        "000000000000000000005.log",
        "00000000000000000005.log.swap",
        "00000000000000000002.log.swap",
        "00000000000000000002.index.cleaned",
        "00000000000000000004.log.cleaned",
        "00000000000000000009.log.cleaned",
        "00000000000000000005.snapshot.deleted",
        "remote_log_snapshot",
    )
)


@pytest.mark.checks("DISK-27", "DISK-41", "DISK-42", "DISK-45", "LOAD-1")
@given(
    bases=st.sets(st.sampled_from((0, 2, 4, 5)), min_size=1),
    count=st.integers(0, 6),
    names=st.sets(NAMES),
    states=st.sets(st.sampled_from(("future", "stray"))),
)
def test_what_a_crash_leaves(
    bases: set[int], count: int, names: set[str], states: set[str]
) -> None:
    """Twins, temporary and pending files are reported exactly where they break a law."""
    contents = {inside(base, ".log"): log_of(base, base + count) for base in bases}
    contents |= {f"t-0/{name}": b"" for name in names}
    partition = {name[4:]: data for name, data in sorted(contents.items())}
    beside = [f"t-1.{STATE}-{state}" for state in sorted(states)]
    files = in_memory(contents | {f"{name}/": b"" for name in beside}, DATA)
    findings = list(verify(DATA, files=files))
    assert bool(of("DISK-27", findings)) is not holds("DISK-27", partition)
    assert bool(of("DISK-42", findings)) is not holds("DISK-42", partition)
    temporary = [*partition, *beside]
    assert bool(of("DISK-41", findings)) is not holds("DISK-41", temporary)
    assert bool(of("DISK-45", findings)) is not holds("DISK-45", partition)
    pending = [name for name in names if name.endswith((".swap", ".cleaned", ".deleted"))]
    assert len(pending) == len(of("LOAD-1", findings))
    for finding in (*of("DISK-42", findings), *of("LOAD-1", findings)):
        event(finding.law)
