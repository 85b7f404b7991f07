# SPDX-License-Identifier: Apache-2.0
"""The laws of what a node keeps beside its logs: snapshots of the cluster's metadata, its vote, the
ids in `meta.properties`, and checkpoints that were cut.
"""

import math
import re
import struct
from base64 import urlsafe_b64decode
from codecs import getincrementaldecoder
from collections.abc import Collection, Mapping, Sequence
from json import JSONDecoder
from typing import Any

from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.integers import parsed_int
from segproof_model.language.outcomes import Raised
from segproof_model.laws.kafka.format.batch_bytes import records_of
from segproof_model.laws.kafka.format.log_bytes import batches_of, end_of, valid_batches
from segproof_model.laws.register import law

HEADER, FOOTER = 3, 4
"""Types of control records."""


def control_type(batch: RecordBatch) -> int | None:
    """Return the type of the first record of a control batch; None for another batch."""
    records = records_of(batch) if batch.is_control else []
    if isinstance(records, Raised) or not records or len(records[0].key or b"") < 4:
        return None
    key = records[0].key or b""
    return None if key[0] >= 128 else int.from_bytes(key[2:4], "big")


@law("DISK-51", PartitionLog, "Kafka RecordsSnapshotReader, RecordsSnapshotWriter 4.3.1")
def metadata_snapshot_is_whole(metadata_snapshot: bytes) -> bool:
    """A snapshot of the cluster's metadata is batches of magic 2 back to back with right checksums.
    The first record is a snapshot header, and the last batch begins with a snapshot footer.

    Kafka checks no footer: of a snapshot that was cut it loads the whole batches. A warning for one
    that Kafka does not load, since a newer one is beside it.
    """
    batches = batches_of(metadata_snapshot)
    return (
        bool(batches)
        and end_of(metadata_snapshot) == len(metadata_snapshot)
        and batches == valid_batches(metadata_snapshot)
        and not any(batch.is_legacy for batch in batches)
        and control_type(batches[0]) == HEADER
        and control_type(batches[-1]) == FOOTER
    )


@law("DISK-52", PartitionLog, "Kafka KafkaRaftLog.recoverSnapshots 4.3.1")
def metadata_log_begins_within_a_snapshot(
    metadata_log_start: int, snapshot_offsets: Collection[int]
) -> bool:
    """The log of the cluster's metadata begins at offset 0, or at or below the offset of a
    snapshot: else Kafka refuses to start.
    """
    return metadata_log_start == 0 or max(snapshot_offsets, default=-1) >= metadata_log_start


def quorum_state_fields(quorum_state: bytes) -> dict[str, Any] | None:
    """Return the object in the first line of a `quorum-state`; None if Kafka finds none.

    Kafka decodes 8192 bytes at a time until it has a line, and nothing after the object matters.
    NaN is no JSON.
    """

    def refuse(name: str) -> None:
        raise ValueError(name)

    text, at = "", 0
    decoder = getincrementaldecoder("utf-8")()
    try:
        while "\n" not in text and at < len(quorum_state):
            block = quorum_state[at : at + 8192]
            at += len(block)
            text += decoder.decode(block, final=at == len(quorum_state)).replace("\r", "\n")
        line = text.split("\n")[0].strip(" \t")
        content, _ = JSONDecoder(parse_constant=refuse).raw_decode(line)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def is_signed(value: Any, bits: int) -> bool:
    """Return whether a value is an integer of so many bits, and no truth value."""
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return is_integer and abs(2 * value + 1) < 1 << bits


def quorum_state_version(value: Any) -> int:
    """Return a `data_version` as Kafka takes it: a number's low 16 bits, and 0 for all else."""
    if isinstance(value, float):
        value = math.trunc(min(max(value, -(2**31)), 2**31 - 1))
    low = value & 0xFFFF if isinstance(value, int) and not isinstance(value, bool) else 0
    return low - 0x10000 if low >= 0x8000 else low


@law("DISK-53", PartitionLog, "Kafka FileQuorumStateStore 4.3.1")
def quorum_state_can_be_read(quorum_state: bytes) -> bool:
    """The first line of `quorum-state` begins with a JSON object with the 32-bit integers
    `leaderId`, `leaderEpoch` and `votedId`, and the `data_version` 0 or 1. With 0 it has a text
    `clusterId`, a 64-bit integer `appliedOffset`, and a list `currentVoters` of objects with a
    32-bit integer `voterId`. With 1 it has a `votedDirectoryId` of 16 bytes in base64 for URLs, and
    no voters. What comes after the object is not read.
    """
    content = quorum_state_fields(quorum_state)
    if content is None or "data_version" not in content:
        return False
    version = quorum_state_version(content["data_version"])
    first = {"clusterId": "", "appliedOffset": 0, "currentVoters": []}
    content = {"votedDirectoryId": "A" * 22, **content} if version == 0 else {**first, **content}
    if version not in (0, 1) or not {*first, "votedDirectoryId"} <= set(content):
        return False
    voters, directory = content["currentVoters"], content["votedDirectoryId"]
    return (
        all(is_signed(content.get(name), 32) for name in ("leaderId", "leaderEpoch", "votedId"))
        and isinstance(content["clusterId"], str)
        and is_signed(content["appliedOffset"], 64)
        and isinstance(voters, list)
        and (not voters or version == 0)
        and all(isinstance(one, dict) and is_signed(one.get("voterId"), 32) for one in voters)
        and isinstance(directory, str)
        and re.fullmatch("[A-Za-z0-9_-]{22}(==)?", directory) is not None
    )


def java_properties(text: str) -> dict[str, str] | None:
    """Return the pairs in a file of java.util.Properties; None for a `\\u` without four digits.

    A line that ends in a backslash goes on in the next one. A key ends at a blank, `=` or `:`.
    """
    pairs: dict[str, str] = {}
    logical = ""
    for physical in [*text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        line = physical.lstrip(" \t\f")
        if logical == "" and line[:1] in ("", "#", "!"):
            continue
        logical += line
        if (len(line) - len(line.rstrip("\\"))) % 2 == 1:
            logical = logical[:-1]
            continue
        words, at, is_key, has_sign = ["", ""], 0, True, False
        while at < len(logical):
            sign = logical[at]
            at += 1
            if sign == "\\":
                sign = logical[at : at + 1]
                at += 1
                if sign == "u":
                    if re.fullmatch("[0-9a-fA-F]{4}", logical[at : at + 4]) is None:
                        return None
                    sign = chr(int(logical[at : at + 4], 16))
                    at += 4
                else:
                    sign = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(sign, sign)
            elif is_key and sign in " \t\f=:":
                is_key, has_sign = False, sign in "=:"
                continue
            elif not is_key and words[1] == "" and sign in " \t\f":
                continue
            elif not is_key and words[1] == "" and sign in "=:" and not has_sign:
                has_sign = True
                continue
            words[not is_key] += sign
        pairs[words[0]] = words[1]
        logical = ""
    return pairs


@law("DISK-54", PartitionLog, "Kafka MetaProperties, MetaPropertiesEnsemble 4.4.0")
def node_properties_name_the_node(meta_properties: bytes) -> bool:
    """`meta.properties`, a file of Java's properties, has in version 1 a `node.id` and a
    `cluster.id`; in version 0, or without a version, it has a `broker.id` or a `cluster.id`. An id
    of a node is a number of 31 bits, without a blank after it. A `directory.id` has 16 bytes in
    base64 for URLs. It is none of the reserved ids, whose first 8 bytes are zeros and whose others
    are a signed number below 100.
    """
    told = java_properties(meta_properties.decode("latin-1"))
    if told is None:
        return False
    cluster = told.get("cluster.id")

    def is_id(text: str) -> bool:
        return (parsed_int(text, 32) or 0) >= 0 and parsed_int(text, 32) is not None

    directory = told.get("directory.id")
    if directory is not None:
        if re.fullmatch("[A-Za-z0-9_-]{22}(==)?", directory) is None:
            return False
        high, low = struct.unpack(">qq", urlsafe_b64decode(directory[:22] + "=="))
        if high == 0 and low < 100:
            return False
    version = parsed_int(told.get("version", "0").strip(), 32)
    if version == 0:
        return bool(told.get("broker.id") or cluster) and is_id(told.get("broker.id", "0"))
    return version == 1 and is_id(told.get("node.id", "")) and bool(cluster)


@law("DISK-55", PartitionLog, "Kafka CheckpointFile 4.3.1")
def checkpoint_has_a_count(checkpoint_file: bytes) -> bool:
    """A checkpoint has a line with its version and one with the number of its entries. A note: a
    broker makes the file empty before it first writes it. A single line that is not the version
    breaks CKPT-3 instead.
    """
    lines = checkpoint_file.splitlines()
    return len(lines) > 1 or (len(lines) == 1 and lines[0] != b"0")


@law("DISK-66", PartitionLog, "Kafka MetaPropertiesEnsemble.verify 4.4.0")
def log_directories_are_of_one_node(node_directories: Sequence[tuple[str, int, str]]) -> bool:
    """The log directories of one broker have different ids, where they have one, and the same ids
    of cluster and node. `node_directories` are cluster, node and directory id of each; an empty id,
    and node -1, are unknown. An error for two paths of one call with the same directory id, and a
    warning for two below one path: one may be a backup. A note for paths of two nodes or clusters.
    """
    ids = [directory for _, _, directory in node_directories if directory]
    clusters = {cluster for cluster, _, _ in node_directories} - {""}
    nodes = {node for _, node, _ in node_directories} - {-1}
    return len(set(ids)) == len(ids) and len(clusters) <= 1 and len(nodes) <= 1


@law("DISK-67", PartitionLog, "Kafka QuorumState.initialize, FileQuorumStateStore 4.4.0")
def metadata_log_has_a_vote(metadata_files: Mapping[str, bytes]) -> bool:
    """A log of the cluster's metadata that is not empty has a file `quorum-state` beside it: a node
    creates this file before it writes the first batch. A warning: without the file the node starts,
    and has forgotten its vote in an epoch that has no batch yet.
    """
    logs = [name for name in metadata_files if re.fullmatch(r"[0-9]{20}\.log", name)]
    return "quorum-state" in metadata_files or not any(metadata_files[name] for name in logs)
