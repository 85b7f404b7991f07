# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of a node's own files, and of logs that wait to take their place."""

import struct
from collections.abc import Mapping

from segproof.findings import Severity
from segproof_harness.laws.borders.border import Border, Content, Due, Files, Folder
from segproof_harness.laws.borders.log_files import (
    BASE,
    batch,
    followed,
    name,
    segment,
    with_byte,
)

LOG_NAME = name(BASE, ".log")
PLAIN = batch(BASE)
NOTE, WARNING = Severity.NOTE, Severity.WARNING
METADATA = "__cluster_metadata-0"

# --- snapshots of the cluster's metadata ---------------------------------------------------------


def _control(offset: int, kind: int) -> bytes:
    """Return a control batch; 3 is the type of a snapshot header, 4 of a footer."""
    key = struct.pack(">hh", 0, kind)
    return batch(offset, key=key, value=b"\0\0\0\0", is_control=True)


HEAD, BODY, FOOT = _control(0, 3), batch(1), _control(2, 4)
RECORDS_FOOT = batch(2, key=struct.pack(">hh", 0, 4), value=b"\0\0\0\0")
"""A batch of records with the key of a footer."""
WHOLE = HEAD + BODY + FOOT
SNAPSHOT = "00000000000000000010-0000000001.checkpoint"
OLDER = "00000000000000000009-0000000001.checkpoint"
LATER_EPOCH = "00000000000000000009-0000000002.checkpoint"
"""Kafka takes the snapshot of the largest epoch, and forgets those from before the log's start."""


def _metadata(files: Mapping[str, Content], start: int = 0) -> Files:
    """Return a log of the cluster's metadata that begins at an offset, beside these files."""
    return {name(start, ".log"): batch(start), **files}


def _node(
    law: str, bound: str, lawful: Files, unlawful: Files, due: Due,
    why: str = "", still: Due | tuple[()] = (),
) -> Border:  # fmt: skip
    return Border(
        law, bound, lawful, unlawful, due, still, folder=METADATA, not_by_the_model=why
    )  # fmt: skip


def _snapshot(bound: str, data: bytes, position: int) -> Border:
    """Return the border between a whole snapshot and one that is not."""
    files = [_metadata({SNAPSHOT: one}) for one in (WHOLE, data)]
    return _node("DISK-51", bound, files[0], files[1], Due(SNAPSHOT, position))


def _start(bound: str, lawful: Files, unlawful: Files, start: int, reach: int | None) -> Border:
    due = Due("", None, f"a snapshot of offset {start} or more", reach)
    return _node("DISK-52", bound, lawful, unlawful, due)


EMPTY_FOLDERS = (
    Border(
        "DISK-71", "an empty log is in the folder of a partition, or only its leader epochs",
        {LOG_NAME: b"", "leader-epoch-checkpoint": b"0\n0\n"},
        {"leader-epoch-checkpoint": b"0\n0\n"}, Due("", None, "1 log or more", 0, WARNING),
    ),
    Border(
        "DISK-71", "an empty log is in the folder of another partition, or nothing",
        {LOG_NAME: b"", f"../t-1/{LOG_NAME}": b""}, {LOG_NAME: b"", "../t-1": Folder()},
        Due("../t-1", None, "1 log or more", 0, WARNING), below="..",
        not_by_the_model="the files of the other folder are not among those of this one",
    ),
)  # fmt: skip

# --- texts ---------------------------------------------------------------------------------------


def _vote(bound: str, lawful: bytes, unlawful: bytes) -> Border:
    files = [_metadata({"quorum-state": text}) for text in (lawful, unlawful)]
    due = Due(
        "quorum-state", None,
        '{"leaderId": NUMBER, "leaderEpoch": NUMBER, "votedId": NUMBER, ...}',
        unlawful.decode("ascii")[:80],
    )  # fmt: skip
    return _node("DISK-53", bound, files[0], files[1], due)


def _ids(bound: str, lawful: bytes, unlawful: bytes) -> Border:
    files = [{LOG_NAME: PLAIN, "../meta.properties": text} for text in (lawful, unlawful)]
    due = Due(
        "../meta.properties", None,
        "version=1 with node.id and cluster.id, or version=0 with broker.id",
        unlawful.decode("ascii")[:80],
    )  # fmt: skip
    return Border("DISK-54", bound, files[0], files[1], due, below="..")


def _directories(bound: str, lawful: bytes, unlawful: bytes) -> Border:
    """Return the border at which the `directory.id` of a second log directory becomes unlawful."""
    first = {"../one/meta.properties": IDS + b"directory.id=" + b"B" * 22}
    files = [
        {LOG_NAME: PLAIN, **first, "../two/meta.properties": IDS + b"directory.id=" + directory}
        for directory in (lawful, unlawful)
    ]
    due = [
        Due(f"../{one}/meta.properties", None, "another directory.id", "B" * 21 + "A", WARNING)
        for one in ("one", "two")
    ]
    return Border(
        "DISK-66", bound, files[0], files[1], due, below="..",
        not_by_the_model="it is given the files of one directory",
    )  # fmt: skip


def _emptied(bound: str, lawful: bytes, unlawful: bytes) -> Border:
    file = "../recovery-point-offset-checkpoint"
    files = [{LOG_NAME: PLAIN, file: text} for text in (lawful, unlawful)]
    due = Due(
        file, None, "a version, a number, and as many entries", f"{len(unlawful)} bytes", NOTE
    )
    return Border("DISK-55", bound, files[0], files[1], due, below="..")


VOTE = (
    b'{"leaderId":1,"leaderEpoch":2,"votedId":3,"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
    b'"data_version":%s}'
)
VOTE_0 = (
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":3,"appliedOffset":0,'
    b'"currentVoters":[{"voterId":1}],"data_version":%s}'
)
DIRECTORY = b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA",'
IDS = b"version=1\nnode.id=1\ncluster.id=c\n"

# --- logs that wait to take their place ----------------------------------------------------------

SWAP = name(BASE, ".log.swap")
BROKEN = with_byte(PLAIN, 20, PLAIN[20] ^ 1)
DELETED = name(BASE, ".log.deleted")
LOST_COPY = Due(DELETED, None, f"a sound batch with offset {BASE} in a log", None, WARNING)


def _swap(data: bytes) -> Files:
    """Return a `.swap` log beside the log whose place it takes."""
    return {**segment(PLAIN), SWAP: data}


def _removed(data: bytes, deleted: str = DELETED) -> Files:
    """Return a `.swap` log whose old log was removed."""
    return {SWAP: data, deleted: PLAIN}


BORDERS = (
    *EMPTY_FOLDERS,
    _snapshot(
        "the snapshot ends with its footer, or one byte before", WHOLE[:-1], len(HEAD + BODY)
    ),
    _snapshot("the last batch is a footer, or records", HEAD + BODY, len(HEAD + BODY)),
    _snapshot("the first batch is a header, or records", BODY + FOOT, 0),
    _snapshot(
        "the batch with the key of a footer is a control batch, or of records",
        HEAD + BODY + RECORDS_FOOT, len(WHOLE),
    ),
    _snapshot("the control record is of type 3, or 2", _control(0, 2) + BODY + FOOT, 0),
    _snapshot(
        "the last control record is of type 4, or 5", HEAD + BODY + _control(2, 5),
        len(WHOLE),
    ),
    _snapshot(
        "the checksum of the second batch is right, or one bit is not",
        HEAD + with_byte(BODY, 20, BODY[20] ^ 1) + FOOT, len(HEAD),
    ),
    _node(
        "DISK-51", "an older snapshot is whole, or empty",
        _metadata({SNAPSHOT: WHOLE, OLDER: WHOLE}), _metadata({SNAPSHOT: WHOLE, OLDER: b""}),
        Due(OLDER, 0, None, None, WARNING),
    ),
    _node(
        "DISK-51", "an empty snapshot is of one offset less than the log's first, or of the first",
        _metadata({SNAPSHOT: b"", LATER_EPOCH: WHOLE}, 11),
        _metadata({SNAPSHOT: b"", LATER_EPOCH: WHOLE}, 10),
        Due(SNAPSHOT, 0), still=Due(SNAPSHOT, 0, None, None, WARNING),
    ),
    _start(
        "the log begins at offset 0, or at 1, without a snapshot",
        _metadata({}), _metadata({}, 1), 1, None,
    ),
    _start(
        "the log begins with the offset of the snapshot, or one after",
        _metadata({SNAPSHOT: WHOLE}, 10), _metadata({SNAPSHOT: WHOLE}, 11), 11, 10,
    ),
    _vote("the version is 1, or 2", VOTE % b"1", VOTE % b"2"),
    _vote("the version is 0, or -1", VOTE_0 % b"0", VOTE_0 % b"-1"),
    _vote("the version is an integer, or true", VOTE % b"1", VOTE % b"true"),
    _vote("the leader is told, or not", VOTE % b"1", VOTE.replace(b'"leaderId":1,', b"") % b"1"),
    _vote("the epoch is told, or not", VOTE % b"1",
          VOTE.replace(b'"leaderEpoch":2,', b"") % b"1"),
    _vote("the vote is told, or not", VOTE % b"1", VOTE.replace(b'"votedId":3,', b"") % b"1"),
    _vote("of version 0, or 1, without a directory", VOTE_0 % b"0",
          VOTE.replace(DIRECTORY, b"") % b"1"),
    _vote("the epoch has 32 bits, or 33", VOTE.replace(b":2,", b":2147483647,") % b"1",
          VOTE.replace(b":2,", b":2147483648,") % b"1"),
    _vote("the directory has 16 bytes, or 15", VOTE % b"1", VOTE.replace(b"AA", b"", 1) % b"1"),
    _vote("version 0 has a cluster, or none", VOTE_0 % b"0",
          VOTE_0.replace(b'"clusterId":"",', b"") % b"0"),
    _vote("version 0 has an offset, or none", VOTE_0 % b"0",
          VOTE_0.replace(b'"appliedOffset":0,', b"") % b"0"),
    _vote("version 0 has voters, or none", VOTE_0 % b"0",
          VOTE_0.replace(b'"currentVoters":[{"voterId":1}],', b"") % b"0"),
    _vote("a voter has an id, or none", VOTE_0 % b"0", VOTE_0.replace(b'"voterId":1', b"") % b"0"),
    _vote("garbage comes after the object, or before it", VOTE % b"1" + b"x", b"x" + VOTE % b"1"),
    _vote("the object is closed, or not", VOTE % b"1", (VOTE % b"1")[:-1]),
    _ids("the node has an id, or none", IDS, IDS.replace(b"node.id=1", b"node.id=")),
    _ids("the cluster has an id, or none", IDS, IDS.replace(b"cluster.id=c\n", b"")),
    _ids("the version is 1, or 2", IDS, IDS.replace(b"version=1", b"version=2")),
    _ids("the id has 10 digits, or 11", IDS.replace(b"=1\nc", b"=1234567890\nc"),
         IDS.replace(b"=1\nc", b"=12345678901\nc")),
    _ids("the file of version 0 has a broker.id, or none", b"version=0\nbroker.id=1\n",
         b"version=0\n"),
    _ids("the broker.id is a number, or a letter", b"broker.id=1\n", b"broker.id=x\n"),
    _ids("the id has 31 bits, or 32", IDS.replace(b"=1\nc", b"=2147483647\nc"),
         IDS.replace(b"=1\nc", b"=2147483648\nc")),
    _ids("the directory.id has 22 digits, or 21", IDS + b"directory.id=" + b"B" * 22 + b"\n",
         IDS + b"directory.id=" + b"B" * 21 + b"\n"),
    _ids("the directory.id is 100, or 99, the last reserved one",
         IDS + b"directory.id=" + b"A" * 20 + b"ZA\n",
         IDS + b"directory.id=" + b"A" * 20 + b"Yw\n"),
    _directories("two directories have ids, or the same id", b"C" * 22, b"B" * 22),
    _directories("the id differs in its last bit, or in bits that Kafka ignores",
                 b"B" * 21 + b"Q", b"B" * 21 + b"P"),
    _node("DISK-67", "the log of metadata has a vote beside it, or not",
          _metadata({"quorum-state": VOTE % b"1"}), _metadata({}),
          Due("quorum-state", severity=WARNING), why="it is given no name of the partition"),
    _node("DISK-67", "the log of metadata is empty, or has a batch", {name(0, ".log"): b""},
          _metadata({}), Due("quorum-state", severity=WARNING),
          why="it is given no name of the partition"),
    _emptied("the checkpoint has a count, or a version only", b"0\n0\n", b"0\n"),
    _emptied("the checkpoint has two lines, or is empty", b"0\n0\n", b""),
    Border(
        "DISK-58", "the .swap log is whole, or lacks its last byte",
        _swap(PLAIN), _swap(PLAIN[:-1]), Due(SWAP, 0, "a sound log"),
    ),
    Border(
        "DISK-58", "the checksum of the .swap log is right, or one bit is not",
        _swap(PLAIN), _swap(BROKEN), Due(SWAP, 0, "a sound log"),
    ),
    Border(
        "DISK-58", "the second batch of the .swap log is whole, or has one byte",
        _swap(PLAIN), _swap(PLAIN + b"\1"), Due(SWAP, len(PLAIN), "a sound log"),
    ),
    Border(
        "DISK-59", "the .swap log of a removed one is whole, or broken",
        _removed(PLAIN), _removed(BROKEN), Due(DELETED, severity=WARNING),
    ),
    Border(
        "DISK-59", "the removed log begins before the broken .swap log, or with it",
        _removed(BROKEN, name(BASE - 1, ".log.deleted")), _removed(BROKEN),
        Due(DELETED, severity=WARNING),
    ),
    Border(
        "DISK-59", "the log in the place of a removed one is whole, or broken",
        followed({**segment(PLAIN), DELETED: PLAIN}, BASE + 1),
        followed({**segment(BROKEN), DELETED: PLAIN}, BASE + 1), LOST_COPY,
    ),
    Border(
        "DISK-59", "beside a removed log that begins with damage the log is whole, or broken",
        followed({**segment(PLAIN), DELETED: bytes(30) + PLAIN}, BASE + 1),
        followed({**segment(BROKEN), DELETED: bytes(30) + PLAIN}, BASE + 1), LOST_COPY,
    ),
    Border(
        "DISK-59", "the last log is broken, and the removed one begins after it, or with it",
        {**segment(BROKEN), name(BASE + 1, ".log.deleted"): batch(BASE + 1)},
        {**segment(BROKEN), DELETED: PLAIN}, LOST_COPY,
    ),
    Border(
        "DISK-60", "the .swap log of a removed one has a batch, or nothing",
        _removed(PLAIN), _removed(b""), Due(DELETED, severity=WARNING),
    ),
    Border(
        "DISK-60", "the last log, with the name of a removed one, has its batch, or nothing",
        {**segment(PLAIN), DELETED: PLAIN}, {**segment(b""), DELETED: PLAIN},
        Due(DELETED, severity=WARNING),
    ),
    Border(
        "DISK-60", "the .swap log has the batch of the log, or another value",
        _swap(PLAIN), _swap(batch(BASE, value=b"other")),
        (Due(SWAP, severity=Severity.ERROR), Due(LOG_NAME, severity=WARNING)),
    ),
)  # fmt: skip
