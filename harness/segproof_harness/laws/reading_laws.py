# SPDX-License-Identifier: Apache-2.0
"""Laws about reading, as files break them: the model says them by what it refuses to read.

Each takes by name what a directory offers, as the laws of files do.
"""

from collections.abc import Callable, Mapping

from segproof_model.kafka.broker.checkpoint_file import EpochEntry, LeaderEpochCheckpointFile
from segproof_model.kafka.broker.partition_metadata_file import PartitionMetadataFile
from segproof_model.kafka.broker.producer_snapshot import read_snapshot
from segproof_model.kafka.format.compression import Codecs
from segproof_model.kafka.format.record import ControlRecordTypes, end_transaction_marker
from segproof_model.kafka.format.record_batch import RecordBatch
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.arithmetic import is_rising
from segproof_model.laws.kafka.broker.producers_on_disk import snapshot_is_as_the_log_says
from segproof_model.laws.kafka.format.batch_bytes import records_of
from segproof_model.laws.kafka.format.log_bytes import valid_batches
from segproof_model.laws.kafka.format.record_batch import checksum_is_right
from segproof_model.laws.kafka.format.segment_on_disk import log_ends_with_a_batch


def records_are_right(log: bytes, codecs: Codecs) -> bool:
    """Return whether all records of the valid batches can be read, and lie where they should."""
    return all(map(_has_right_records, valid_batches(log, codecs)))


def _has_right_records(batch: RecordBatch) -> bool:
    records = records_of(batch)
    if isinstance(records, Raised) or (batch.record_count == 0 and batch.size_bytes != 61):
        return False
    offsets = [record.offset for record in records]
    return not batch.is_legacy or (is_rising(offsets) and offsets[-1] == batch.last_offset)


def controls_are_right(log: bytes, codecs: Codecs) -> bool:
    """Return whether the valid control batches say what a control batch says."""
    return all(_is_right_control(one) for one in valid_batches(log, codecs) if one.is_control)


def _is_right_control(batch: RecordBatch) -> bool:
    record = outcome_of(lambda: next(batch.records(), None))
    if record is None:
        return True  # compaction took it
    if isinstance(record, Raised):
        return False
    kind = outcome_of(ControlRecordTypes().of_key, record.key)
    if kind not in ("ABORT", "COMMIT"):
        return not isinstance(kind, Raised)
    is_marker = not isinstance(outcome_of(end_transaction_marker, record), Raised)
    return is_marker and batch.record_count == 1


def snapshot_is_read(snapshot: bytes) -> bool:
    """Return whether a snapshot of the producers can be read."""
    return not isinstance(outcome_of(read_snapshot, snapshot), Raised)


def metadata_is_read(metadata: bytes) -> bool:
    """Return whether `partition.metadata` can be read."""
    file = PartitionMetadataFile(Files({"partition.metadata": metadata}), "partition.metadata")
    return not isinstance(outcome_of(file.read), Raised)


def epochs_in(checkpoint: bytes) -> list[EpochEntry] | Raised:
    """Return the entries of a leader epoch checkpoint, or the error."""
    file = LeaderEpochCheckpointFile(Files({"checkpoint": checkpoint}), "checkpoint")
    return outcome_of(file.read)


def checkpoint_is_whole(checkpoint: bytes) -> bool:
    """Return whether the lines of a leader epoch checkpoint are as many as it says, and whole."""
    return epochs_in(checkpoint) != Raised(ErrorKind.IO_ERROR)


def checkpoint_has_numbers(checkpoint: bytes) -> bool:
    """Return whether the fields of a leader epoch checkpoint are numbers."""
    return epochs_in(checkpoint) != Raised(ErrorKind.NUMBER_FORMAT)


def epochs_rise(checkpoint: bytes) -> bool:
    """Return whether the entries of a leader epoch checkpoint, if readable, rise from 0 on."""
    entries = epochs_in(checkpoint)
    return isinstance(entries, Raised) or (
        is_rising([-1, *(entry.epoch for entry in entries)])
        and is_rising([-1, *(entry.start_offset for entry in entries)])
    )


READING_LAWS: Mapping[str, Callable[..., bool]] = {
    **dict.fromkeys(("SCAN-2", "SCAN-10"), log_ends_with_a_batch),
    **dict.fromkeys(
        ("BATCH-9", "BATCH-10", "BATCH-11", "BATCH-15", "BATCH-16", "BATCH-18"),
        records_are_right,
    ),
    "BATCH-14": checksum_is_right,
    "BATCH-19": controls_are_right,
    "PROD-3": snapshot_is_read,
    "PROD-14": snapshot_is_as_the_log_says,
    "META-2": metadata_is_read,
    "CKPT-3": checkpoint_is_whole,
    "CKPT-4": checkpoint_has_numbers,
    "EPOCH-1": epochs_rise,
}
"""How a file breaks a law about reading."""
