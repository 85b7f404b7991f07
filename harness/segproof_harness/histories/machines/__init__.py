# SPDX-License-Identifier: Apache-2.0
"""Hypothesis machines, public: to run as they are, and to subclass for one's own implementation.

    TestOffsetIndex = OffsetIndexMachine.TestCase

runs the implementation of segproof on files in memory. For a class of your own:

    class MyMachine(OffsetIndexMachine):
        subject_name = "my_package.my_module:MyIndex"

    TestMyIndex = MyMachine.TestCase
"""

from segproof_harness.histories.machines.base import StructureMachine, run_until_reached
from segproof_harness.structures.structure import STRUCTURE_IDS

__all__ = [
    "CommitLogMachine",
    "ConsumeQueueMachine",
    "IndexFileMachine",
    "IndexServiceMachine",
    "LogSegmentMachine",
    "MessageStoreMachine",
    "OffsetIndexMachine",
    "PartitionLogMachine",
    "RecordBatchMachine",
    "RecordFileMachine",
    "StoreCheckpointMachine",
    "StructureMachine",
    "TimeIndexMachine",
    "TransactionIndexMachine",
    "machine_for",
    "run_until_reached",
]


class OffsetIndexMachine(StructureMachine):
    """Histories of an offset index."""

    structure_id = "offset-index"


class TimeIndexMachine(StructureMachine):
    """Histories of a time index."""

    structure_id = "time-index"


class TransactionIndexMachine(StructureMachine):
    """Histories of a transaction index."""

    structure_id = "transaction-index"


class RecordBatchMachine(StructureMachine):
    """A batch that is damaged, mended, and read in every way."""

    structure_id = "record-batch"


class RecordFileMachine(StructureMachine):
    """Histories of a record file."""

    structure_id = "record-file"


class LogSegmentMachine(StructureMachine):
    """Histories of a segment: a log with its three indexes."""

    structure_id = "log-segment"


class PartitionLogMachine(StructureMachine):
    """Histories of a partition's log."""

    structure_id = "partition-log"


class IndexFileMachine(StructureMachine):
    """Histories of one index file of RocketMQ."""

    structure_id = "index-file"


class IndexServiceMachine(StructureMachine):
    """Histories of the index service of a RocketMQ store: its files, and what is asked of all."""

    structure_id = "index-service"


class StoreCheckpointMachine(StructureMachine):
    """Histories of the checkpoint of a RocketMQ store."""

    structure_id = "store-checkpoint"


class CommitLogMachine(StructureMachine):
    """Places of a RocketMQ commit log that is damaged between two openings."""

    structure_id = "commit-log"


class ConsumeQueueMachine(StructureMachine):
    """Histories of a RocketMQ consume queue, and lookups by time in it."""

    structure_id = "consume-queue"


class MessageStoreMachine(StructureMachine):
    """Lives of a RocketMQ store that was stopped somehow: what each finds, and recovers."""

    structure_id = "message-store"


def machine_for(structure_id: str, subject_name: str = "impl") -> type[StructureMachine]:
    """Return a new machine for a structure and a subject. Raises ValueError for an unknown id."""
    if structure_id not in STRUCTURE_IDS:
        raise ValueError(f"no structure {structure_id!r}; known: {', '.join(STRUCTURE_IDS)}")
    name = "".join(part.capitalize() for part in structure_id.split("-")) + "Machine"
    body = {"structure_id": structure_id, "subject_name": subject_name, "__module__": __name__}
    return type(name, (StructureMachine,), body)
