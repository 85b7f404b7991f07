# SPDX-License-Identifier: Apache-2.0
"""Laws: the sentences of the contract, each with a predicate.

Importing this package enters every law into `registry.LAWS`.
"""

from segproof_model.laws import (
    abstract_index,
    checkpoint_file,
    disk,
    disk_log,
    files,
    index_chains,
    index_file,
    key_hash,
    lazy_index,
    leader_epoch_cache,
    log_loader,
    log_segment,
    log_segments,
    offset_index,
    partition_log,
    partition_metadata_file,
    producer_state,
    record_batch,
    record_file,
    reference_resource,
    segment_files,
    segment_recovery,
    time_index,
    transaction_index,
)

__all__ = [
    "abstract_index",
    "checkpoint_file",
    "disk",
    "disk_log",
    "files",
    "index_chains",
    "index_file",
    "key_hash",
    "lazy_index",
    "leader_epoch_cache",
    "log_loader",
    "log_segment",
    "log_segments",
    "offset_index",
    "partition_log",
    "partition_metadata_file",
    "producer_state",
    "record_batch",
    "record_file",
    "reference_resource",
    "segment_files",
    "segment_recovery",
    "time_index",
    "transaction_index",
]
