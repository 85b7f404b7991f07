# SPDX-License-Identifier: Apache-2.0
"""What the releases of Kafka before 0.11 do otherwise than all later ones.

They know messages of magic 0 and 1 only.

Used by: log_flags, and through it the records and segments of Kafka.
"""

from dataclasses import dataclass

from segproof_model.declaring import flag
from segproof_model.early_log_flags import EarlyLogFlags

__all__ = ["EarlyFlags"]


@dataclass(frozen=True, slots=True)
class EarlyFlags(EarlyLogFlags):
    """The flags of a way of reading and writing that ended with record batches."""

    scanner_reads_magic: bool = flag(
        True,
        "a scanner asks for the 17 bytes up to the magic; otherwise for the 12 up to the size",
        "SCAN-1",
        "SCAN-3",
        "SCAN-9",
    )
    header_is_read_alone: bool = flag(
        True,
        "the fields of a batch in a file are read from its header; otherwise from the whole batch,"
        " for which there must be memory",
        "SCAN-10",
    )
    time_search_is_streamed: bool = flag(
        True,
        "a search by time reads of a compressed batch no more than up to the record that it finds,"
        " so that damage behind it goes unseen; otherwise all of the batch first",
        "SCAN-18",
        "SEG-39",
    )
    time_search_has_start: bool = flag(
        True,
        "a search by time begins at an offset; otherwise any offset will do, and a batch that has"
        " not the time that it promises raises the illegal-state error",
        "SCAN-18",
        "SEG-39",
    )
    wrapper_is_checked: bool = flag(
        True,
        "a wrapper without a value or messages, or with an offset below its last message's, is an"
        " invalid record; otherwise it trips the reader, is empty, or gives its messages' offsets",
        "BATCH-9",
        "BATCH-10",
        "BATCH-11",
    )
    magic_2_is_written: bool = flag(
        True, "batches of magic 2 are written, not only messages of magic 0 and 1", "BATCH-1"
    )
    timestamp_type_is_needed: bool = flag(
        True,
        "a message of magic 1 is not written without a type of its timestamp; otherwise it says"
        " that its log gave it",
        "BATCH-6",
    )
    dating_needs_files: bool = flag(
        True,
        "setting when a segment was modified raises the file-not-found error for a file that is"
        " gone",
        "SEG-40",
    )
