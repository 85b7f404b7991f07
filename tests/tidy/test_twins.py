# SPDX-License-Identifier: Apache-2.0
"""Model and implementation have the same names: files, classes, functions, methods, parameters.

The implementation may have more (bulk twins, context managers, arrays), and so may the model
(keys, values, what laws need). What both have agrees in the order and names of its parameters, and
what a caller of Kafka or RocketMQ would ask for is on both sides. The files that one side has
alone are a table in docs/architecture.md.
"""

import importlib
import inspect
import pkgutil
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMPL = ROOT / "impl" / "segproof"
# What only one side takes: the model's files and clock, the implementation's door to files.
MODEL_ONLY = {"codecs", "now_ms", "modified_ms"}
IMPL_ONLY = {
    "before_cut",
    "files",
    "flushed_end",
    "limit",
    "source",
    "time",
    "write_format",
    "zone",
}
# What appending took up to 3.9.
IMPL_ONLY |= {"largest_timestamp", "shallow_offset_of_max_timestamp"}
Table = dict[str, tuple[str, ...]]
KAFKA_TWINS: Table = {
    "offset_index": ("OffsetIndex", "OffsetPosition"),
    "time_index": ("TimeIndex", "TimestampOffset"),
    "transaction_index": ("TransactionIndex", "AbortedTxn", "TxnIndexSearchResult"),
    "record": ("Record", "RecordHeader"),
    "record_batch": ("RecordBatch",),
    "record_file": ("RecordFile",),
    "log_config": ("LogConfig",),
    "checkpoint_file": (
        "CheckpointFile",
        "OffsetCheckpointFile",
        "LeaderEpochCheckpointFile",
        "EpochEntry",
        "TopicPartitionOffset",
    ),
    "leader_epoch_cache": ("LeaderEpochFileCache",),
    "partition_metadata_file": ("PartitionMetadataFile", "PartitionMetadata"),
    "producer_snapshot": ("BatchMetadata", "ProducerStateEntry"),
    "producer_append_info": ("ProducerAppendInfo", "TxnMetadata", "CompletedTxn"),
    "producer_state": ("ProducerStateManager",),
    "log_offset_metadata": ("LogOffsetMetadata",),
    "log_segments": ("LogSegments",),
    "log_validator": ("LogAppendInfo", "LogValidator"),
    "partition_log": ("PartitionLog",),
    "lazy_index": ("LazyIndex",),
    "segment_files": ("SegmentFiles",),
    "segment_recovery": ("SegmentRecovery",),
    "log_segment": ("LogSegment", "FetchDataInfo"),
    "log_append": ("LogAppend",),
    "read_bounds": ("ReadBounds",),
    "crash_remains": ("CrashRemains",),
    "log_loader": ("LogLoader",),
}
ROCKETMQ_TWINS: Table = {
    "reference_resource": ("ReferenceResource",),
    "index_header": ("IndexHeader",),
    "index_file": ("IndexFile",),
    "store_checkpoint": ("StoreCheckpoint",),
    "message": ("Message", "CheckResult", "DispatchRequest"),
    "commit_log": ("CommitLog",),
    "consume_queue": ("ConsumeQueue", "ConsumeQueueUnit"),
    "index_service": ("IndexService", "QueryOffsetResult"),
    "message_store": ("MessageStore", "MessageStoreConfig"),
}
TWINS = {"kafka": KAFKA_TWINS, "rocketmq": ROCKETMQ_TWINS}
KAFKA_FUNCTIONS: Table = {
    "record": (
        "encode_varint", "decode_varint", "encode_varlong", "decode_varlong", "increment_sequence",
        "decrement_sequence",
    ),
    "producer_snapshot": ("read_snapshot", "write_snapshot"),
}  # fmt: skip
ROCKETMQ_FUNCTIONS: Table = {
    "key_hash": ("hash_code", "index_key_hash", "build_key"),
    "message": ("decode_text", "blank_tail"),
    "consume_queue": ("read_units",),
}  # fmt: skip
FUNCTIONS = {"kafka": KAFKA_FUNCTIONS, "rocketmq": ROCKETMQ_FUNCTIONS}
# Upstream's public operations, which both sides have. To open is `open` of the implementation, and
# to make the object in the model.
OPERATIONS = {
    "OffsetIndex": {
        "append", "lookup", "entry", "fetch_upper_bound_offset", "truncate", "truncate_to",
        "sanity_check", "last_offset",
    },
    "TimeIndex": {
        "maybe_append", "lookup", "entry", "truncate", "truncate_to", "sanity_check", "last_entry",
        "is_full",
    },
    "AbstractIndex": {
        "is_full", "max_entries", "entries", "length", "resize", "rename_to", "flush",
        "delete_if_exists", "trim_to_valid_size", "size_in_bytes", "close", "close_handler",
        "reset", "relative_offset", "can_append_offset",
    },
    "TransactionIndex": {
        "append", "all_aborted_txns", "collect_aborted_txns", "truncate_to", "reset",
        "sanity_check", "flush", "close", "delete_if_exists", "rename_to",
    },
    "CheckpointFile": {"read", "write"},
    "OffsetCheckpointFile": {"read", "write"},
    "LeaderEpochFileCache": {
        "assign", "latest_epoch", "previous_epoch", "previous_epoch_before", "next_epoch",
        "latest_entry", "earliest_entry", "epoch_entries", "end_offset_for", "truncate_from_end",
        "truncate_from_start", "epoch_for_offset", "epoch_entries_in_range", "clear",
        "clear_and_flush",
    },
    "LogSegments": {
        "active_segment", "add", "base_offsets", "clear", "contains", "first_segment",
        "floor_segment", "get", "higher_segment", "higher_segments", "is_empty", "last_segment",
        "lower_segment", "non_active_log_segments_from", "number_of_segments", "remove",
        "size_in_bytes", "values",
    },
    "PartitionLog": {
        "append_as_leader", "append_as_follower", "read", "fetch_offset_by_timestamp",
        "collect_aborted_transactions", "truncate_to", "truncate_fully_and_start_at", "roll",
        "delete_old_segments", "delete_pending_files", "maybe_increment_log_start_offset",
        "update_high_watermark", "flush", "split_overflowed_segment", "remove_expired_producers",
        "close", "close_handlers", "delete", "log_segments", "log_start_offset", "log_end_offset",
        "high_watermark", "last_stable_offset", "recovery_point", "leader_epoch_cache",
        "producer_state_manager", "size",
    },
    "PartitionMetadataFile": {"read", "write", "exists", "delete"},
    "LazyIndex": {
        "get", "rename_to", "delete_if_exists", "close", "close_handler",
    },
    "LogSegment": {
        "append", "append_from_file", "truncate_to", "recover", "translate_offset", "read",
        "fetch_upper_bound_offset", "read_next_offset", "has_overflow", "find_offset_by_timestamp",
        "update_txn_index", "collect_aborted_txns", "resize_indexes", "sanity_check",
        "max_timestamp_so_far", "offset_of_max_timestamp_so_far", "largest_timestamp",
        "largest_record_timestamp", "time_waited_for_roll", "get_first_batch_timestamp",
        "should_roll", "on_become_inactive_segment", "flush", "close", "close_handlers",
        "change_file_suffixes", "has_suffix", "delete_if_exists", "last_modified",
        "set_last_modified", "size", "offset_index", "time_index",
    },
    "RecordBatch": {"is_valid", "ensure_valid", "records"},
    "ProducerAppendInfo": {"append", "origin", "producer_id"},
    "ProducerStateEntry": {
        "producer_id", "producer_epoch", "coordinator_epoch", "last_timestamp", "is_empty",
        "current_txn_first_offset", "batch_metadata", "find_duplicate_batch", "last_seq",
    },
    "ProducerStateManager": {
        "active_producers", "complete_txn", "delete_snapshots_before",
        "first_undecided_offset", "first_unstable_offset", "has_late_transaction", "is_empty",
        "last_entry", "last_stable_offset", "latest_snapshot_offset", "load_producer_entry",
        "oldest_snapshot_offset", "on_high_watermark_updated",
        "on_log_start_offset_incremented", "ongoing_txns", "prepare_update",
        "remove_and_mark_snapshot_for_deletion", "remove_expired_producers",
        "remove_stray_snapshots", "take_snapshot", "truncate_and_reload",
        "truncate_fully_and_start_at", "update", "update_map_end_offset", "update_producers",
    },
    "RecordFile": {
        "append", "truncate_to", "trim", "flush", "close", "slice", "batches",
        "search_for_offset_with_size", "search_for_timestamp", "largest_timestamp_after",
        "size_in_bytes",
    },
    "ReferenceResource": {
        "hold", "release", "shutdown", "is_cleanup_over", "ref_count", "is_available",
        "cleanup_over", "first_shutdown_timestamp_ms",
    },
    "IndexHeader": {
        "begin_timestamp", "end_timestamp", "begin_phy_offset", "end_phy_offset",
        "hash_slot_count", "index_count",
    },
    "IndexFile": {
        "load", "is_write_full", "put_key", "select_phy_offset", "is_time_matched",
        "index_key_hash_method", "flush", "shutdown", "destroy", "close", "file_name", "file_size",
        "hash_slot_num", "index_num", "begin_timestamp", "end_timestamp", "begin_phy_offset",
        "end_phy_offset", "hash_slot_count", "index_count", "ref_count", "is_available",
    },
    "StoreCheckpoint": {
        "physic_msg_timestamp", "logics_msg_timestamp", "index_msg_timestamp",
        "master_flushed_offset", "confirm_phy_offset", "set_physic_msg_timestamp",
        "set_logics_msg_timestamp", "set_index_msg_timestamp", "set_master_flushed_offset",
        "set_confirm_phy_offset", "flush", "shutdown", "min_timestamp", "min_timestamp_index",
    },
    "CommitLog": {"scan", "look_message", "min_offset", "max_offset"},
    "ConsumeQueue": {"put_message_position_info", "get_offset_in_queue_by_time"},
    "IndexService": {
        "load", "build_index", "query_offset", "retry_get_and_create_index_file",
        "get_and_create_last_index_file", "flush", "delete_expired_file", "destroy", "shutdown",
        "total_size", "index_files", "store_checkpoint",
    },
    "MessageStore": {
        "load", "recover", "do_dispatch", "query_message", "last_exit_ok",
    },
}  # fmt: skip


def all_in(tables: dict[str, Table]) -> list[tuple[str, str, str]]:
    """Return (system, module, name) for each name of the tables."""
    return [
        (s, m, name) for s, table in tables.items() for m, names in table.items() for name in names
    ]


@cache
def modelled(system: str) -> dict[str, object]:
    """Return what the model of a system defines, by name; a name stands for one thing."""
    package = importlib.import_module(f"segproof_model.{system}")
    modules = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return {
        name: value
        for module in modules
        for name, value in vars(importlib.import_module(module.name)).items()
        if getattr(value, "__module__", "") == module.name
    }


def sides(system: str, module: str, name: str) -> tuple[object, object]:
    """Return what has this name in the model, and in the implementation's module."""
    (twin,) = (IMPL / system).rglob(f"{module}.py")
    path = ".".join(twin.relative_to(IMPL).with_suffix("").parts)
    return modelled(system)[name], getattr(importlib.import_module(f"segproof.{path}"), name)


def names_of(kind: type) -> set[str]:
    """Return the names of a class: what it defines, declares, and what its methods set."""
    names = set(dir(kind))
    for base in kind.__mro__:
        names |= set(getattr(base, "__annotations__", {}))
        if base.__module__.startswith("segproof_model"):
            names |= set(re.findall(r"self\.(\w+)", inspect.getsource(base)))
    return names


def parameters(function: object, only: set[str]) -> list[str]:
    """Return the names of the parameters in order, without `self` and what one side only takes."""
    assert callable(function)
    names = inspect.signature(function).parameters
    return [name for name in names if name not in only | {"self"}]


def public(owner: object) -> dict[str, object]:
    """Return the public functions of a class, inherited ones included."""
    return {
        name: member
        for name, member in inspect.getmembers(owner, inspect.isfunction)
        if not name.startswith("_")
    }


@pytest.mark.parametrize(("system", "module", "name"), all_in(TWINS))
def test_methods_that_both_have_take_the_same(system: str, module: str, name: str) -> None:
    """A method of the model and its twin have parameters of one name and order."""
    model, impl = sides(system, module, name)
    ours, theirs = public(model), public(impl)
    for shared in sorted(ours.keys() & theirs.keys()):
        expected = parameters(ours[shared], MODEL_ONLY)
        assert expected == parameters(theirs[shared], IMPL_ONLY), f"{name}.{shared}"


@pytest.mark.parametrize(("system", "module", "name"), all_in(TWINS))
def test_upstream_operations_are_on_both_sides(system: str, module: str, name: str) -> None:
    """Whatever upstream offers is there on both sides, under the same name."""
    for side in sides(system, module, name):
        assert isinstance(side, type)
        wanted = set().union(*(OPERATIONS.get(base.__name__, set()) for base in side.__mro__))
        assert set() == wanted - names_of(side), side


@pytest.mark.parametrize(("system", "module", "name"), all_in(FUNCTIONS))
def test_functions_take_the_same(system: str, module: str, name: str) -> None:
    """A function of the model and its twin have parameters of one name and order."""
    model, impl = sides(system, module, name)
    assert parameters(model, MODEL_ONLY) == parameters(impl, IMPL_ONLY)


@pytest.mark.parametrize(
    "name",
    [
        "OffsetPosition", "TimestampOffset", "AbortedTxn", "TxnMetadata", "CompletedTxn",
        "LogOffsetMetadata",
    ],
)  # fmt: skip
def test_values_have_the_same_fields(name: str) -> None:
    """The value of an entry is the same tuple on both sides."""
    module = next(module for module, names in KAFKA_TWINS.items() if name in names)
    model, impl = sides("kafka", module, name)
    assert getattr(model, "_fields") == getattr(impl, "_fields")  # noqa: B009


def test_files_have_the_same_names() -> None:
    """A file has a twin of its name on the other side, or a row in docs/architecture.md."""
    model = ROOT / "model" / "segproof_model"
    alone = set()
    for system in TWINS:
        ours = {
            path.stem
            for path in (model / system).glob("*/*.py")
            if not re.search("_releases|_deviations", path.stem)
        }
        theirs = {path.stem for path in (IMPL / system).rglob("*.py")}
        alone |= {("model", f"{system}/{name}") for name in ours - theirs}
        alone |= {("impl", f"{system}/{name}") for name in theirs - ours}
    text = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = re.findall(r"^\| (impl|model) \| (.+?) \|", text, re.MULTILINE)
    listed = [(side, name) for side, cell in rows for name in re.findall("`(.+?)`", cell)]
    assert sorted(alone) == sorted(listed)
