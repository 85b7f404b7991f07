# SPDX-License-Identifier: Apache-2.0
"""The third part of the register: contracts of RocketMQ's index files, and of what feeds them."""

from functools import partial
from typing import Any

Contract: Any = partial(globals()["Contract"], system="rocketmq")
"""Set by the registry before this file runs, and so is the next."""
Mutant: Any = globals()["Mutant"]

INDEX = "segproof.kernels.rocketmq_index"
RECORDS = "segproof.kernels.rocketmq_records"
FILE = "segproof.rocketmq.index_file"
SERVICE = "segproof.rocketmq.index_service"
CHECKPOINT = "segproof.rocketmq.store_checkpoint"
RESOURCE = "segproof.rocketmq.reference_resource"

CONTRACTS = (
    Contract(
        "key_hash.hash_of_few_units",
        f"{INDEX}:hash_of_units",
        ("RMQHASH-1",),
        "any 0 to 5 UTF-16 units",
        (
            Mutant("hashed * 31 + unit", "hashed * 33 + unit"),
            Mutant("4294967295", "2147483647"),
        ),
    ),
    Contract(
        "key_hash.unit_by_unit",
        f"{INDEX}:add_unit",
        ("RMQHASH-1",),
        "every hash of 32 bits, every UTF-16 unit: so texts of any length",
        (Mutant("* 31 +", "* 31 -"), Mutant("4294967295", "2147483647")),
    ),
    Contract(
        "key_hash.absolute_value",
        f"{INDEX}:absolute_hash",
        ("RMQHASH-2",),
        "every hash of 32 bits",
        (
            Mutant("hashed < 2147483648", "hashed <= 2147483648"),
            Mutant("        return 0\n", "        return 2147483647\n"),
            Mutant("4294967296 - hashed", "4294967295 - hashed"),
        ),
    ),
    Contract(
        "key_hash.slot_of_hash",
        f"{INDEX}:slot_position",
        ("RMQHASH-3", "RMQIDX-1", "RMQIDX-5"),
        "every hash of 31 bits; 1, 2, 3, 5000000 and 536870891 slots",
        (Mutant("hash_slot_num * 4", "hash_slot_num * 8"), Mutant("40 +", "44 +")),
    ),
    Contract(
        "key_hash.characters_are_read",
        f"{INDEX}:utf8_character",
        ("RMQHASH-1",),
        "every code point, from UTF-8 and from Python's texts with their lone surrogates",
        (
            Mutant("first < 194", "first <= 194"),
            Mutant("code > 1114111", "code >= 1114111"),
            Mutant("55296 <= code", "55296 < code"),
            Mutant("byte >= 192", "byte >= 191"),
        ),
    ),
    Contract(
        "key_hash.nothing_else_is_read",
        f"{INDEX}:utf8_character",
        ("RMQHASH-1",),
        "any 4 raw bytes, ending after 1 to 4 of them",
        (
            Mutant("code < least or ", ""),
            Mutant("position + size > end", "position + size > end + 1"),
            Mutant("code < 57344", "code < 57343"),
        ),
    ),
    Contract(
        "key_hash.hash_of_ascii",
        f"{INDEX}:hash_of_utf8",
        ("RMQHASH-1", "RMQHASH-2"),
        "any 0 to 6 ASCII letters",
        (
            Mutant("two * 961", "two * 31"),
            Mutant("three * 31 + four", "three * 31"),
            Mutant("position + 4 <= end", "position + 3 <= end"),
        ),
    ),
    Contract(
        "key_hash.hash_of_characters",
        f"{INDEX}:hash_of_utf8",
        ("RMQHASH-1", "RMQHASH-2"),
        "any code point but ASCII, behind 0 to 4 letters and before one",
        (
            Mutant("code >= 65536", "code > 65536"),
            Mutant("code % 1024", "code % 512"),
            Mutant("    code = 56320 + code", "    code = 56321 + code"),
        ),
    ),
    Contract(
        "key_hash.hash_of_composed_key",
        f"{RECORDS}:key_hash",
        ("RMQHASH-1", "RMQHASH-2", "RMQHASH-5"),
        "a topic of three letters, a key of any code point but ASCII, and a letter",
        (
            Mutant("code >= 65536", "code > 65536", "extend_hash"),
            Mutant("absolute_hash(hashed)", "hashed"),
        ),
    ),
    Contract(
        "index_file.entry_decode",
        "segproof.rocketmq.index_table:ENTRY",
        ("RMQIDX-3",),
        "any 20 raw bytes",
        (Mutant('Struct(">iqii")', 'Struct(">qiii")', "*"),),
    ),
    Contract(
        "index_file.entry_encode",
        f"{INDEX}:write_int64",
        ("RMQIDX-3",),
        "every hash, difference and previous index of 31 bits, every int64 offset",
        (
            Mutant("value >> 40", "value >> 41"),
            Mutant("(value >> 8) & 255", "(value >> 8) & 127", "write_int32"),
        ),
    ),
    Contract(
        "index_file.header_decode",
        "segproof.rocketmq.index_header:IndexHeader.load",
        ("RMQIDX-2", "RMQIDX-7"),
        "any 40 raw bytes",
        (
            Mutant("index_count <= 0", "index_count < 0"),
            Mutant('struct.Struct(">qqqqii")', 'struct.Struct(">qqqiqi")', "*"),
            Mutant("values[0], values[1]", "values[1], values[0]", "IndexHeader.keep"),
        ),
    ),
    Contract(
        "index_file.geometry_is_sound",
        "segproof.rocketmq.index_opening:is_sound_geometry",
        ("RMQIDX-1", "RMQIDX-9"),
        "every two integers",
        (
            Mutant("<= INT32_MAX", "<= INT32_MAX + 1"),
            Mutant("index_num < 2", "index_num < 1"),
            Mutant("hash_slot_num < 1", "hash_slot_num < 0"),
        ),
    ),
    Contract(
        "index_file.seconds_of_entry",
        f"{INDEX}:time_difference",
        ("RMQIDX-21", "RMQIDX-26", "RMQIDX-27"),
        "every two int64 timestamps",
        (
            Mutant("begin_timestamp <= 0", "begin_timestamp < 0"),
            Mutant("- 9223372036854775807 - 1:", "- 9223372036854775807:"),
            Mutant("begin_timestamp) + 1)", "begin_timestamp))"),
            Mutant("seconds > 2147483647", "seconds > 2147483648"),
        ),
    ),
    Contract(
        "index_file.time_of_entry",
        f"{INDEX}:read_time",
        ("RMQIDX-33",),
        "every int64 begin timestamp, every difference of 31 bits",
        (
            Mutant("time_diff * 1000", "time_diff * 1024"),
            Mutant(
                "add_int64(begin_timestamp, time_diff * 1000)", "begin_timestamp + time_diff * 1000"
            ),
        ),
    ),
    Contract(
        "index_file.accepted_slot_value",
        f"{INDEX}:previous_index",
        ("RMQIDX-20", "RMQIDX-29", "RMQIDX-30"),
        "any ints",
        (
            Mutant("slot_value < index_count", "slot_value <= index_count"),
            Mutant("0 < slot_value", "0 <= slot_value + 1"),
        ),
    ),
    Contract(
        "index_file.fullness",
        f"{FILE}:IndexFile.is_write_full",
        ("RMQIDX-13",),
        "any ints",
        (Mutant(">=", ">"),),
    ),
    Contract(
        "index_file.time_match",
        f"{FILE}:IndexFile.is_time_matched",
        ("RMQIDX-16",),
        "any ints",
        (
            Mutant("begin < first", "begin <= first"),
            Mutant("first <= begin", "first < begin"),
            Mutant("end <= last", "end < last"),
        ),
    ),
    Contract(
        "index_file.walk_of_damaged_chains",
        f"{INDEX}:walk_chain",
        ("RMQIDX-32", "RMQIDX-34", "RMQIDX-35", "RMQIDX-36", "RMQIDX-40"),
        "3 entries of one slot, any slot, any previous indexes, any seconds of the second entry, "
        "index counts 1, 4 and 5",
        (
            Mutant(
                "0 < current < above:\n            return",
                "0 < current <= above:\n            return",
            ),
            Mutant("0 < current < above:\n        return", "0 < current <= above:\n        return"),
            Mutant("time_diff < 0", "time_diff <= 0"),
        ),
    ),
    Contract(
        "index_file.walk_in_time",
        f"{INDEX}:walk_chain",
        ("RMQIDX-33", "RMQIDX-36"),
        "2 entries in one chain, any hashes, any seconds, any times",
        (
            Mutant("== key_hash and ", ">= key_hash and "),
            Mutant("begin <= time_read <= end", "begin <= time_read"),
            Mutant("begin <= time_read <= end", "begin < time_read <= end"),
            Mutant("if time_read < begin:", "if time_read <= begin:"),
        ),
    ),
    Contract(
        "index_file.walk_until_enough",
        f"{INDEX}:walk_chain",
        ("RMQIDX-31", "RMQIDX-40"),
        "2 entries of one slot, any slot, hashes and previous indexes, 0 to 2 offsets wanted",
        (
            Mutant("if current != 0 and not 0 < current < above", "if False"),
            Mutant("count + 2 < len(walk)", "count + 1 < len(walk)"),
        ),
    ),
    Contract(
        "index_file.walk_in_pieces",
        f"{INDEX}:walk_chain",
        ("RMQIDX-31",),
        "2 entries of one slot, any slot, hashes and previous indexes, one offset at a time",
        (
            Mutant("walk[1] = above", "walk[1] = current"),
            Mutant("walk[0] = current", "walk[0] = above"),
        ),
    ),
    Contract(
        "index_file.walks_side_by_side",
        f"{INDEX}:walk_chains",
        ("RMQIDX-31", "RMQIDX-33", "RMQIDX-35", "RMQIDX-36", "RMQIDX-40"),
        "2 slots, 2 entries, any slots and previous indexes, 1 or 2 offsets wanted",
        (
            Mutant("0 <= cursors[lane] < limit", "0 <= cursors[lane] <= limit"),
            Mutant("leads_on *= 1 if matched", "leads_on *= 1 if 2 * matched", "visit_entries"),
            Mutant("previous < 0 or ", "", "visit_entries"),
        ),
    ),
    Contract(
        "index_file.put_by_kernel",
        f"{INDEX}:put_entries",
        ("RMQIDX-19", "RMQIDX-20", "RMQIDX-21", "RMQIDX-22", "RMQIDX-23", "RMQIDX-24", "RMQIDX-25"),
        "the first and the second entry of a file, any slot value, any hash of 31 bits, any int64 "
        "offset and timestamps, any slot count",
        (
            Mutant("index_count <= 1", "index_count <= 2"),
            Mutant("previous == 0", "previous >= 0"),
            Mutant("header[4] < 2147483647", "header[4] <= 2147483647"),
            Mutant("write_int64(data, 8,", "write_int64(data, 0,"),
            Mutant(
                "write_int32(data, slot_at, index_count)", "write_int32(data, slot_at, previous)"
            ),
        ),
    ),
    Contract(
        "index_file.put_by_class",
        f"{FILE}:IndexFile._put",
        ("RMQIDX-19", "RMQIDX-20", "RMQIDX-21", "RMQIDX-22", "RMQIDX-23", "RMQIDX-24", "RMQIDX-25"),
        "the first and the second entry of a file, any slot value, any hash of 31 bits, any int64 "
        "offset and timestamps, any slot count",
        (
            Mutant("index_count <= 1", "index_count <= 2"),
            Mutant("previous == 0", "previous != 0"),
            Mutant("time_diff, previous)", "time_diff, 0)"),
        ),
    ),
    Contract(
        "index_file.puts_until_full",
        f"{INDEX}:put_entries",
        ("RMQIDX-17", "RMQIDX-18", "RMQIDX-24", "RMQIDX-30"),
        "2 slots, room for 2 entries, index counts from 1 to 4, two hashes of either slot",
        (
            Mutant("header[5] < index_num", "header[5] < index_num - 1"),
            Mutant("len(hashes), number + index_num - header[5]", "len(hashes)"),
            Mutant("if previous == 0", "if previous <= 1"),
        ),
    ),
    Contract(
        "index_service.entries_at_end",
        f"{SERVICE}:IndexService._entries_at_end",
        ("RMQSVC-12",),
        "2 files with any 4 offsets between them, any offset, counting up to 0 to 5",
        (
            Mutant("count == limit", "count > limit"),
            Mutant("range(len(file), 0, -1)", "range(len(file), 1, -1)"),
            Mutant("reversed(self._list)", "self._list[1:]"),
        ),
    ),
    Contract(
        "index_service.offset_rule",
        f"{SERVICE}:IndexService.build_index",
        ("RMQSVC-12",),
        "any end of a file with 0 to 3 entries of it, any offset, a message with two keys",
        (
            Mutant("commit_log_offset < file", "commit_log_offset <= file"),
            Mutant("commit_log_offset == file", "commit_log_offset > file"),
        ),
    ),
    Contract(
        "index_service.rolled_back",
        f"{SERVICE}:IndexService.build_index",
        ("RMQSVC-13",),
        "every flag of 6 bits",
        (
            Mutant(
                "request.sys_flag & TRANSACTION_BITS == TRANSACTION_BITS",
                "request.sys_flag & TRANSACTION_BITS == 8",
            ),
        ),
    ),
    Contract(
        "store_checkpoint.fields_decode",
        f"{CHECKPOINT}:_FIELDS",
        ("RMQCKPT-1",),
        "any 48 raw bytes",
        (Mutant('">6q"', '"<6q"', "*"),),
    ),
    Contract(
        "store_checkpoint.safe_times",
        f"{CHECKPOINT}:StoreCheckpoint.min_timestamp",
        ("RMQCKPT-4",),
        "any three int64 times",
        (
            Mutant("max(0, ", "max(-1, "),
            Mutant("- SAFETY_MS", "+ SAFETY_MS"),
            Mutant(
                "min(self.min_timestamp, ",
                "max(self.min_timestamp, ",
                "StoreCheckpoint.min_timestamp_index",
            ),
        ),
    ),
    Contract(
        "reference_resource.hold_and_release",
        f"{RESOURCE}:ReferenceResource.hold",
        ("RMQREF-1",),
        "any count, available or not, cleaned up or not",
        (
            Mutant("self.ref_count <= 0", "self.ref_count < 0"),
            Mutant("self.ref_count <= 0", "self.ref_count < 0", "ReferenceResource._release"),
            Mutant("not self.is_available and ", "", "ReferenceResource._release"),
        ),
    ),
    Contract(
        "reference_resource.shutdowns",
        f"{RESOURCE}:ReferenceResource.shutdown",
        ("RMQREF-2", "RMQREF-3"),
        "any count, available or not, any times and any interval",
        (
            Mutant("self._waited_ms() >= interval", "self._waited_ms() > interval"),
            Mutant("-1000 - self.ref_count", "-1000"),
        ),
    ),
    Contract(
        "message.keys_of_spaces",
        f"{RECORDS}:hash_keys",
        ("RMQSVC-14", "RMQSVC-15"),
        "any 4 ASCII bytes of keys",
        (
            Mutant("buffer[end] != 32", "buffer[end] > 32"),
            Mutant("start = end + 1", "start = end + 2"),
            Mutant("if end > start", "if end >= start"),
        ),
    ),
    Contract(
        "message.rolled_back_records",
        f"{RECORDS}:hash_keys",
        ("RMQSVC-13",),
        "every flag of 32 bits",
        (Mutant("% 4 == 3", "% 4 >= 2"),),
    ),
)
