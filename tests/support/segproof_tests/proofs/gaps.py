# SPDX-License-Identifier: Apache-2.0
"""Why a change of a kernel may be seen in its results and by no condition: what no claim says."""

VARINT = "which fault a varint has, and null or empty: its value is claimed of decode_varint alone"
FIRST = "that the first one is found, or that NONE means that nothing matches"
TEXT = "the hash of characters beyond ASCII, and which bytes are refused"

GAPS: dict[str, str] = {
    "index_rules:time_append": "which error is told first where 8 bytes are left",
    "records:next_header": VARINT,
    "records:next_record": VARINT + "; nor that the headers fill the record",
    "records:walk_records": "which sound records are refused",
    "records:plain_record": "which records are left to next_record, and where their fields are",
    "records:summarise_records": "that the largest delta is the largest one",
    "records:summarise_batches": "which batches are skipped that need not be",
    "rocketmq_index:hash_of_utf8": TEXT,
    "rocketmq_index:hashes_of_rows": "where a row ends, and that its hash is that of its text",
    "rocketmq_index:hashes_of_joined": "where a text ends, and that its hash is its own",
    "rocketmq_index:walk_chain": "which damage is told",
    "rocketmq_index:visit_entries": "which entries match: the contract `walks_side_by_side` has it",
    "rocketmq_index:follow_chains": "which damage is told",
    "rocketmq_records:find_properties": "which names have which column: the contracts have it",
    "rocketmq_records:read_message": "which sound messages are refused",
    "rocketmq_records:walk_messages": "which messages are refused",
    "rocketmq_records:extend_hash": TEXT,
    "rocketmq_records:hash_keys": "which hash a key has, and how a text is cut into keys",
    "segment_search:find_batch": "when more bytes are asked for, or the slow way is",
    "segment_search:find_batches": FIRST + ": the claim of find_batch has it",
    "segment_search:find_in_batch": FIRST,
    "segment_search:find_time": FIRST
    + " in a batch that was looked into, nor when a batch is left to the slow way",
    "segment_search:find_times": FIRST,
}
"""The reason by kernel. A gap of a kernel that is not listed here fails the sweep."""
