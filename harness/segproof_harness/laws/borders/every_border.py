# SPDX-License-Identifier: Apache-2.0
"""All borders of the laws that `verify` reports, and the laws that have none, with the reason."""

from collections.abc import Mapping

from segproof_harness.laws.borders import (
    index_file,
    log_directories,
    log_segment,
    node_files,
    offset_index,
    partition_log,
    producers,
    record_batch,
    record_file,
    small_files,
    store,
    store_parts,
    time_index,
    transaction_index,
)
from segproof_harness.laws.borders.border import Border

TABLES: Mapping[str, tuple[Border, ...]] = {
    "offset_index": offset_index.BORDERS,
    "time_index": time_index.BORDERS,
    "transaction_index": transaction_index.BORDERS,
    "record_file": record_file.BORDERS,
    "record_batch": record_batch.BORDERS,
    "log_directories": log_directories.BORDERS,
    "log_segment": log_segment.BORDERS,
    "producers": producers.BORDERS,
    "partition_log": partition_log.BORDERS,
    "small_files": small_files.BORDERS,
    "node_files": node_files.BORDERS,
    "index_file": index_file.BORDERS,
    "store": store.BORDERS,
    "store_parts": store_parts.BORDERS,
}
"""The tables, by the name of their module."""
WITHOUT: Mapping[str, str] = {
    "DISK-2": "it takes a file that changes while it is read: tests/unit/verification/test_live.py",
}
"""Laws without a border, and why."""
