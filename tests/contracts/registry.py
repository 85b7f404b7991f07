# SPDX-License-Identifier: Apache-2.0
"""The register of contracts: which kernel, which laws, which bound, which mutants must be caught.

A contract is a function below `kafka/` or `rocketmq/`, whose docstring says in the lines `pre:`
what is assumed of its arguments and in `post:` that it returns true. CrossHair runs it on symbolic
arguments. Its id is the file's name and its own. Where kernel and model disagree on one input, it
is false.

The bound in words is written here; the exact one are the lines `pre:`. Everything that is not
bounded there is any value of its type: `bytes` raw, `int` without limit.
"""

import ast
import importlib.util
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
SLOTS = "segproof.kernels.slot_search"
RULES = "segproof.kernels.index_rules"
RECORDS = "segproof.kernels.records"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A defect to plant: in the source of `function`, replace `old`, which stands there once."""

    old: str
    new: str
    function: str = ""
    """The function or method that is changed; empty: the kernel itself; `*`: its whole module."""


@dataclass(frozen=True, slots=True)
class Contract:
    """A statement about a kernel, confirmed for every input within its bound."""

    id: str
    """File and function: `offset_index.append_rule`."""
    kernel: str
    """Module and name of what is confirmed."""
    laws: tuple[str, ...]
    """The laws of which it confirms a part."""
    bound: str
    """The inputs, in words."""
    mutants: tuple[Mutant, ...]
    """Each must give a counterexample within the bound."""
    system: str = "kafka"
    """The folder of the file."""

    @property
    def path(self) -> Path:
        """The file of the contract."""
        return FOLDER / self.system / f"{self.id.partition('.')[0]}_contracts.py"

    @property
    def function(self) -> str:
        """The name of the function in that file."""
        return self.id.partition(".")[2]

    @property
    def docstring(self) -> str:
        """The docstring of the function."""
        return docstrings(self.path)[self.function]

    @property
    def statement(self) -> str:
        """What is confirmed, in one sentence."""
        return self.docstring.splitlines()[0]

    @property
    def preconditions(self) -> tuple[str, ...]:
        """What is assumed of the arguments, as expressions."""
        lines = [line.strip() for line in self.docstring.splitlines()]
        return tuple(line.removeprefix("pre: ") for line in lines if line.startswith("pre: "))


def docstrings(path: Path) -> dict[str, str]:
    """Return the docstring of each contract of a file by the function's name."""
    return {
        node.name: docstring
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
        if "post: " in (docstring := ast.get_docstring(node) or "")
    }


def contract_named(name: str) -> Contract:
    """Return the contract with this id."""
    (contract,) = (one for one in CONTRACTS if one.id == name)
    return contract


def further_contracts(name: str) -> tuple[Contract, ...]:
    """Return the contracts of another file of this folder, which is on nobody's path."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    vars(module).update(Contract=Contract, Mutant=Mutant)
    spec.loader.exec_module(module)
    found: tuple[Contract, ...] = module.CONTRACTS
    return found


CONTRACTS = (
    Contract(
        "abstract_index.lower_slot_by_definition",
        f"{SLOTS}:lower_slot",
        ("ABSIDX-22", "ABSIDX-25", "OFFIDX-11"),
        "any 6 raw entries of 8 bytes with strictly increasing int32 keys, any target, warm "
        "window 3",
        (
            Mutant("return -2 - middle", "return -1 - middle", "_halve"),
            Mutant("high = middle - 1", "high = middle - 2", "_halve"),
            Mutant("0) > target", "0) >= target"),
        ),
    ),
    Contract(
        "abstract_index.upper_slot_by_definition",
        f"{SLOTS}:upper_slot",
        ("ABSIDX-24", "ABSIDX-25", "OFFIDX-15", "OFFIDX-16"),
        "any 6 raw entries of 8 bytes with strictly increasing int32 values, any target, "
        "warm window 3",
        (
            Mutant("0) >= target", "0) > target"),
            Mutant("return found + 1", "return found"),
        ),
    ),
    Contract(
        "abstract_index.lower_slot_of_any_window",
        f"{SLOTS}:lower_slot",
        ("ABSIDX-22", "ABSIDX-23"),
        "any 4 raw entries of 8 bytes with strictly increasing int32 keys, any target, warm "
        "windows 0 to 4 (4: the plain search)",
        (Mutant("target, 0, first)", "target, 1, first)"),),
    ),
    Contract(
        "abstract_index.lower_slot_by_probing",
        f"{SLOTS}:lower_slot",
        ("ABSIDX-25", "ABSIDX-26"),
        "any 5 raw entries of 8 bytes, int32 keys in any order, any target, warm window 3",
        (
            Mutant("first) < target", "first) <= target"),
            Mutant("high = middle - 1", "high = middle - 2", "_halve"),
        ),
    ),
    Contract(
        "abstract_index.upper_slot_by_probing",
        f"{SLOTS}:upper_slot",
        ("ABSIDX-25", "ABSIDX-26"),
        "any 5 raw entries of 8 bytes, int32 values in any order, any target, warm window 3",
        (
            Mutant("first) < target", "first) <= target"),
            Mutant("found == entries - 1", "found == entries"),
        ),
    ),
    Contract(
        "abstract_index.slots_of_few_entries",
        f"{SLOTS}:lower_slot",
        ("ABSIDX-25", "ABSIDX-26"),
        "any 3 raw slots of 8 bytes, the first 0 to 2 of them entries, any target, both "
        "searches, warm window 2",
        (Mutant("0) > target", "0) >= target"),),
    ),
    Contract(
        "abstract_index.lower_slot_of_timestamps",
        f"{SLOTS}:lower_slot",
        ("ABSIDX-26", "TIMEIDX-10"),
        "any 4 raw entries of 12 bytes, int64 keys in any order, any target, warm window 2",
        (Mutant("first) < target", "first) <= target"),),
    ),
    Contract(
        "abstract_index.lower_slots_of_rising_targets",
        f"{SLOTS}:lower_slots_of_rising",
        ("ABSIDX-22", "OFFIDX-11", "TIMEIDX-10"),
        "any 3 strictly increasing keys, 6 targets made of any three that do not fall",
        (
            Mutant("keys[at_c + 1] <= targets", "keys[at_c + 1] < targets"),
            Mutant("slot + 1 < entries", "slot + 2 < entries", "_merge"),
        ),
    ),
    Contract(
        "abstract_index.lower_slots_side_by_side",
        f"{SLOTS}:lower_slots_of_random",
        ("ABSIDX-22", "OFFIDX-11", "TIMEIDX-10"),
        "any 5 strictly increasing keys, any 2 targets in one group",
        (Mutant("length - half", "half"),),
    ),
    Contract(
        "abstract_index.int32_decode",
        f"{SLOTS}:int32_at",
        ("OFFIDX-1", "TIMEIDX-1"),
        "any 4 raw bytes at positions 0 to 2",
        (Mutant(">= 2147483648", "> 2147483648"),),
    ),
    Contract(
        "abstract_index.int64_decode",
        f"{SLOTS}:int64_at",
        ("TIMEIDX-1",),
        "any 8 raw bytes at positions 0 and 1",
        (Mutant("data[position + 6] * 256", "data[position + 6] * 255"),),
    ),
    Contract(
        "abstract_index.whole_entries_rounding",
        f"{RULES}:whole_entries",
        ("ABSIDX-1", "ABSIDX-7", "ABSIDX-8"),
        "every integer; entries of 8, 12 and 34 bytes",
        (Mutant("-(-size // entry_size * entry_size)", "size // entry_size * entry_size"),),
    ),
    Contract(
        "abstract_index.distance_wraps",
        f"{RULES}:offset_distance",
        ("ABSIDX-21",),
        "every two int64",
        (Mutant("distance > 9223372036854775807", "distance >= 9223372036854775807"),),
    ),
    Contract(
        "offset_index.entry_decode",
        "segproof.kafka.offset_index:_ENTRY",
        ("OFFIDX-1",),
        "any 8 raw bytes, any base offset",
        (Mutant('">ii"', '"<ii"', "*"),),
    ),
    Contract(
        "offset_index.entry_encode",
        "segproof.kafka.offset_index:_ENTRY",
        ("OFFIDX-1", "OFFIDX-9"),
        "every distance of 31 bits, every int32 position",
        (Mutant('">ii"', '"<ii"', "*"),),
    ),
    Contract(
        "offset_index.fullness",
        f"{RULES}:is_full",
        ("OFFIDX-10",),
        "every count of entries that the file has room for",
        (Mutant(">=", ">"),),
    ),
    Contract(
        "offset_index.append_rule",
        f"{RULES}:offset_append",
        ("OFFIDX-2", "OFFIDX-4", "OFFIDX-5", "OFFIDX-6", "OFFIDX-8"),
        "2 slots, 0 to 2 entries, every int64 offset, last offset and base offset",
        (
            Mutant("offset <= last", "offset < last"),
            Mutant("<= 2147483647", "<= 2147483648"),
        ),
    ),
    Contract(
        "offset_index.truncate_to_cases",
        f"{RULES}:kept_entries",
        ("OFFIDX-17",),
        "any 3 raw entries, keys in any order, any offset",
        (Mutant("return slot + 1", "return slot"),),
    ),
    Contract(
        "time_index.entry_decode",
        "segproof.kafka.time_index:_ENTRY",
        ("TIMEIDX-1",),
        "any 12 raw bytes, any base offset",
        (Mutant('">qi"', '"<qi"', "*"),),
    ),
    Contract(
        "time_index.entry_encode",
        "segproof.kafka.time_index:_ENTRY",
        ("TIMEIDX-1",),
        "every int64 timestamp, every distance of 31 bits",
        (Mutant('">qi"', '"<qi"', "*"),),
    ),
    Contract(
        "time_index.fullness",
        f"{RULES}:is_full",
        ("TIMEIDX-2",),
        "every count of entries that the file has room for",
        (Mutant(" - reserved", ""),),
    ),
    Contract(
        "time_index.append_rule",
        f"{RULES}:time_append",
        (
            "TIMEIDX-3",
            "TIMEIDX-4",
            "TIMEIDX-5",
            "TIMEIDX-6",
            "TIMEIDX-8",
            "TIMEIDX-15",
            "TIMEIDX-16",
        ),
        "2 slots, with and without 8 spare bytes, 0 to 2 entries, every int64 timestamp and "
        "offset, both values of the skip flag",
        (
            Mutant("timestamp <= last_timestamp", "timestamp < last_timestamp"),
            Mutant("room < 8", "room < 12"),
            Mutant("offset < last_offset", "offset <= last_offset"),
        ),
    ),
    Contract(
        "time_index.truncate_to_cases",
        f"{RULES}:kept_entries",
        ("TIMEIDX-11", "TIMEIDX-12"),
        "any 3 raw entries, offsets in any order, any offset",
        (Mutant("slot < 0", "slot <= 0"),),
    ),
    Contract(
        "transaction_index.entry_decode",
        "segproof.kafka.transaction_index:_ENTRY",
        ("TXNIDX-1",),
        "any 34 raw bytes",
        (Mutant('">hqqqq"', '"<hqqqq"', "*"),),
    ),
    Contract(
        "transaction_index.entry_encode",
        "segproof.kafka.transaction_index:_ENTRY",
        ("TXNIDX-1",),
        "every int16 version, every four int64",
        (Mutant('">hqqqq"', '"<hqqqq"', "*"),),
    ),
    Contract(
        "transaction_index.range_overlap",
        "segproof.kafka.transaction_index:aborted_txns_in_range",
        ("TXNIDX-10", "TXNIDX-11"),
        "any 2 entries of any offsets, any range",
        (
            Mutant("first_offset < upper", "first_offset <= upper"),
            Mutant("stable_offset >= upper", "stable_offset > upper"),
        ),
    ),
    Contract(
        "record_batch.varint_decode",
        f"{RECORDS}:decode_varint",
        ("BATCH-7",),
        "any 6 raw bytes, ending after 0 to 6 of them",
        (
            Mutant("raw %= 4294967296", "pass"),
            Mutant("range(5)", "range(6)"),
        ),
    ),
    Contract(
        "record_batch.varlong_decode",
        f"{RECORDS}:decode_varlong",
        ("BATCH-7",),
        "any 11 raw bytes, ending after 0 to 11 of them",
        (Mutant("if index < 8:", "if index < 7:"),),
    ),
    Contract(
        "record_batch.varint_encode",
        "segproof.kafka.record:encode_varint",
        ("BATCH-6", "BATCH-7"),
        "every int32",
        (Mutant("-2 * wrapped - 1", "-2 * wrapped", "_encode"),),
    ),
    Contract(
        "record_batch.varint_round_trip",
        f"{RECORDS}:decode_varint",
        ("BATCH-6", "BATCH-7"),
        "every int32",
        (Mutant("-(raw // 2) - 1", "-(raw // 2)"),),
    ),
    Contract(
        "record_batch.integer_decode",
        f"{RECORDS}:decode_int16",
        ("BATCH-1",),
        "any 9 raw bytes, int16, int32 and int64 at position 1",
        (
            Mutant(">= 32768", "> 32768"),
            Mutant("buffer[position + 2] * 256", "buffer[position + 2] * 255", "decode_int32"),
        ),
    ),
    Contract(
        "record_batch.sum_wraps",
        f"{RECORDS}:add_int64",
        ("BATCH-4",),
        "every two int64",
        (Mutant("> 9223372036854775807", ">= 9223372036854775807"),),
    ),
    Contract(
        "record_batch.attribute_bits",
        f"{RECORDS}:attribute_bit",
        ("BATCH-8", "BATCH-19"),
        "any 2 raw bytes of attributes, bits 3 to 6",
        (Mutant("attributes //= 2", "attributes //= 4"),),
    ),
    Contract(
        "record_batch.compression_codes",
        f"{RECORDS}:compression_code",
        ("BATCH-18",),
        "any 61 raw bytes of magic 2",
        (Mutant("% 8", "% 4"),),
    ),
    Contract(
        "record_batch.sequence_increment",
        f"{RECORDS}:increment_sequence",
        ("BATCH-5",),
        "every sequence of 31 bits, every int32 increment",
        (Mutant("sequence) - 1", "sequence)"),),
    ),
    Contract(
        "record_batch.sequence_decrement",
        f"{RECORDS}:decrement_sequence",
        ("BATCH-5",),
        "every sequence and decrement of 31 bits, and back",
        (Mutant("+ 1", "+ 0"),),
    ),
    Contract(
        "record_batch.header_decode_framing",
        f"{RECORDS}:decode_batch_header",
        ("BATCH-1", "BATCH-4"),
        "any raw bytes 0 to 15 of a header of magic 2, the others zero",
        (
            Mutant(
                "fields[10] = decode_int32(buffer, position + 12)",
                "fields[10] = decode_int32(buffer, position + 8)",
            ),
        ),
    ),
    Contract(
        "record_batch.header_decode_checksum",
        f"{RECORDS}:decode_batch_header",
        ("BATCH-1",),
        "any raw bytes 17 to 22 of a header of magic 2, the others zero",
        (
            Mutant(
                "checksum = decode_int32(buffer, position + 17)",
                "checksum = decode_int32(buffer, position + 12)",
            ),
        ),
    ),
    Contract(
        "record_batch.header_decode_timestamps",
        f"{RECORDS}:decode_batch_header",
        ("BATCH-4",),
        "any raw bytes 23 to 42 of a header of magic 2, the others zero",
        (
            Mutant(
                "fields[6] = decode_int64(buffer, position + 35)",
                "fields[6] = decode_int64(buffer, position + 27)",
            ),
        ),
    ),
    Contract(
        "record_batch.header_decode_producer",
        f"{RECORDS}:decode_batch_header",
        ("BATCH-1",),
        "any raw bytes 43 to 60 of a header of magic 2, the others zero",
        (
            Mutant(
                "fields[9] = decode_int32(buffer, position + 53)",
                "fields[9] = decode_int32(buffer, position + 57)",
            ),
        ),
    ),
    Contract(
        "record_batch.legacy_header_decode",
        f"{RECORDS}:decode_batch_header",
        ("BATCH-1", "BATCH-12"),
        "any 26 raw bytes of magic 0 or 1",
        (Mutant("magic == 1:", "magic == 0:"),),
    ),
    Contract(
        "record_batch.record_length",
        f"{RECORDS}:next_record",
        ("BATCH-16", "BATCH-18"),
        "any 6 raw bytes: every length that cannot be a record's",
        (Mutant("length > end - body", "length > end - body + 6"),),
    ),
    Contract(
        "record_batch.record_walk",
        f"{RECORDS}:next_record",
        ("BATCH-6", "BATCH-16"),
        "a record of 6 bytes behind its length, any raw bytes",
        (
            Mutant(
                "limit, timestamp_delta, offset_delta, key",
                "limit, offset_delta, timestamp_delta, key",
            ),
        ),
    ),
    Contract(
        "record_batch.short_varint_decode",
        f"{RECORDS}:short_varint",
        ("BATCH-7",),
        "any 5 raw bytes",
        (Mutant("position + 2", "position + 1"),),
    ),
    Contract(
        "record_batch.plain_record_walk",
        f"{RECORDS}:plain_record",
        ("BATCH-6", "BATCH-16"),
        "a record of 8 bytes behind its length, any raw bytes",
        (
            Mutant("limit, timestamp_delta, offset_delta", "limit, offset_delta, timestamp_delta"),
            Mutant("at + 1 != limit", "at + 1 > limit"),
        ),
    ),
    Contract(
        "record_file.scan_of_old_messages",
        f"{RECORDS}:walk_batches",
        ("SCAN-1", "SCAN-2", "SCAN-5", "SCAN-6"),
        "a file of 56 bytes with two messages, any two raw size fields, any magic of the second",
        (
            Mutant("size < 14", "size < 13"),
            Mutant("position >= end - 17", "position >= end - 16"),
        ),
    ),
    *further_contracts("registry_of_logs"),
    *further_contracts("registry_of_rocketmq"),
)
