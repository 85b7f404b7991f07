# SPDX-License-Identifier: Apache-2.0
"""The laws in words that `verify` checks and the model has no predicate for.

They speak of several files at once, of names, or of the disk; `DISK-n` are segproof's own. A law
that the model states is left out here: its predicate says it.

Used by: the verb `explain`, the generated page of findings.
"""

SENTENCES = {
    "DISK-1": "Every file of a segment can be read.",
    "DISK-2": "A file does not vanish or become shorter while it is read.",
    "DISK-3": "Nothing lies among the segments that Kafka did not put there.",
    "DISK-4": "An index file lies beside its log.",
    "DISK-5": "A closed segment has an offset index and a time index.",
    "DISK-6": "A closed segment's files end with their last entry or batch, not in preallocated "
    "zeros; a segment that is still written, or was not closed, may have a tail of zeros.",
    "DISK-7": "No file of a segment has more than 2147483647 bytes.",
    "DISK-8": "Positions in an offset index increase with the offsets.",
    "DISK-9": "Every time-index entry carries the largest timestamp of the log up to its offset, "
    "which is that of a record or batch.",
    "DISK-10": "The last time-index entry of a closed segment carries the largest timestamp of the "
    "segment.",
    "DISK-11": "Every transaction-index entry agrees with the log: its last offset is an ABORT "
    "marker of its producer, and its first offset is where that transaction began.",
    "DISK-12": "Every transaction that the log aborts has an entry in the transaction index.",
    "DISK-13": "The offsets of batches rise: a batch begins behind the last offset of the one "
    "before.",
    "DISK-14": "A batch has at least as many offsets as records.",
    "DISK-15": "Only attribute bits are set that a release uses.",
    "DISK-16": "The offsets of a batch's records rise and do not go beyond its last offset.",
    "DISK-17": "The largest timestamp of a batch is that of one of its records.",
    "DISK-18": "The records of a batch can be decompressed, within a limit of memory.",
    "DISK-19": "Offsets follow each other without gaps, unless records were compacted away.",
    "DISK-20": "The path that is verified holds something of Kafka's.",
    "DISK-21": "A transaction-index entry describes a possible transaction: 0 <= first offset <= "
    "last offset, and a last stable offset of 0 to last offset + 1.",
    "DUMP-6": "Behind the last complete batch a log has no bytes.",
    "LOAD-1": "A loaded directory holds no .deleted, .cleaned or .swap file.",
    "LOG-4": "Segments do not overlap: every batch ends below the base offset of the next segment.",
    "SEG-2": "Every batch of a segment lies within 2^31 - 1 offsets of the segment's base offset.",
    "SEG-7": "Every offset-index entry points at the start of a batch, carries the last offset "
    "(up to 1.1 the first) of a batch at or behind it, and no batch before it reaches so far.",
}
"""The sentence of each law."""
