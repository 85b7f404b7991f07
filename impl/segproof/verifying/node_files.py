# SPDX-License-Identifier: Apache-2.0
"""The two files that say which node a data directory belongs to, and how that node has voted.

Upstream: Kafka 4.3.1: MetaProperties, MetaPropertiesEnsemble, FileQuorumStateStore.
Laws: DISK-53, DISK-54, DISK-67.
Not covered: whether the ids are those of the cluster; in `quorum-state` versions above 1, and the
    limits of Jackson: 1 000 levels, and numbers of 1 000 digits.
"""

import json
import posixpath
import re
from codecs import getincrementaldecoder
from collections.abc import Iterable
from contextlib import closing

from segproof.files import Files, status_of
from segproof.findings import Severity
from segproof.hints import changes, reads, removes
from segproof.integers import is_integer
from segproof.kafka.segment_names import offset_of_name
from segproof.reading.file_names import METADATA_TOPIC, QUORUM_STATE, partition_of
from segproof.reading.node_ids import NODE_FILE_BYTES, UUID, broker_in
from segproof.wording.reporting import PathReporter, Reporter
from segproof.wording.rules import declare

READ_BYTES = 8192
"""Kafka decodes so many bytes at once, until it has the first line."""
declare("partition-log", Severity.ERROR,
    removes("remove it: the node takes the epoch of the leader over, and an only controller elects"
    " itself again; it loses the memory of its vote, and no metadata",
    only_if="the other controllers have a leader, as `kafka-metadata-quorum.sh describe --status`"
    " says, or this node is the only controller: controller.quorum.voters names no other, and"
    " without that setting no other was ever added; the file of another node does not fit, since it"
    " holds the vote of that node",
    if_wrong="the node may vote a second time in one epoch, two leaders may write metadata, and"
    " what one of them wrote, such as new topics, is cut off",
    copy_step="keep this node stopped, and copy the file away"), "DISK-53")  # fmt: skip
declare("partition-log", Severity.ERROR,
    changes("write the file with the node.id in server.properties of this broker, the cluster.id"
    " in meta.properties of another log directory, of another broker or of a controller, or in the"
    " log of this broker or of a controller (cluster, or clusterId), and the directory.id that this"
    " directory had when the broker registered (dump the log of __cluster_metadata-0)",
    only_if="log.dirs or metadata.log.dir in that server.properties names this directory, the"
    " cluster.id is of the cluster of this broker, and no other directory has this directory.id",
    if_wrong="the broker does not start, or the controller takes the replicas here for lost",
    copy_step="keep this broker stopped, and copy the file away"), "DISK-54")  # fmt: skip
declare("partition-log", Severity.WARNING,
    reads("look for the file in lost+found and in copies of this directory before the node starts;"
    " without it, start the node only while the other controllers have a leader, as"
    " `kafka-metadata-quorum.sh describe --status` says, or if it is the only controller: then it"
    " is the leader again"), "DISK-67")  # fmt: skip


def report_missing_vote(
    directory: str, names: Iterable[str], files: Files, reporter: Reporter
) -> None:
    """Report that the log of the cluster's metadata has no `quorum-state` beside it.

    A node creates `quorum-state` at its first start, before it writes the first batch of the log.
    """
    known = partition_of(directory)
    if known is None or known.topic != METADATA_TOPIC or QUORUM_STATE in names:
        return
    logs = [name for name in names if offset_of_name(name, ".log") is not None]
    sizes = (status_of(files, posixpath.join(directory, name)) for name in logs)
    if any(one is not None and one.size_bytes > 0 for one in sizes):
        reporter.at(posixpath.join(directory, QUORUM_STATE), shown_by=directory).add(
            "DISK-67",
            "it is missing, and the log of the cluster's metadata has batches: the node starts with"
            " the epoch of the last one, has forgotten its vote of a later epoch, and may vote a"
            " second time there, so that two leaders may write metadata",
        )


def check_quorum_state(report: PathReporter, files: Files) -> None:
    """Judge a `quorum-state`: Kafka reads its first line."""
    data = _contents(report, files)
    if data is None:
        return
    problem = _quorum_problem(data)
    if problem:
        report.add(
            "DISK-53",
            f"Kafka can't read the vote of this node: {problem}; the node does not start",
            expected='{"leaderId": NUMBER, "leaderEpoch": NUMBER, "votedId": NUMBER, ...}',
            actual=_shown(data),
        )


def _quorum_problem(data: bytes) -> str:
    """Return why Kafka can't read a `quorum-state`; empty if it can."""
    if not data or data[0] in b"\r\n":
        return "the file is empty" if not data else "its first line is empty"
    if not data.strip(b"\0"):
        return "the file is zeros"
    line_end = len(re.split(rb"[\r\n]", data, maxsplit=1)[0])
    blocks = data[: (line_end // READ_BYTES + 1) * READ_BYTES]
    try:
        text = getincrementaldecoder("utf-8")().decode(blocks, final=len(blocks) == len(data))
        line = re.split("[\r\n]", text, maxsplit=1)[0].lstrip(" \t")
        content = _JSON.raw_decode(line)[0]
    except (ValueError, RecursionError):
        return "its first line does not begin with JSON"
    if not isinstance(content, dict):
        return "its first line is not a JSON object"
    if "data_version" not in content:
        return "it has no data_version"
    version = _as_short(content["data_version"])
    if version not in (0, 1):
        return f"its data_version is {version}"
    return _field_problem(content, version)


def _field_problem(content: dict[str, object], version: int) -> str:
    """Return which field of a `quorum-state` Kafka refuses; empty for none."""
    for name in ("leaderId", "leaderEpoch", "votedId"):
        if not is_integer(content.get(name), 32):
            return f"it has no number {name} of 32 bits"
    of_version_0 = {"clusterId": "", "appliedOffset": 0, "currentVoters": []}
    for name, default in of_version_0.items():
        if name not in content and version == 0:
            return f"it has no {name}, which version 0 has"
        content.setdefault(name, default)
    if type(content["clusterId"]) is not str:
        return "its clusterId is no text"
    if not is_integer(content["appliedOffset"], 64):
        return "its appliedOffset is no number of 64 bits"
    voters = content["currentVoters"]
    if not isinstance(voters, list) or (voters and version == 1):
        return "its currentVoters are no list" + (", or not empty in version 1" if version else "")
    if not all(isinstance(one, dict) and is_integer(one.get("voterId"), 32) for one in voters):
        return "one of its currentVoters has no number voterId of 32 bits"
    directory = content.get("votedDirectoryId", None if version else _NO_DIRECTORY)
    if not isinstance(directory, str) or not UUID.fullmatch(directory):
        return "it has no votedDirectoryId of 16 bytes in base64"
    return ""


def _as_short(number: object) -> int:
    """Return what Jackson makes of a version: the low 16 bits of a number, 0 of all else."""
    if isinstance(number, float):
        number = int(max(min(number, 2.0**31 - 1), -(2.0**31)))
    return ((number if type(number) is int else 0) + 2**15) % 2**16 - 2**15


def _refuse(name: str) -> None:
    raise ValueError(name)


_JSON = json.JSONDecoder(parse_constant=_refuse)
"""As Jackson: no NaN, and what comes after the first value is not looked at."""
_NO_DIRECTORY = "A" * 22


def check_node_properties(report: PathReporter, files: Files) -> None:
    """Judge a `meta.properties`."""
    data = _contents(report, files)
    if data is None:
        return
    found = broker_in(data)
    if isinstance(found, str):
        report.add(
            "DISK-54",
            f"the file does not say whose directory this is: {found}; the broker does not start,"
            " or leaves this directory out",
            expected="version=1 with node.id and cluster.id, or version=0 with broker.id",
            actual=_shown(data),
        )


def _contents(report: PathReporter, files: Files) -> bytes | None:
    """Return the bytes of a file, as many as are read; None if it is gone or can't be read."""
    try:
        with closing(files.open(report.path)) as file:
            return file.pread(NODE_FILE_BYTES, 0)
    except FileNotFoundError:
        return None
    except OSError as error:
        report.unreadable(error)
        return None


def _shown(data: bytes) -> str:
    if not data.strip(b"\0"):
        return f"{len(data)} zero bytes"
    return data[:80].decode("ascii", "replace")
