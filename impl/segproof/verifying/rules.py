# SPDX-License-Identifier: Apache-2.0
"""What `verify` checks: each law with its structure, its usual severity, and what to do.

The laws themselves are stated and kept in the model; this table is what a user reads beside them.
"""

from typing import NamedTuple

from segproof.findings import Severity

__all__ = ["RULES", "Rule"]

ERROR, WARNING, NOTE = Severity.ERROR, Severity.WARNING, Severity.NOTE

REBUILD = (
    "stop the broker and make the indexes new with `segproof rebuild DIR --out DIR2` (or"
    " `--in-place`), or remove the segment's .index file, for which a broker makes all its indexes"
    " new at its start (for a missing .timeindex it does not)"
)
RESTORE = (
    "copy the segment from another replica: a broker that recovers the partition may cut the log"
    " here, and what follows is lost, sound or not"
)
RELIST = "find out what put it there; Kafka does not read it"
REMAKE_TRANSACTIONS = (
    "copy the segment from another replica, or remove the three index files and recover the"
    " partition, so that the broker makes them new"
)


REMAKE_SNAPSHOT = (
    "stop the broker and remove the snapshot, and .kafka_cleanshutdown if there is no other: its"
    " next start makes the state anew from an older one and the log"
)


REMAKE_INDEX = (
    "stop the broker and make the index new from the commit log with `segproof rebuild STORE --out"
    " DIR2` (or `--in-place`); messages that the log has lost are lost to the index too"
)
COPY_LOG = "copy the commit log from a replica; what is damaged here can't be made new"


OF_ANY_FILE = frozenset({"DISK-1", "DISK-2", "DISK-4", "DISK-6", "DISK-7"})


class Rule(NamedTuple):
    """How a broken law is shown."""

    structure: str
    severity: Severity
    hint: str
    is_deep: bool = False
    """Whether only a deep run checks it."""
    is_of_any_file: bool = False
    """Whether a finding names the structure of its file, and not that of the rule."""


def _rules(structure: str, severity: Severity, hint: str, *laws: str) -> dict[str, Rule]:
    return {law: Rule(structure, severity, hint, is_of_any_file=law in OF_ANY_FILE) for law in laws}


def _deep(hint: str, *laws: str) -> dict[str, Rule]:
    return {law: Rule("record-batch", ERROR, hint, is_deep=True) for law in laws}


RULES: dict[str, Rule] = {
    # names and files
    **_rules("log-segment", ERROR, "rename the file to the offset it begins with, or remove it",
             "FILE-1", "FILE-2"),
    **_rules("log-segment", ERROR, "check the rights and the disk; what is"
             " no file, replace by that of a replica; then verify again", "DISK-1"),
    **_rules("log-segment", WARNING, "verify again, best while nothing writes here", "DISK-2"),
    **_rules("partition-log", NOTE, RELIST, "DISK-3"),
    **_rules("log-segment", ERROR, "find the log; at its next start the broker removes the index",
             "DISK-4"),
    **_rules("log-segment", WARNING,
             "no record is lost: at its next start a broker reads the segment and makes a missing"
             " .index new, but a missing .timeindex empty, so that reads by time scan the log; make"
             " both new with `segproof rebuild DIR --out DIR2` (or `--in-place`)",
             "DISK-5"),
    **_rules("log-segment", ERROR,
             "this file was not closed: the broker did not stop as the marker or the later segment"
             " says; recover the partition", "DISK-6"),
    **_rules("log-segment", ERROR, "move it away: Kafka addresses files with 31 bits, so it is none"
             " of Kafka's", "DISK-7"),
    **_rules("partition-log", NOTE, "nothing: the broker removes or completes it at its next"
             " start", "LOAD-1"),
    **_rules("partition-log", WARNING, "give this topic a larger segment.index.bytes before a"
             " broker starts; if it has one of its own, verify with that", "LOAD-19"),
    **_rules("partition-log", WARNING, "give the path of a partition or data directory, or of a"
             " .log, .index, .timeindex or .txnindex file, a snapshot or a checkpoint; of RocketMQ"
             " the whole store, its index folder or an index file", "DISK-20"),
    # offset index
    **_rules("offset-index", ERROR, REBUILD, "OFFIDX-1", "OFFIDX-2", "DISK-8", "SEG-7"),
    **_rules("offset-index", WARNING, "no record is lost, but each read behind the last entry goes"
             " through the log from there; lawful only if index.interval.bytes was about so large."
             " Else " + REBUILD, "DISK-24"),
    # time index
    **_rules("time-index", ERROR, REBUILD, "TIMEIDX-1", "TIMEIDX-7", "DISK-9", "DISK-10",
             "DISK-22"),
    # transaction index
    **_rules("transaction-index", ERROR, REMAKE_TRANSACTIONS, "TXNIDX-1",
             "DISK-11", "DISK-12", "DISK-21"),
    # log
    **_rules("record-file", ERROR, RESTORE, "SCAN-2", "SCAN-10", "DUMP-6", "DISK-23"),
    **_rules("record-batch", ERROR, RESTORE, "BATCH-2", "BATCH-3", "BATCH-11", "BATCH-14",
             "BATCH-15", "BATCH-16", "BATCH-18", "BATCH-19", "DISK-14"),
    **_rules("record-batch", WARNING, "nothing, if a newer release wrote it; else compare it with"
             " another replica: it is damaged", "DISK-15"),
    **_rules("log-segment", ERROR, RESTORE, "DISK-13"),
    **_rules("partition-log", ERROR, "compare both segments with another replica and keep the right"
             " one", "LOG-4"),
    **_rules("partition-log", NOTE, "compaction leaves gaps, some as large as segments; in a topic"
             " that was never compacted records are missing: compare with another replica",
             "DISK-19"),
    **_rules("partition-log", WARNING,
             "a segment between the two is missing, or this one has lost its end; consumers pass"
             " over these offsets in silence. Look for the files in lost+found, in the other log"
             " directories and under other names, or copy the partition from another replica",
             "DISK-25"),
    **_rules("partition-log", NOTE, "nothing for a link to a partition; remove a link that leads"
             " back, and give a directory that lies too deep by itself", "DISK-26"),
    **_rules("partition-log", ERROR, "keep the one with 20 digits, and look into the other: what"
             " it holds is read by no broker", "DISK-27"),
    # leader epochs
    **_rules("record-batch", ERROR, "compare the partition with another replica: this log holds"
             " batches of two leaders that did not know of each other", "DISK-28"),
    **_rules("partition-log", ERROR, "stop the broker and copy the file, or the partition, from"
             " another replica", "DISK-37"),
    # producers and transactions
    **_rules("record-batch", ERROR, "compare with another replica; lawful only if the broker had"
             " forgotten the producer between (producer.id.expiration.ms)", "DISK-29"),
    **_rules("record-batch", ERROR, "compare with another replica; lawful only if the broker had"
             " forgotten the producer between (producer.id.expiration.ms): then the records are in"
             " the log twice", "DISK-30"),
    **_rules("record-batch", WARNING, "compare with another replica: batches may be missing; lawful"
             " if the broker had forgotten the producer between (producer.id.expiration.ms), or a"
             " client older than 2.5 began anew", "DISK-31"),
    **_rules("partition-log", NOTE, "nothing while its producer is at work: the transaction ends"
             " with its marker", "DISK-32"),
    **_rules("partition-log", NOTE, "nothing: a transaction may have no batch here", "DISK-33"),
    **_rules("record-batch", WARNING, "compare with another replica: a marker of a replaced"
             " coordinator may have ended the wrong transaction", "DISK-34"),
    **_rules("record-batch", ERROR, "compare with another replica: a marker is missing, or the"
             " broker did not write this batch. One that has to read the log from before it to"
             " know its producers can't load the partition", "DISK-44"),
    **_rules("partition-log", WARNING, REMAKE_SNAPSHOT, "PROD-3", "PROD-14"),
    **_rules("partition-log", ERROR, REMAKE_SNAPSHOT, "DISK-35"),
    **_rules("partition-log", WARNING, "compare the end of the log with another replica, before"
             " the broker's next start removes this file", "DISK-36"),
    # checkpoints
    **_rules("partition-log", ERROR, "stop the broker and remove the file, or copy it from another"
             " replica; with it the broker takes the whole data directory offline", "CKPT-3",
             "META-2"),
    **_rules("partition-log", ERROR, "stop the broker and remove the file, or copy it from another"
             " replica; with it the broker fails at its start, or takes the offsets of all its"
             " partitions as unknown", "CKPT-4"),
    **_rules("partition-log", ERROR, "stop the broker and copy the file from another replica, or"
             " remove the entries that conflict", "EPOCH-1"),
    **_rules("partition-log", WARNING, "compare the end of the log with another replica",
             "DISK-38"),
    **_rules("partition-log", NOTE, "nothing, if the partition was moved or removed; else look for"
             " its directory in the other log directories", "DISK-39"),
    **_rules("partition-log", NOTE, "nothing: the file's presence is what counts", "DISK-40"),
    **_rules("partition-log", NOTE, "nothing: see what the message says of the next start",
             "DISK-41"),
    **_rules("partition-log", WARNING, "copy this file away before a broker starts here",
             "DISK-42"),
    **_rules("partition-log", ERROR, "copy the directory away before a broker starts here; then"
             " correct or remove the line of this partition in the checkpoint, or copy the"
             " partition from another replica", "DISK-43"),
    # index files of RocketMQ
    **_rules("index-file", ERROR, "RocketMQ grows a short file with zeros, and reads another"
             " geometry out of place: make the index new from the commit log", "RMQDISK-1"),
    **_rules("index-file", WARNING, "say how many slots the file has (maxHashSlotNum of the broker)"
             " with --hash-slots", "RMQDISK-2"),
    **_rules("index-file", NOTE, "nothing, if somebody renamed it; RocketMQ takes its index files"
             " in the order of their names", "RMQDISK-3"),
    **_rules("index-file", ERROR, REMAKE_INDEX, "RMQDISK-4", "RMQDISK-5", "RMQDISK-6", "RMQDISK-8",
             "RMQDISK-9", "RMQDISK-10", "RMQDISK-11", "RMQDISK-13", "RMQDISK-15", "RMQDISK-16"),
    **_rules("index-file", WARNING, "RocketMQ does not look there; find out what wrote it",
             "RMQDISK-7"),
    **_rules("index-file", WARNING, "nothing, if no other finding is of this file: RocketMQ only"
             " shows this number; slots were damaged and taken anew, or the header was",
             "RMQDISK-12"),
    **_rules("index-file", NOTE, "ask with a later end where a message is not found by its time; a"
             " store with its commit log tells whether the entry is right (RMQDISK-32)",
             "RMQDISK-14"),
    **_rules("index-service", ERROR, "look for files that were copied from elsewhere or renamed,"
             " else make the index new from the commit log", "RMQDISK-17"),
    **_rules("index-service", WARNING, "give all files the geometry that the broker is configured"
             " for: make the index new from the commit log", "RMQDISK-18"),
    **_rules("index-service", WARNING, REMAKE_INDEX, "RMQDISK-19"),
    **_rules("index-service", WARNING, "stop the broker and remove the file: it is made new with"
             " zeros, and an abnormal start then recovers from the first log file", "RMQDISK-20"),
    **_rules("index-service", WARNING, "after an abnormal stop the broker would keep index files"
             " that may be damaged: remove the checkpoint while it is stopped", "RMQDISK-21"),
    **_rules("index-service", NOTE, "nothing while the broker runs; else see what the message says"
             " of its next start", "RMQDISK-22"),
    # the commit log of RocketMQ
    **_rules("index-service", ERROR, "look for the missing file in lost+found or on a replica",
             "RMQDISK-23"),
    **_rules("index-service", ERROR, COPY_LOG, "RMQDISK-24", "RMQDISK-25", "RMQDISK-26",
             "RMQDISK-27"),
    # the index against the commit log
    **_rules("index-service", ERROR, REMAKE_INDEX, "RMQDISK-28", "RMQDISK-29", "RMQDISK-30",
             "RMQDISK-31", "RMQDISK-32"),
    **_rules("index-service", WARNING, "these messages are found by offset and not by key; make the"
             " index new from the commit log", "RMQDISK-33"),
    **_rules("index-service", NOTE, "nothing: a broker that died indexes the message on the border"
             " of two files again", "RMQDISK-34"),
    # consume queues of RocketMQ
    **_rules("index-service", ERROR, "stop the broker, remove the folder consumequeue and the file"
             " checkpoint, make an empty file abort, and start it, 5.4.0 and later with"
             " commitLogRecoverMaxNum at the number of log files: it makes queues and index new"
             " from the log", "RMQDISK-35", "RMQDISK-36", "RMQDISK-37"),
    **_rules("index-service", NOTE, "find out what put it there", "RMQDISK-38"),
    **_rules("index-service", ERROR, "stop the broker, and move it out of the store", "RMQDISK-39"),
    # records
    **_deep(RESTORE, "BATCH-9", "BATCH-10", "DISK-16", "DISK-17", "DISK-18"),
}  # fmt: skip
"""Every law that `verify` can report."""
