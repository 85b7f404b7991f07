# SPDX-License-Identifier: Apache-2.0
"""Why no condition sees a change of a kernel: nothing changes, or no claim speaks of it."""

VARINT = "which fault a varint has, and null or empty: its value is claimed of decode_varint alone"
FIRST = "that the first one is found, or that NONE means that nothing matches"
MORE = "when more bytes are asked for"
TEXT = "the hash of characters beyond ASCII, and which bytes are refused"

GAPS: dict[str, str] = {
    "slot_search:_halve": "which of equal keys is found, while rising keys differ",
    "records:walk_batches": MORE,
    "records:next_header": VARINT,
    "records:next_record": VARINT + "; nor that the headers fill the record",
    "records:walk_records": "which sound records are refused",
    "records:plain_record": "which records are left to next_record",
    "records:read_batches": "which sound batches are refused, and that the records fill a batch",
    "records:summarise_records": "that the largest delta is the largest one",
    "records:summarise_batches": "which batches are skipped that need not be",
    "rocketmq_index:hash_of_utf8": TEXT,
    "rocketmq_index:hashes_of_rows": "where a row ends, and that its hash is that of its text",
    "rocketmq_index:hashes_of_joined": "where a text ends, and that its hash is its own",
    "rocketmq_index:walk_chain": "which damage is told",
    "rocketmq_index:visit_entries": "which entries match: the contract `walks_side_by_side` has it",
    "rocketmq_index:follow_chains": "which damage is told, and when NO_ROOM is",
    "rocketmq_records:find_properties": "which names have which column: the contracts have it",
    "rocketmq_records:read_message": "which sound messages are refused",
    "rocketmq_records:extend_hash": TEXT,
    "rocketmq_records:key_hash": TEXT,
    "rocketmq_records:hash_keys": "which hash a key has, and how a text is cut into keys",
    "segment_search:find_batch": MORE + ", or the slow way is",
    "segment_search:find_batches": FIRST + ": the claim of find_batch has it",
    "segment_search:find_in_batch": FIRST,
    "segment_search:find_time": FIRST
    + " in a batch that was looked into, nor when a batch is left to the slow way",
    "segment_search:find_times": FIRST,
}
"""What shows in drawn calls, and no claim says. A kernel that is not listed fails the sweep."""
BEHIND = "a position behind a byte is never 0"
WARM = "where the warm entries begin: an answer found on either side is the same"
EQUAL = "both ways give the same for equal numbers"

UNSEEN: dict[str, str] = {
    "slot_search:lower_slot": WARM,
    "slot_search:upper_slot": WARM,
    "slot_search:lower_slots_of_random": EQUAL
    + "; a key that equals its target is in the half that is kept",
    "slot_search:lower_slots_of_rising": "from how many targets on the quick way is taken",
    "index_rules:whole_entries": EQUAL,
    "legacy_records:walk_legacy_messages": BEHIND,
    "log_rules:stable_bound": EQUAL,
    "records:add_int64": "a sum with 0 never leaves 64 bits",
    "records:increment_sequence": "of negative sequences the claim says little",
    "records:next_header": BEHIND,
    "records:read_headers": BEHIND,
    "records:next_record": BEHIND + "; null or empty is a gap",
    "records:walk_records": BEHIND,
    "records:plain_record": "a record that is left to next_record is read there",
    "records:read_batches": BEHIND,
    "records:summarise_records": BEHIND,
    "rocketmq_index:hash_of_utf8": TEXT,
    "rocketmq_index:hashes_of_rows": TEXT,
    "rocketmq_index:time_difference": EQUAL,
    "rocketmq_index:previous_index": EQUAL,
    "rocketmq_index:walk_chain": "0 has ended the walk before; that no match is left out is a gap",
    "rocketmq_index:visit_entries": "a gap is which entries match",
    "rocketmq_records:find_properties": "an empty part is no property",
    "rocketmq_records:read_message": "what it accepts is refused a line later; which messages are"
    " refused is a gap",
    "rocketmq_records:walk_messages": "a message has 91 bytes or more",
    "rocketmq_records:extend_hash": TEXT,
    "rocketmq_records:hash_keys": "a gap is which hash a key of an empty topic has",
    "segment_rules:read_size": EQUAL,
    "segment_search:find_batch": "an equal offset has been found before; only the first batch"
    " begins at 0; when more bytes are asked for, or the slow way is, is a gap",
    "segment_search:find_in_batch": BEHIND + "; that the first one is found is a gap",
    "segment_search:find_time": "a size below 49 is refused a few lines later too",
}
"""Why a change shows in none of the drawn calls, by kernel."""
