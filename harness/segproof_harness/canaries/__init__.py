# SPDX-License-Identifier: Apache-2.0
"""Planted defects, each a subject: they measure whether the checks can fail at all.

Every one is a known defect of a real release, or a likely one, planted into the implementation by
a subclass. A check that no canary troubles is not yet a check.

    segproof replay --structure offset-index --count 1000 \\
        --subjects model,segproof_harness.canaries.indexes:K04OffsetIndex
"""

from dataclasses import dataclass

_INDEXES = "segproof_harness.canaries.indexes"
_TRANSACTIONS = "segproof_harness.canaries.transaction_index"
_RECORDS = "segproof_harness.canaries.records"
_SEGMENTS = "segproof_harness.canaries.log_segment"
_LOGS = "segproof_harness.canaries.partition_log"
_INDEX_FILES = "segproof_harness.canaries.index_file"
_INDEX_SERVICES = "segproof_harness.canaries.index_service"
_STORES = "segproof_harness.canaries.stores"


@dataclass(frozen=True, slots=True)
class Canary:
    """One planted defect."""

    canary_id: str
    structure_id: str
    subject_name: str
    """What `--subjects` takes."""
    defect: str
    """What was planted, in words."""
    laws: tuple[str, ...]
    """Laws that it breaks."""


CANARIES = (
    Canary(
        "K-01",
        "offset-index",
        f"{_INDEXES}:K01OffsetIndex",
        "reset removes what truncate_to(base offset) finds",
        ("ABSIDX-13",),
    ),
    Canary(
        "K-04",
        "offset-index",
        f"{_INDEXES}:K04OffsetIndex",
        "the midpoint of the search rounds down, so that it may never end",
        ("ABSIDX-25",),
    ),
    Canary(
        "K-05",
        "offset-index",
        f"{_INDEXES}:K05OffsetIndex",
        "sanity_check refuses a last offset that equals the base offset",
        ("OFFIDX-20",),
    ),
    Canary(
        "K-14",
        "offset-index",
        f"{_INDEXES}:K14OffsetIndex",
        "an offset too far from the base is cut to 32 bits",
        ("OFFIDX-6",),
    ),
    Canary(
        "K-51",
        "offset-index",
        f"{_INDEXES}:K51OffsetIndex",
        "max_entries is computed at construction only",
        ("ABSIDX-8",),
    ),
    Canary(
        "K-55",
        "time-index",
        f"{_INDEXES}:K55TimeIndex",
        "no slot is kept for the final entry",
        ("TIMEIDX-2", "TIMEIDX-18"),
    ),
    Canary(
        "K-57",
        "time-index",
        f"{_INDEXES}:K57TimeIndex",
        "the time index is truncated by timestamp instead of offset",
        ("TIMEIDX-11",),
    ),
    Canary(
        "K-58",
        "time-index",
        f"{_INDEXES}:K58TimeIndex",
        "an equal timestamp is appended again",
        ("TIMEIDX-6",),
    ),
    Canary(
        "K-62",
        "transaction-index",
        f"{_TRANSACTIONS}:K62TransactionIndex",
        "the listing goes on while any byte is left",
        ("TXNIDX-8",),
    ),
    Canary(
        "K-63",
        "transaction-index",
        f"{_TRANSACTIONS}:K63TransactionIndex",
        "collecting stops before the entry whose last stable offset reaches the bound",
        ("TXNIDX-10", "TXNIDX-11"),
    ),
    Canary(
        "K-64",
        "transaction-index",
        f"{_TRANSACTIONS}:K64TransactionIndex",
        "collecting takes the upper bound as inclusive",
        ("TXNIDX-10",),
    ),
    Canary(
        "K-65",
        "transaction-index",
        f"{_TRANSACTIONS}:K65TransactionIndex",
        "the transaction index is truncated by first offset",
        ("TXNIDX-12",),
    ),
    Canary(
        "K-24",
        "record-file",
        f"{_RECORDS}:K24RecordFile",
        "the end of a slice of a slice is bounded by a relative size",
        ("SCAN-14", "SCAN-16"),
    ),
    Canary(
        "K-26",
        "record-file",
        f"{_RECORDS}:K26RecordFile",
        "the scanner's limits wrap at 32 bits",
        ("SCAN-6",),
    ),
    Canary(
        "K-27",
        "record-file",
        f"{_RECORDS}:K27RecordFile",
        "the scanner refuses only negative sizes, not those below 14",
        ("SCAN-2", "SCAN-3"),
    ),
    Canary(
        "K-28",
        "record-file",
        f"{_RECORDS}:K28RecordFile",
        "a short read is taken for the end of the file",
        ("SCAN-7",),
    ),
    Canary(
        "K-30a",
        "record-file",
        f"{_RECORDS}:K30aRecordFile",
        "a preallocated file is closed without trimming",
        ("SCAN-13",),
    ),
    Canary(
        "K-30b",
        "record-file",
        f"{_RECORDS}:K30bRecordFile",
        "reading is bounded by the physical length of the file",
        ("SCAN-20",),
    ),
    Canary(
        "K-29c",
        "record-batch",
        f"{_RECORDS}:K29cBatches",
        "bytes behind the last record of a batch are not noticed",
        ("BATCH-16",),
    ),
    Canary(
        "K-43",
        "record-batch",
        f"{_RECORDS}:K43Batches",
        "sequence numbers are added without wrapping to 0",
        ("BATCH-5",),
    ),
    Canary(
        "K-02",
        "log-segment",
        f"{_SEGMENTS}:K02LogSegment",
        "a truncation does not give trimmed indexes their full size again",
        ("SEG-32",),
    ),
    Canary(
        "K-10",
        "log-segment",
        f"{_SEGMENTS}:K10LogSegment",
        "the age of a segment is counted by the wall clock, whatever the timestamps say",
        ("SEG-36",),
    ),
    Canary(
        "K-11a",
        "log-segment",
        f"{_SEGMENTS}:K11aLogSegment",
        "the first timestamp outlives a truncation to nothing",
        ("SEG-33",),
    ),
    Canary(
        "K-11b",
        "log-segment",
        f"{_SEGMENTS}:K11bLogSegment",
        "the time of creation outlives a truncation to nothing",
        ("SEG-33",),
    ),
    Canary(
        "K-13",
        "log-segment",
        f"{_SEGMENTS}:K13LogSegment",
        "recovery enters first offsets, though appends enter last ones",
        (
            "SEG-22",
            "SEG-25",
        ),
    ),
    Canary(
        "K-16",
        "log-segment",
        f"{_SEGMENTS}:K16LogSegment",
        "the size of what comes does not count when a segment is rolled",
        ("SEG-37",),
    ),
    Canary(
        "K-42a",
        "log-segment",
        f"{_SEGMENTS}:K42aLogSegment",
        "a recovery moves the end of the producer state by batches of producers only",
        ("PROD-15",),
    ),
    Canary(
        "K-56a",
        "log-segment",
        f"{_SEGMENTS}:K56aLogSegment",
        "no last time entry when the segment is rolled",
        ("SEG-38",),
    ),
    Canary(
        "K-56b",
        "log-segment",
        f"{_SEGMENTS}:K56bLogSegment",
        "no last time entry when the segment is closed",
        ("SEG-44",),
    ),
    Canary(
        "K-56c",
        "log-segment",
        f"{_SEGMENTS}:K56cLogSegment",
        "no last time entry when the segment was recovered",
        ("SEG-23",),
    ),
    Canary(
        "K-59",
        "log-segment",
        f"{_SEGMENTS}:K59LogSegment",
        "a batch that begins below the start offset is not read",
        ("SEG-15",),
    ),
    Canary(
        "K-68",
        "log-segment",
        f"{_SEGMENTS}:K68LogSegment",
        "an append compares with the interval by >=, not by >",
        ("SEG-4",),
    ),
    Canary(
        "K-03",
        "partition-log",
        f"{_LOGS}:K03PartitionLog",
        "the active, empty segment is in the way of one with its base",
        ("LOG-12",),
    ),
    Canary(
        "K-15",
        "partition-log",
        f"{_LOGS}:K15PartitionLog",
        "the base of a new segment is guessed, though the first offset is known",
        ("LOG-11",),
    ),
    Canary(
        "K-17",
        "partition-log",
        f"{_LOGS}:K17PartitionLog",
        "offsets that a follower is given are not compared with the log's end",
        ("LOG-21",),
    ),
    Canary(
        "K-32a",
        "partition-log",
        f"{_LOGS}:K32aPartitionLog",
        "after loading, all of the log counts as durable",
        ("LOAD-13",),
    ),
    Canary(
        "K-33b",
        "partition-log",
        f"{_LOGS}:K33bPartitionLog",
        "a log is recovered though it was closed in order",
        ("LOAD-10",),
    ),
    Canary(
        "K-34",
        "partition-log",
        f"{_LOGS}:K34PartitionLog",
        "a swap gets its name while what it replaces remains",
        ("LOAD-2", "LOG-4"),
    ),
    Canary(
        "K-35",
        "partition-log",
        f"{_LOGS}:K35PartitionLog",
        "a full truncation deletes the new segment with the old one of its name",
        ("LOG-14",),
    ),
    Canary(
        "K-39",
        "partition-log",
        f"{_LOGS}:K39PartitionLog",
        "a truncation at the end of the log, or behind it, leaves its epochs alone",
        ("LOG-13",),
    ),
    Canary(
        "K-40a",
        "partition-log",
        f"{_LOGS}:K40aPartitionLog",
        "an epoch that conflicts with later ones is ignored, and these stay",
        ("EPOCH-4",),
    ),
    Canary(
        "K-42b",
        "partition-log",
        f"{_LOGS}:K42bPartitionLog",
        "snapshots beyond the log stay where the producer state ends at its end already",
        ("PROD-13",),
    ),
    Canary(
        "R-01",
        "index-file",
        f"{_INDEX_FILES}:R01IndexFile",
        "the least hash, which has no absolute value, is kept as it is",
        ("RMQHASH-2", "RMQHASH-6"),
    ),
    Canary(
        "R-01b",
        "index-file",
        f"{_INDEX_FILES}:R01bIndexFile",
        "an entry keeps the signed hash",
        ("RMQIDX-3", "RMQHASH-2"),
    ),
    Canary(
        "R-02",
        "index-file",
        f"{_INDEX_FILES}:R02IndexFile",
        "the time difference is kept in milliseconds",
        ("RMQIDX-21",),
    ),
    Canary(
        "R-09",
        "index-file",
        f"{_INDEX_FILES}:R09IndexFile",
        "the slot count grows with every put",
        ("RMQIDX-24", "RMQIDX-30"),
    ),
    Canary(
        "R-16",
        "index-file",
        f"{_INDEX_FILES}:R16IndexFile",
        "the first entry is dated from itself, not from the end of the file before",
        ("RMQIDX-26",),
    ),
    Canary(
        "R-20",
        "index-file",
        f"{_INDEX_FILES}:R20IndexFile",
        "the end timestamp is the largest one, not the last",
        ("RMQIDX-25",),
    ),
    Canary(
        "R-21",
        "index-file",
        f"{_INDEX_FILES}:R21IndexFile",
        "a slot that a crash left at the count makes the new entry follow itself",
        ("RMQIDX-29", "RMQIDX-20"),
    ),
    Canary(
        "R-23",
        "index-file",
        f"{_INDEX_FILES}:R23IndexFile",
        "a query for a null key takes the reference and never gives it back",
        ("RMQIDX-39",),
    ),
    Canary(
        "R-31",
        "index-file",
        f"{_INDEX_FILES}:R31IndexFile",
        "the time difference is rounded to the nearest second, not cut",
        ("RMQIDX-21", "RMQIDX-33"),
    ),
    Canary(
        "R-35",
        "index-file",
        f"{_INDEX_FILES}:R35IndexFile",
        "a walk goes on behind an entry that is older than the window",
        ("RMQIDX-36",),
    ),
    Canary(
        "R-36",
        "index-file",
        f"{_INDEX_FILES}:R36IndexFile",
        "what a query finds comes oldest first",
        ("RMQIDX-31",),
    ),
    Canary(
        "R-37",
        "index-file",
        f"{_INDEX_FILES}:R37IndexFile",
        "the offsets that a query was given do not count towards the most it may find",
        ("RMQIDX-31",),
    ),
    Canary(
        "R-03",
        "index-service",
        f"{_INDEX_SERVICES}:R03IndexService",
        "expired files leave the list and stay on disk",
        ("RMQSVC-21",),
    ),
    Canary(
        "R-04",
        "index-service",
        f"{_INDEX_SERVICES}:R04IndexService",
        "the checkpoint's time has no safety margin",
        ("RMQCKPT-4",),
    ),
    Canary(
        "R-05a",
        "index-service",
        f"{_INDEX_SERVICES}:R05aIndexService",
        "a committed transaction is not indexed",
        ("RMQSVC-13",),
    ),
    Canary(
        "R-05b",
        "index-service",
        f"{_INDEX_SERVICES}:R05bIndexService",
        "a rolled back transaction is indexed",
        ("RMQSVC-13",),
    ),
    Canary(
        "R-07a",
        "index-service",
        f"{_INDEX_SERVICES}:R07aIndexService",
        "the unique key is entered without its topic",
        ("RMQSVC-14", "RMQHASH-5"),
    ),
    Canary(
        "R-07b",
        "index-service",
        f"{_INDEX_SERVICES}:R07bIndexService",
        "a message without a unique key is entered under null",
        ("RMQSVC-14",),
    ),
    Canary(
        "R-18",
        "index-service",
        f"{_INDEX_SERVICES}:R18IndexService",
        "two files of one millisecond share a name",
        ("RMQSVC-9",),
    ),
    Canary(
        "R-19",
        "index-service",
        f"{_INDEX_SERVICES}:R19IndexService",
        "a message at the end of the index has all its entries, whatever a crash left",
        ("RMQSVC-12",),
    ),
    Canary(
        "R-24",
        "index-service",
        f"{_INDEX_SERVICES}:R24IndexService",
        "after a crash a file goes though its end is just what the checkpoint covers",
        ("RMQSVC-4",),
    ),
    Canary(
        "R-25",
        "index-service",
        f"{_INDEX_SERVICES}:R25IndexService",
        "a file without entries ends a query",
        ("RMQSVC-19",),
    ),
    Canary(
        "R-32",
        "index-service",
        f"{_INDEX_SERVICES}:R32IndexService",
        "keys are split at any white space",
        ("RMQSVC-15",),
    ),
    Canary(
        "R-33",
        "index-service",
        f"{_INDEX_SERVICES}:R33IndexService",
        "the files are listed by the number that their name is",
        ("RMQSVC-1",),
    ),
    Canary(
        "R-34",
        "index-service",
        f"{_INDEX_SERVICES}:R34IndexService",
        "expiry takes the last file too",
        ("RMQSVC-21",),
    ),
    Canary(
        "R-38",
        "index-service",
        f"{_INDEX_SERVICES}:R38IndexService",
        "a new file does not begin with the end of the full one",
        ("RMQSVC-6",),
    ),
    Canary(
        "R-39",
        "index-service",
        f"{_INDEX_SERVICES}:R39IndexService",
        "the checkpoint keeps the largest end of a full file, not the last one",
        ("RMQSVC-10",),
    ),
    Canary(
        "R-40",
        "store-checkpoint",
        f"{_STORES}:R40StoreCheckpoint",
        "the safe time is that of the later one of log and queues",
        ("RMQCKPT-4",),
    ),
    Canary(
        "R-41",
        "store-checkpoint",
        f"{_STORES}:R41StoreCheckpoint",
        "a flush leaves the offset that the queues have reached as it was",
        ("RMQCKPT-3", "RMQCKPT-1"),
    ),
    Canary(
        "R-42",
        "commit-log",
        f"{_STORES}:R42CommitLog",
        "a record whose parts do not add up to its size is told like other damage",
        ("RMQLOG-3",),
    ),
    Canary(
        "R-43",
        "commit-log",
        f"{_STORES}:R43CommitLog",
        "the checksum of a body is checked whether it is wanted or not",
        ("RMQLOG-2",),
    ),
    Canary(
        "R-44",
        "consume-queue",
        f"{_STORES}:R44ConsumeQueue",
        "of several units of the time that is asked for, one between them is the answer",
        ("RMQCQ-3",),
    ),
    Canary(
        "R-45",
        "consume-queue",
        f"{_STORES}:R45ConsumeQueue",
        "a message that the queue has is added once more",
        ("RMQCQ-2",),
    ),
    Canary(
        "R-46",
        "message-store",
        f"{_STORES}:R46MessageStore",
        "after a kill too, a recovery tells the index of what lies behind the queues only",
        ("RMQLOG-5",),
    ),
)
"""Every planted defect."""
