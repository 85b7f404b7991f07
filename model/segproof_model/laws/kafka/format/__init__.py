# SPDX-License-Identifier: Apache-2.0
"""The laws of the files of a log. Importing this package enters them into the register."""

from segproof_model.laws.kafka.format import (
    abstract_index,
    batch_bytes,
    index_slots,
    lazy_index,
    log_segment,
    offset_index,
    record_batch,
    record_file,
    segment_files,
    segment_names,
    segment_reading,
    segment_recovery,
    time_index,
    transaction_index,
)

__all__ = [
    "abstract_index",
    "batch_bytes",
    "index_slots",
    "lazy_index",
    "log_segment",
    "offset_index",
    "record_batch",
    "record_file",
    "segment_files",
    "segment_names",
    "segment_reading",
    "segment_recovery",
    "time_index",
    "transaction_index",
]
