# SPDX-License-Identifier: Apache-2.0
"""What can differ between releases of RocketMQ, and between them and segproof.

Used by: early_flags, and through it every structure of RocketMQ.
"""

from dataclasses import dataclass
from typing import Literal

from segproof_model.declaring import flag
from segproof_model.language.outcomes import ErrorKind

__all__ = ["RocketMQFlags"]


@dataclass(frozen=True, slots=True)
class RocketMQFlags:
    """The flags whose names begin with `rmq_`."""

    name: str

    rmq_slot_count_each_put: bool = flag(
        False,
        "the slot count grows with each put, not only with one into a free slot",
        "RMQIDX-24",
        "RMQIDX-29",
        "RMQIDX-30",
    )
    rmq_tags_indexed: bool = flag(
        True, "a message with tags has one entry more, under its topic and tags", "RMQSVC-14"
    )
    rmq_unique_key_indexed: bool = flag(
        True, "a message has an entry under its topic and unique key", "RMQSVC-14"
    )
    rmq_strange_name_skipped: bool = flag(
        True,
        "loading passes over a file whose name is no number; otherwise it ends with the"
        " number-format error",
        "RMQSVC-2",
    )
    rmq_committed_indexed: bool = flag(
        True, "the end of a transaction that is committed is indexed", "RMQSVC-13"
    )
    rmq_shutdown_clears_list: bool = flag(
        True, "shutting the service down empties its list of files", "RMQSVC-23"
    )
    rmq_shutdown_hides_errors: bool = flag(
        True, "shutting an index file down goes on where its flush fails", "RMQIDX-14"
    )
    rmq_load_result_used: bool = flag(
        True, "a store stops where its index service could not be loaded", "RMQSVC-2"
    )
    rmq_checkpoint_fields: Literal[3, 4, 5, 6] = flag(
        6, "how many fields of the store checkpoint are known", "RMQCKPT-1", "RMQCKPT-2"
    )
    rmq_query_list_capped_first: Literal["all", "untyped", "none"] = flag(
        "all",
        "which queries cut the wanted number before they make their list: all, those without a type"
        " of key, or none",
        "RMQSVC-20",
    )
    rmq_magic_v2: bool = flag(
        True, "the second magic of a record, with long topics, is known", "RMQLOG-1", "RMQLOG-3"
    )
    rmq_hosts_v6: bool = flag(
        True,
        "flags of a record say that its hosts have 16 bytes of address; otherwise each has 4",
        "RMQLOG-1",
        "RMQLOG-3",
    )
    rmq_record_room: Literal["none", "wrapped", "all"] = flag(
        "all",
        "whether the size of a record is compared with the bytes that are left before anything is"
        " read, in 32 bits that wrap or as it is",
        "RMQLOG-3",
    )
    rmq_property_numbers: Literal["none", "delay", "batch"] = flag(
        "batch",
        "which properties must be numbers: none, a scheduled message's delay, or also the base and"
        " the count of a batch",
        "RMQLOG-3",
    )
    rmq_properties_split: bool = flag(
        False, "a property is what splits into two parts, be the first one empty", "RMQLOG-4"
    )
    rmq_normal_recovery_dispatches: bool = flag(
        True, "recovery after a clean exit passes what it reads to the index", "RMQLOG-5"
    )
    rmq_reads_on_from_queues: bool = flag(
        True,
        "where recovery after a clean exit passes nothing on, the store reads the log on from where"
        " its queues end; otherwise from the log's end",
        "RMQLOG-5",
    )
    rmq_recovery_asks_each: bool = flag(
        True,
        "queues and index each say whether recovery may begin with a file of the log, ten files"
        " back at most; otherwise one time of the checkpoint does",
        "RMQLOG-5",
    )
    rmq_recovery_trusts_queues: bool = flag(
        True,
        "where each part is asked after a kill, the queues are as far as the checkpoint says of"
        " them alone; otherwise as far as its least time",
        "RMQLOG-5",
    )
    rmq_empty_log_file_passed: bool = flag(
        True, "a store with an empty last file of its log can be loaded", "RMQLOG-3"
    )
    rmq_queue_lookup: Literal["nearest", "boundary"] = flag(
        "boundary",
        "a lookup by time in a consume queue answers the nearest unit, or a boundary",
        "RMQCQ-3",
    )
    rmq_queue_knows_end: bool = flag(
        True,
        "what a consume queue has reached of the log is the end of its last message, not its begin",
        "RMQCQ-2",
    )
    # RocketMQ: deviations of segproof
    rmq_recovers_unloaded: bool = flag(
        True, "a store recovers though its index could not be loaded", "RMQSVC-2"
    )
    rmq_recovery_passes_first: bool = flag(
        True,
        "recovery after a clean exit passes over the message that begins where the queues end",
        "RMQLOG-5",
    )
    rmq_checkpoint_wraps: bool = flag(
        True, "the safety of 3 s is taken from the least time in 64 bits that wrap", "RMQCKPT-4"
    )
    rmq_checks_chains: bool = flag(
        False,
        "a chain of entries that does not lead downwards is corrupt, and no put makes one",
        "RMQIDX-20",
        "RMQIDX-29",
        "RMQIDX-32",
        "RMQIDX-35",
        "RMQIDX-36",
        "RMQIDX-37",
        "RMQIDX-38",
        "RMQIDX-40",
    )
    rmq_opening_loads: bool = flag(
        False, "opening an existing index file reads its header", "RMQIDX-7", "RMQIDX-11"
    )
    rmq_checks_geometry: bool = flag(
        False,
        "an index file of another size, or numbers of slots and entries that give none, are"
        " refused, and nothing is created or grown, but a file of no bytes",
        "RMQHASH-4",
        "RMQIDX-9",
        "RMQIDX-10",
        "RMQSVC-2",
    )
    rmq_null_key_leaks: bool = flag(
        True, "a query for a null key leaves the file held for ever", "RMQIDX-39"
    )
    rmq_closed_answers_nothing: bool = flag(
        True,
        "a query to a destroyed file finds nothing; otherwise every use of a closed file raises"
        " the unmapped error",
        "RMQIDX-17",
        "RMQREF-4",
    )
    rmq_names_distinct: bool = flag(
        False, "a new file whose name is taken gets the next free one", "RMQSVC-9"
    )
    rmq_creation_error: ErrorKind = flag(
        ErrorKind.LOCK_STATE, "the error for a file that cannot be created", "RMQSVC-8"
    )
    rmq_message_indexed_once: bool = flag(
        False, "the entries that a message has are not written again", "RMQSVC-12"
    )
    rmq_empty_file_hides: bool = flag(
        True, "a file without entries ends a query that begins above 0", "RMQSVC-19"
    )
    rmq_load_replaces: bool = flag(
        False, "a second load lists the files anew, not once more", "RMQSVC-5"
    )
    rmq_failing_put_raises: bool = flag(
        False, "a put that fails on a file with room raises, and is not tried for ever", "RMQSVC-25"
    )
