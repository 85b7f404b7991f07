# SPDX-License-Identifier: Apache-2.0
"""The pages of the Python API: an overview, a page for each group, and one for each name in it."""

import importlib
import inspect
from typing import Any, NamedTuple

OPENING = """\
# Python API

Who should read this: everyone who uses segproof from a program. The how-to pages have examples:
[Kafka](../howto/use-segproof-kafka.md), [RocketMQ](../howto/use-segproof-rocketmq.md). Methods have
the names of Kafka and RocketMQ in snake case, and their order of parameters; `_many` marks the
variant that takes numpy arrays. Ids such as {law}`SEG-7` are laws.

Each class has a page of its own. Whether a name is offered by `segproof`, `segproof.kafka` or
`segproof.rocketmq`, or only by the module that defines it, stands in its full name.
"""


class Group(NamedTuple):
    """Names that are used together."""

    title: str
    words: str
    names: tuple[str, ...]
    """Full names of classes, functions and modules."""


GROUPS = {
    "verify": Group(
        "Verify",
        "Findings about files, streamed.",
        (
            "segproof.verification.verify",
            "segproof.verification.partition_places",
            "segproof.verifying.log_directories.PartitionPlace",
            "segproof.verifying.log_directories.BrokerPlace",
            "segproof.verifying.rocketmq.stores_twice.StorePlace",
            "segproof.reading.store_paths.PlaceKind",
            "segproof.reading.node_ids.Broker",
            "segproof.verification.VERIFIED_LAWS",
            "segproof.findings",
        ),
    ),
    "look-up": Group(
        "Look up",
        "Offsets, timestamps and keys, step by step, without writing or mapping a file.",
        ("segproof.lookup", "segproof.store_lookup"),
    ),
    "tables": Group(
        "Read as tables",
        "Batches of Arrow for pandas, polars and DuckDB. The columns: [tables](../tables.md).",
        ("segproof.tables.scan.scan",),
    ),
    "salvage": Group(
        "Salvage",
        "What is sound in damaged logs, in a new directory.",
        (
            "segproof.repair.salvage",
            "segproof.salvaging.salvage.SalvagedPartition",
            "segproof.salvaging.salvage.Gap",
            "segproof.salvaging.cut_records.cut_batches",
            "segproof.salvaging.cut_records.CutBatch",
            "segproof.salvaging.cut_records.Evidence",
            "segproof.repair.salvage_store",
            "segproof.salvaging.store_salvage.SalvagedStore",
            "segproof.salvaging.store_salvage.StoreGap",
            "segproof.reading.log_names.Misnamed",
            "segproof.salvaging.offsets_beyond.OffsetBeyond",
            "segproof.salvaging.consume_queue_copy.LostNumbers",
        ),
    ),
    "rebuild": Group(
        "Rebuild",
        "Index files, made from their logs.",
        (
            "segproof.repair.rebuild",
            "segproof.rebuilding.partition_rebuild.Rebuilt",
            "segproof.rebuilding.partition_rebuild.RebuiltFile",
            "segproof.repair.rebuild_all",
            "segproof.rebuilding.directory_rebuild.RebuiltPartition",
            "segproof.rebuilding.partition_rebuild.Options",
            "segproof.repair.rebuild_index",
            "segproof.rebuilding.store_rebuild.RebuiltIndex",
            "segproof.rebuilding.store_rebuild.RebuiltIndexFile",
        ),
    ),
    "kafka-indexes": Group(
        "Kafka: index files",
        "The three index files of a segment, and their entries.",
        (
            "segproof.kafka.OffsetIndex",
            "segproof.kafka.OffsetPosition",
            "segproof.kafka.TimeIndex",
            "segproof.kafka.TimestampOffset",
            "segproof.kafka.TransactionIndex",
            "segproof.kafka.AbortedTxn",
            "segproof.kafka.TxnIndexSearchResult",
            "segproof.kafka.transaction_index.read_aborted_txns",
            "segproof.kafka.LazyIndex",
            "segproof.kafka.index_entries.IndexEntry",
        ),
    ),
    "kafka-records": Group(
        "Kafka: batches and records",
        "Batches of records as bytes and as objects, and the file that holds them.",
        (
            "segproof.kafka.read_batch",
            "segproof.kafka.write_batch",
            "segproof.kafka.write_empty_batch",
            "segproof.kafka.write_end_transaction_marker",
            "segproof.kafka.control_record_type",
            "segproof.kafka.record.end_transaction_marker",
            "segproof.kafka.RecordBatch",
            "segproof.kafka.record_batch.Source",
            "segproof.compression.Inflation",
            "segproof.kafka.Record",
            "segproof.kafka.RecordHeader",
            "segproof.kafka.record.RecordColumns",
            "segproof.kafka.record.EndTransactionMarker",
            "segproof.kafka.record_file",
            "segproof.kafka.batch_table",
            "segproof.kafka.batch_table.ReadableFile",
        ),
    ),
    "kafka-segments": Group(
        "Kafka: segments",
        "A log file with its indexes.",
        (
            "segproof.kafka.LogSegment",
            "segproof.kafka.FetchDataInfo",
            "segproof.kafka.RollParams",
            "segproof.kafka.LogConfig",
            "segproof.kafka.LogOffsetMetadata",
            "segproof.kafka.WriteFormat",
        ),
    ),
    "kafka-logs": Group(
        "Kafka: logs",
        "The segments of a partition, and the partitions of a broker.",
        (
            "segproof.kafka.PartitionLog",
            "segproof.kafka.LogAppendInfo",
            "segproof.kafka.LogSegments",
            "segproof.kafka.LogManager",
            "segproof.kafka.TopicPartition",
        ),
    ),
    "kafka-producers": Group(
        "Kafka: producers",
        "What a log knows of producers and their transactions, and the snapshots of it.",
        (
            "segproof.kafka.producer_state",
            "segproof.kafka.ProducerAppendInfo",
            "segproof.kafka.TxnMetadata",
            "segproof.kafka.CompletedTxn",
            "segproof.kafka.producer_snapshot",
        ),
    ),
    "kafka-text-files": Group(
        "Kafka: text files",
        "Checkpoints, leader epochs and `partition.metadata`.",
        (
            "segproof.kafka.checkpoint_file",
            "segproof.kafka.LeaderEpochFileCache",
            "segproof.kafka.PartitionMetadataFile",
            "segproof.kafka.PartitionMetadata",
            "segproof.kafka.partition_metadata_file.read_partition_metadata",
        ),
    ),
    "rocketmq-index": Group(
        "RocketMQ: the index",
        "Index files, their service, and the checkpoint. Keys are texts; calls for many keys take"
        " numpy's bytes and Arrow's strings too.",
        (
            "segproof.rocketmq.IndexFile",
            "segproof.rocketmq.IndexEntry",
            "segproof.rocketmq.IndexHeader",
            "segproof.rocketmq.ReferenceResource",
            "segproof.rocketmq.IndexService",
            "segproof.rocketmq.QueryOffsetResult",
            "segproof.rocketmq.StoreCheckpoint",
            "segproof.rocketmq.store_checkpoint.StoredCheckpoint",
            "segproof.rocketmq.build_key",
            "segproof.rocketmq.hash_code",
            "segproof.rocketmq.index_key_hash",
            "segproof.rocketmq.index_key_hash_many",
        ),
    ),
    "rocketmq-store": Group(
        "RocketMQ: commit log, queues, store",
        "Messages, the commit log that holds them, the queues that point into it, a whole store.",
        (
            "segproof.rocketmq.CommitLog",
            "segproof.rocketmq.commit_log.LogFile",
            "segproof.rocketmq.Message",
            "segproof.rocketmq.CheckResult",
            "segproof.rocketmq.DispatchRequest",
            "segproof.rocketmq.check_message_and_return_size",
            "segproof.rocketmq.dispatch_request_of",
            "segproof.rocketmq.encode_message",
            "segproof.rocketmq.string_to_message_properties",
            "segproof.rocketmq.ConsumeQueue",
            "segproof.rocketmq.ConsumeQueueUnit",
            "segproof.rocketmq.MessageStore",
            "segproof.rocketmq.MessageStoreConfig",
            "segproof.rocketmq.QueryMessageResult",
        ),
    ),
    "errors-and-files": Group(
        "Errors and files",
        "The errors that segproof raises, and the module that does all input and output.",
        ("segproof.errors", "segproof.files"),
    ),
    "harness": Group(
        "Harness",
        "The kit that compares. How to use it: [check your own"
        " implementation](../../howto/check-your-own-implementation.md).",
        (
            "segproof_harness.histories.machines.StructureMachine",
            "segproof_harness.histories.machines.OffsetIndexMachine",
            "segproof_harness.histories.machines.TimeIndexMachine",
            "segproof_harness.histories.machines.machine_for",
            "segproof_harness.structures.structure",
            "segproof_harness.structures.steps",
            "segproof_harness.structures.kinds",
            "segproof_harness.subjects",
            "segproof_harness.subjects.base",
            "segproof_harness.subjects.model.ModelSubject",
            "segproof_harness.structures.operations",
            "segproof_harness.structures.outcomes",
            "segproof_harness.histories.traces",
            "segproof_harness.structures.choices",
            "segproof_harness.histories.workloads",
            "segproof_harness.histories.compare",
            "segproof_harness.histories.release_differences",
            "segproof_harness.histories.replay",
            "segproof_harness.releases.pinned",
            "segproof_harness.releases.child_messages.Absent",
        ),
    ),
    "model": Group(
        "Model",
        "What the harness compares with, as far as the pages above name it. To add a structure or a"
        " law, [read the model](../../explanation/reading-the-model.md).",
        (
            "segproof_model.language.outcomes.Step",
            "segproof_model.language.outcomes.Raised",
            "segproof_model.language.outcomes.ErrorKind",
            "segproof_model.language.states.Released",
            "segproof_model.laws.register.Transition",
            "segproof_model.language.behaviours.Behaviour",
            "segproof_model.language.behaviours.Release",
            "segproof_model.language.behaviours.differences",
            "segproof_model.releases.release_named",
        ),
    ),
}
MEMBERS = {
    "segproof.kafka.producer_state": "ProducerStateManager",
    "segproof.kafka.checkpoint_file": (
        "OffsetCheckpointFile, LeaderEpochCheckpointFile, CheckpointFile, EntryFormatter, "
        "EpochEntry, TopicPartitionOffset, read_checkpoint, write_checkpoint"
    ),
    "segproof_harness.structures.structure": (
        "Structure, Parameter, OperationKind, operation, structure_named"
    ),
    "segproof_harness.subjects.base": "Subject",
    "segproof_harness.structures.operations": "Operation",
    "segproof_harness.structures.outcomes": "Outcome",
    "segproof_harness.structures.choices": "Choose, RandomChoose, HypothesisChoose",
    "segproof_harness.histories.compare": (
        "Comparison, Divergence, Parting, Counters, OperationCounters"
    ),
    "segproof_harness.histories.release_differences": "Expected, behaviours_of",
    "segproof_harness.releases.pinned": "Release, release_named",
    "segproof.kafka.PartitionMetadata": "to_bytes",
    "segproof_harness.histories.machines.StructureMachine": (
        "structure_id, subject_name, profile_name, reached"
    ),
    "segproof_harness.histories.machines.OffsetIndexMachine": None,
    "segproof_harness.histories.machines.TimeIndexMachine": None,
    "segproof_harness.subjects.model.ModelSubject": None,
    "segproof_model.language.states.Released": None,
    "segproof_model.language.behaviours.Behaviour": "sentence",
    "segproof_model.language.behaviours.Release": "has, flipped",
}
"""Of these not all members are shown; None: no member."""
OPTIONS = {
    "segproof.errors": ("show-inheritance",),
    "segproof_harness.histories.machines.StructureMachine": ("no-inherited-members",),
    "segproof_model.language.outcomes.ErrorKind": ("undoc-members",),
    # Their bases have no page.
    "segproof.kafka.OffsetIndex": ("inherited-members",),
    "segproof.kafka.TimeIndex": ("inherited-members",),
    "segproof.kafka.PartitionLog": ("inherited-members",),
    "segproof.kafka.LogSegment": ("inherited-members",),
}
"""Further options of the directive."""


def thing_named(name: str) -> Any:
    """Return a module, or what a module has under its name."""
    module, _, last = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), last)
    except AttributeError:
        return importlib.import_module(name)


def directive_of(name: str) -> str:
    """Return the directive of Sphinx that shows a name."""
    thing, members = thing_named(name), MEMBERS.get(name, "")
    if inspect.isfunction(thing):
        return f".. autofunction:: {name}"
    if not (inspect.isclass(thing) or inspect.ismodule(thing)):
        return f".. autodata:: {name}\n   :no-value:"
    lines = [f".. auto{'class' if inspect.isclass(thing) else 'module'}:: {name}"]
    lines.append("   :no-members:" if members is None else f"   :members: {members}".rstrip())
    lines += [f"   :{option}:" for option in OPTIONS.get(name, ())]
    # What a tuple counts and finds is no field.
    own = [one for one in ("count", "index") if getattr(thing, one, 0) is getattr(tuple, one)]
    lines += [f"   :exclude-members: {', '.join(own)}"] if own else []
    return "\n".join(lines)


def sentence_of(name: str) -> str:
    """Return the first sentence of a name's docstring; a constant has none of its own."""
    thing = thing_named(name)
    is_constant = not (
        inspect.isclass(thing) or inspect.isroutine(thing) or inspect.ismodule(thing)
    )
    text = "" if is_constant else (inspect.getdoc(thing) or "").partition("\n\n")[0]
    sentence = " ".join(text.split()).partition(". ")[0].rstrip(".:")
    return sentence.replace("|", "\\|") + "." if sentence else ""


def name_page(name: str) -> str:
    """Return the page of one name; the title of a module is its full name."""
    title = name if inspect.ismodule(thing_named(name)) else name.rpartition(".")[2]
    return f"# `{title}`\n\n```{{eval-rst}}\n{directive_of(name)}\n```\n"


def group_page(group: Group) -> str:
    """Return the page of a group: its names with a sentence each."""
    rows = "".join(f"| [`{name}`]({name}.md) | {sentence_of(name)} |\n" for name in group.names)
    tree = "".join(f"{name}\n" for name in group.names)
    return (
        f"# {group.title}\n\n{group.words}\n\n| name | what it is |\n| --- | --- |\n{rows}\n"
        f"```{{toctree}}\n:hidden:\n\n{tree}```\n"
    )


def overview_page() -> str:
    """Return the page that lists the groups."""
    rows = "".join(
        f"| [{group.title}](api/{slug}.md) | {group.words.replace('](../', '](')} |\n"
        for slug, group in GROUPS.items()
    )
    tree = "".join(f"api/{slug}\n" for slug in GROUPS)
    return (
        f"{OPENING}\n| group | what is in it |\n| --- | --- |\n{rows}\n"
        f"```{{toctree}}\n:hidden:\n\n{tree}```\n"
    )


def pages() -> dict[str, str]:
    """Return the pages by path."""
    made = {"reference/api.md": overview_page()}
    for slug, group in GROUPS.items():
        made[f"reference/api/{slug}.md"] = group_page(group)
        for name in group.names:
            made[f"reference/api/{name}.md"] = name_page(name)
    return made
