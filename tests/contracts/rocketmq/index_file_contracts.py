# SPDX-License-Identifier: Apache-2.0
"""Contracts of one index file: its entries, its header, what a put writes, what a walk finds.

The files have one slot or two, and a few entries. Classes that read and write by `struct` are run
as they are; only their layouts are replaced, by ones of the same format that CrossHair can follow,
and the bytes of a file are a list of numbers.

Mirrors: model/segproof_model/rocketmq/format/{index_file,index_header}.py,
    impl/segproof/kernels/rocketmq_index.py, impl/segproof/rocketmq/{index_file,index_header}.py.
"""

import struct
from types import FunctionType
from typing import Any

from segproof.errors import CorruptIndexError
from segproof.kernels import rocketmq_index as kernels
from segproof.rocketmq import index_file as implementation
from segproof.rocketmq import index_header, index_opening, index_table
from segproof_model.language.integers import int32_at, int64_at
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import SEGPROOF
from segproof_model.rocketmq.format import index_file as model
from segproof_model.rocketmq.format import index_header as model_header
from segproof_model.rocketmq.format.index_header import IndexHeader
from segproof_tests.contract_cells import Cells, Layout, array_of
from segproof_tests.contracts import Mutant, contract

INDEX = "segproof.kernels.rocketmq_index"
FILE = "segproof.rocketmq.index_file"

ENTRY = index_table.ENTRY.format
"""The layout by which the index reads and writes an entry."""
CORRUPT = Raised(ErrorKind.CORRUPT_INDEX)
FRESH = IndexHeader()

_put_entries: Any = kernels.put_entries.interpreted
_walk_chain: Any = kernels.walk_chain.interpreted
_walk_chains: Any = kernels.walk_chains.interpreted
_write_int32: Any = kernels.write_int32.interpreted
_write_int64: Any = kernels.write_int64.interpreted
_time_difference = kernels.time_difference.interpreted
_read_time = kernels.read_time.interpreted
_previous_index = kernels.previous_index.interpreted


class _File(SEGPROOF.kind(model.IndexFile)):  # type: ignore[misc]  # as it is made
    """The model's file over bytes or cells; a key is its hash, so that any hash may be put."""

    def __init__(self, data: Any, slots: int, entries: int, header: IndexHeader = FRESH) -> None:
        self.held, self.header, self.is_mapped = data, header, True
        self.hash_slot_num, self.index_num = slots, entries
        self.file_size = model.index_file_size(slots, entries)

    @property
    def image(self) -> Any:
        """The bytes, or the numbers."""
        return self.held

    def hash_with_slot(self, key: Any) -> Any:
        """Return the key."""
        return key

    def put(self, position: int, data: Any) -> None:
        """Write a number into the cells."""
        size, value = data
        self.check_inside(position, size)
        self.held[position] = value


def _int32_at(data: bytes | Cells, position: int) -> int:
    return data[position] if isinstance(data, dict) else int32_at(data, position)


def _int64_at(data: bytes | Cells, position: int) -> int:
    return data[position] if isinstance(data, dict) else int64_at(data, position)


def _bare(begin_timestamp: int = 0, index_count: int = 1) -> model.IndexFile:
    return _File(b"", 1, 4, IndexHeader(begin_timestamp, index_count=index_count))


def _implemented(header: IndexHeader, index_num: int = 4) -> Any:
    """Return a file of the implementation with this header in memory, over no bytes."""
    file: Any = implementation.IndexFile.__new__(implementation.IndexFile)
    file._header = index_header.IndexHeader([0] * 40)  # type: ignore[arg-type]
    file._header.keep(tuple(header))
    file.index_num = index_num
    file._written_below = 0
    return file


@contract(
    "segproof.rocketmq.index_table:ENTRY",
    "RMQIDX-3",
    "any 20 raw bytes",
    Mutant("INDEX_ENTRY.struct()", '__import__("struct").Struct(">qiii")', "*"),
)
def entry_decode(data: bytes) -> bool:
    """Read an entry.

    pre: len(data) == 20
    post: _
    """
    entry = _File(bytes(64) + data, 1, 3).entry(1)
    return entry is not None and tuple(entry[2:]) == struct.unpack(ENTRY, data)


@contract(
    "segproof.rocketmq.index_header:IndexHeader.load",
    "RMQIDX-2 RMQIDX-7",
    "any 40 raw bytes",
    Mutant("index_count <= 0", "index_count < 0"),
    Mutant("INDEX_HEADER.struct()", 'struct.Struct(">qqqiqi")', "*"),
    Mutant("values[0], values[1]", "values[1], values[0]", "IndexHeader.keep"),
)
def header_decode(data: bytes) -> bool:
    """Read a header, field by field, as loading does; a count below 1 is 1 in memory.

    pre: len(data) == 40
    post: _
    """
    header = index_header.IndexHeader(list(data))  # type: ignore[arg-type]
    header.load()
    file = _File(data, 1, 4)
    file.load()
    return header.values() == tuple(file.header)


@contract(
    "segproof.rocketmq.index_opening:is_sound_geometry",
    "RMQIDX-1 RMQIDX-9",
    "every two integers",
    Mutant("<= INT32_MAX", "<= INT32_MAX + 1"),
    Mutant("index_num < 2", "index_num < 1"),
    Mutant("hash_slot_num < 1", "hash_slot_num < 0"),
)
def geometry_is_sound(hash_slot_num: int, index_num: int) -> bool:
    """A file is opened exactly with slots and entries whose size 31 bits hold; then sizes agree.

    post: _
    """
    is_sound = index_opening.is_sound_geometry(hash_slot_num, index_num)
    # A file of one byte has another size than any that is sound.
    outcome = outcome_of(_File(b"x", hash_slot_num, index_num).map_file)
    if outcome != (CORRUPT if is_sound else Raised(ErrorKind.INVALID_ARGUMENT)):
        return False
    size = index_opening.index_file_size(hash_slot_num, index_num)
    return not is_sound or size == model.index_file_size(hash_slot_num, index_num)


@contract(
    f"{INDEX}:time_difference",
    "RMQIDX-21 RMQIDX-26 RMQIDX-27",
    "every two int64 timestamps",
    Mutant("begin_timestamp <= 0", "begin_timestamp < 0"),
    Mutant("- 9223372036854775807 - 1:", "- 9223372036854775807:"),
    Mutant("begin_timestamp) + 1)", "begin_timestamp))"),
    Mutant("seconds > 2147483647", "seconds > 2147483648"),
)
def seconds_of_entry(begin_timestamp: int, store_timestamp: int) -> bool:
    """The difference that is kept is in whole seconds, within 0 and 2147483647, around 2^63 too.

    pre: -(2**63) <= begin_timestamp < 2**63
    pre: -(2**63) <= store_timestamp < 2**63
    post: _
    """
    kept = _time_difference(store_timestamp, begin_timestamp)
    return kept == _bare(begin_timestamp).time_diff(store_timestamp)


@contract(
    f"{INDEX}:read_time",
    "RMQIDX-33",
    "every int64 begin timestamp, every difference of 31 bits",
    Mutant("time_diff * 1000", "time_diff * 1024"),
    Mutant("add_int64(begin_timestamp, time_diff * 1000)", "begin_timestamp + time_diff * 1000"),
)
def time_of_entry(begin_timestamp: int, time_diff: int) -> bool:
    """An entry is read as the begin timestamp plus its seconds, wrapped at 64 bits.

    pre: -(2**63) <= begin_timestamp < 2**63
    pre: 0 <= time_diff < 2**31
    post: _
    """
    entry = model.IndexEntry(0, 1, 0, 0, time_diff, 0)
    return _read_time(begin_timestamp, time_diff) == _bare(begin_timestamp).time_read(entry)


@contract(
    f"{INDEX}:previous_index",
    "RMQIDX-20 RMQIDX-29 RMQIDX-30",
    "any ints",
    Mutant("slot_value < index_count", "slot_value <= index_count"),
    Mutant("0 < slot_value", "0 <= slot_value + 1"),
)
def accepted_slot_value(slot_value: int, index_count: int) -> bool:
    """A new entry follows the slot's newest one if that is an entry, else none.

    post: _
    """
    return _previous_index(slot_value, index_count) == _bare(0, index_count).accepted(slot_value)


@contract(
    f"{FILE}:IndexFile.is_write_full",
    "RMQIDX-13",
    "any ints",
    Mutant(">=", ">"),
)
def fullness(index_count: int, index_num: int) -> bool:
    """Be full exactly when no entry has room.

    post: _
    """
    header = IndexHeader(index_count=index_count)
    expected = _File(b"", 1, index_num, header).is_write_full
    return bool(_implemented(header, index_num).is_write_full() == expected)


@contract(
    f"{FILE}:IndexFile.is_time_matched",
    "RMQIDX-16",
    "any ints",
    Mutant("begin < first", "begin <= first"),
    Mutant("first <= begin", "first < begin"),
    Mutant("end <= last", "end < last"),
)
def time_match(first: int, last: int, begin: int, end: int) -> bool:
    """Two times meet those of a header, whatever their order and the header's.

    post: _
    """
    header = IndexHeader(begin_timestamp=first, end_timestamp=last)
    expected = _File(b"", 1, 4, header).is_time_matched(begin, end)
    return bool(_implemented(header).is_time_matched(begin, end) == expected)


class _Chains(_File):
    """The model's file over cells, for walks."""

    def entry(self, index: int) -> model.IndexEntry | None:
        """Return an entry, or None outside of the file."""
        start = self.entry_position(index)
        if not self.is_inside(start, model.ENTRY_SIZE):
            return None
        return model.IndexEntry(0, index, *[self.held[start + place] for place in (0, 4, 12, 16)])


Entry = tuple[int, int, int]
"""What an entry says: its hash, its seconds, its previous index."""


def _is_stored(*numbers: int) -> bool:
    """Whether these are numbers of 32 bits."""
    return all(-(2**31) <= number < 2**31 for number in numbers)


class _Bounded(Cells):
    """The cells of a file, of which any byte can be asked for, but none outside."""

    file_size = 0

    def __missing__(self, position: int) -> int:
        if 0 <= position < self.file_size:
            return 0
        raise IndexError(f"byte {position} of {self.file_size}")


def _file(slots: tuple[int, ...], *entries: Entry) -> Cells:
    """Return the cells of a file; entry n is of the message at 100 + n."""
    cells = _Bounded({40 + 4 * number: slot for number, slot in enumerate(slots)})
    cells.file_size = 40 + 4 * len(slots) + 20 + 20 * len(entries)
    for number, (key_hash, seconds, previous) in enumerate(entries, 1):
        at = 40 + 4 * len(slots) + 20 * number
        cells.update({at: key_hash, at + 4: 100 + number, at + 12: seconds, at + 16: previous})
    return cells


def _expected(cells: Cells, slots: int, index_count: int, entries: int, *asked: int) -> object:
    """Return what the model finds in a file that begins at 1000 ms; asked are hash, number, times.

    `entries` is how many have room, entry 0 included.
    """
    found: list[int] = []
    file = _Chains(cells, slots, entries, IndexHeader(1000, index_count=index_count))
    outcome = outcome_of(file.walk, found, *asked)
    return outcome if isinstance(outcome, Raised) else tuple(found)


def _found(cells: Cells, slots: int, index_count: int, entries: int, *asked: int) -> object:
    """Return what the class finds there."""
    file = _implemented(IndexHeader(), entries)
    file.hash_slot_num, file.file_name = slots, "0"
    try:
        return tuple(file._chain((cells, index_count, 1000), *asked))
    except CorruptIndexError:
        return CORRUPT


@contract(
    f"{INDEX}:walk_chain",
    "RMQIDX-32 RMQIDX-34 RMQIDX-35 RMQIDX-36 RMQIDX-40",
    "3 entries of one slot, any slot, any previous indexes, any seconds of the second entry, "
    "index counts 4 and 5",
    Mutant(
        "0 < current < above:\n            return",
        "0 < current <= above:\n            return",
    ),
    Mutant("0 < current < above:\n        return", "0 < current <= above:\n        return"),
    Mutant("time_diff < 0", "time_diff <= 0"),
)
def walk_of_damaged_chains(
    slot: int, previous: tuple[int, int, int], seconds: int, index_count: int
) -> bool:
    """A walk ends, wherever slot and entries lead to, and finds or refuses what the model does.

    pre: _is_stored(slot, *previous, seconds)
    pre: index_count in (4, 5)
    post: _
    """
    cells = _file((slot,), (5, 0, previous[0]), (5, seconds, previous[1]), (5, 0, previous[2]))
    asked = 1, index_count, 4, 5, 3, 0, 2**62
    return _found(cells, *asked) == _expected(cells, *asked)


@contract(
    f"{INDEX}:walk_chain",
    "RMQIDX-33 RMQIDX-36",
    "2 entries in one chain, any hashes, any seconds, any times",
    Mutant("== key_hash and ", ">= key_hash and "),
    Mutant("begin <= time_read <= end", "begin <= time_read"),
    Mutant("begin <= time_read <= end", "begin < time_read <= end"),
    Mutant("if time_read < begin:", "if time_read <= begin:"),
)
def walk_in_time(hashes: tuple[int, int], seconds: tuple[int, int], begin: int, end: int) -> bool:
    """A walk finds what lies between two times, and ends behind the first that is too old.

    pre: _is_stored(*hashes, *seconds)
    post: _
    """
    cells = _file((2,), (hashes[0], seconds[0], 0), (hashes[1], seconds[1], 1))
    asked = 1, 3, 3, 5, 2, begin, end
    return _found(cells, *asked) == _expected(cells, *asked)


@contract(
    f"{INDEX}:walk_chain",
    "RMQIDX-31 RMQIDX-40",
    "2 entries of one slot, any slot, hashes and previous indexes, 0 to 2 offsets wanted",
    Mutant("if current != 0 and not 0 < current < above", "if False"),
    Mutant("count + 2 < len(walk)", "count + 1 < len(walk)"),
)
def walk_until_enough(
    slot: int, hashes: tuple[int, int], previous: tuple[int, int], max_num: int
) -> bool:
    """A walk stops when it has found as many as are wanted, and looks at where that one leads.

    pre: _is_stored(slot, *hashes, *previous)
    pre: 0 <= max_num <= 2
    post: _
    """
    cells = _file((slot,), (hashes[0], 0, previous[0]), (hashes[1], 0, previous[1]))
    for wanted in range(3):
        if max_num == wanted:
            asked = 1, 3, 3, 5, wanted, 0, 2**62
            return _found(cells, *asked) == _expected(cells, *asked)
    return False


@contract(
    f"{INDEX}:walk_chain",
    "RMQIDX-31",
    "2 entries of one slot, any slot, hashes and previous indexes, one offset at a time",
    Mutant("walk[1] = above", "walk[1] = current"),
    Mutant("walk[0] = current", "walk[0] = above"),
)
def walk_in_pieces(slot: int, hashes: tuple[int, int], previous: tuple[int, int]) -> bool:
    """A walk that goes on from where it stopped finds what one walk finds.

    pre: _is_stored(slot, *hashes, *previous)
    post: _
    """
    cells = _file((slot,), (hashes[0], 0, previous[0]), (hashes[1], 0, previous[1]))
    whole, piece = [slot, 3, 7, 7], [slot, 3, 7]
    count = _walk_chain(cells, 1, 1000, 5, 0, 2**62, whole)
    answers: list[int] = []
    for _ in range(3):
        size = _walk_chain(cells, 1, 1000, 5, 0, 2**62, piece)
        if size == kernels.CORRUPT:
            return bool(count == kernels.CORRUPT)
        answers += piece[2 : 2 + size]
    return answers == whole[2 : 2 + count] and piece[0] == 0


@contract(
    f"{INDEX}:walk_chains",
    "RMQIDX-31 RMQIDX-33 RMQIDX-35 RMQIDX-36 RMQIDX-40",
    "2 slots, 2 entries, any slots and previous indexes, 2 offsets wanted",
    Mutant("cursors[lane] < limit", "cursors[lane] <= limit", "follow_chains"),
    Mutant("leads_on *= 1 if matched", "leads_on *= 1 if 2 * matched", "visit_entries"),
    Mutant("previous < 0 or ", "", "visit_entries"),
)
def walks_side_by_side(slots: tuple[int, int], is_other: bool, previous: tuple[int, int]) -> bool:
    """Two chains walked side by side give what each gives alone, or the error of either.

    pre: _is_stored(*slots, *previous)
    post: _
    """
    cells = _file(slots, (6 if is_other else 5, 0, previous[0]), (5, 0, previous[1]))
    starts, found, max_num = [0, 9, 9], [7] * 4, 2
    scratch = [0, 0], [0, 0], [0] * 5, [0] * 5
    state = _walk_chains(
        cells, 2, 3, 1000, [6, 5], 0, 2, max_num, 0, 2**62, *scratch, starts, found
    )
    expected = [_expected(cells, 2, 3, 3, asked, max_num, 0, 2**62) for asked in (6, 5)]
    if CORRUPT in expected:
        return bool(state == kernels.CORRUPT)
    answers = tuple(tuple(found[starts[n] : starts[n + 1]]) for n in (0, 1))
    return state == 0 and answers == tuple(expected)


def _write_cell(cells: Cells, position: int, value: int) -> None:
    cells[position] = value


def _read_cell(cells: Cells, position: int) -> int:
    return cells[position]


def _use_cells(kernel: Any) -> None:
    """Let a kernel, and those that it calls, read and write cells.

    That a number is written and read as its bytes is confirmed by other contracts.
    """
    names = kernel.__globals__
    for called in kernel.__code__.co_names:
        if called in ("write_int32", "write_int64"):
            names[called] = _write_cell
        elif called in ("int32_at", "int64_at"):
            names[called] = _read_cell
        elif isinstance(names.get(called), FunctionType):
            _use_cells(names[called])


def _set(module: Any, **values: Any) -> None:
    for name, value in values.items():
        assert hasattr(module, name) or name == "memoryview"
        setattr(module, name, value)


def prepare() -> None:
    """Let class, kernels and model work on cells, where a contract of this file is judged."""
    kernels.walk_chain.call = kernels.walk_chain.interpreted
    _set(
        implementation,
        kernels=kernels,
        array=array_of,
        memoryview=lambda numbers: numbers,
        ENTRY=Layout(index_table.ENTRY),
        _INT32=Layout(implementation._INT32),
        _previous_index=kernels.previous_index.interpreted,
        _time_difference=kernels.time_difference.interpreted,
    )
    _set(
        index_header,
        HEADER=Layout(index_header.HEADER),
        _INT32=Layout(index_header._INT32),
        _INT64=Layout(index_header._INT64),
    )
    for module in (model, model_header):
        _set(module, int32_bytes=lambda value: (4, value), int64_bytes=lambda value: (8, value))
    _set(model, int32_at=_int32_at, int64_at=_int64_at)
    for kernel in (_put_entries, _walk_chain, _walk_chains):
        _use_cells(kernel)


def _put(cells: Cells, header: IndexHeader, put: tuple[int, int, int], way: str) -> object:
    """Return cells and header of a file of one slot, two entries, after a put done by `way`."""
    numbers = dict(cells)
    if way == "model":
        file = _File(numbers, 1, 3, header)
        assert file.put_key(*put)
        return numbers, tuple(file.header)
    if way == "kernel":
        fields = [*header, 0]
        assert _put_entries(numbers, 1, 3, *([number] for number in put), fields, 1) == 1
        return numbers, tuple(fields[:6])
    found = _implemented(header, 3)
    found.hash_slot_num, found._entries_at, found._header._view = 1, 44, numbers
    found._put((numbers, header.index_count, header.begin_timestamp), *put)
    return numbers, found._header.values()


def _same_put(way: str, slot: int, put: tuple[int, int, int], header: IndexHeader) -> bool:
    return _put({40: slot}, header, put, way) == _put({40: slot}, header, put, "model")


@contract(
    f"{INDEX}:put_entries",
    "RMQIDX-19 RMQIDX-20 RMQIDX-21 RMQIDX-22 RMQIDX-23 RMQIDX-24 RMQIDX-25",
    "the first and the second entry of a file, any slot value, any hash of 31 bits, any int64 "
    "offset and timestamps, any slot count",
    Mutant("index_count <= 1", "index_count <= 2"),
    Mutant("previous == 0", "previous >= 0"),
    Mutant("header[4] < 2147483647", "header[4] <= 2147483647"),
    Mutant("write_int64(data, 8,", "write_int64(data, 0,"),
    Mutant("write_int32(data, slot_at, index_count)", "write_int32(data, slot_at, previous)"),
)
def put_by_kernel(
    slot: int, put: tuple[int, int, int], begin: int, slot_count: int, is_first: bool
) -> bool:
    """A put writes one entry, its slot and the header as the model does, whatever the slot says.

    pre: -(2**31) <= slot < 2**31 and -(2**31) <= slot_count < 2**31
    pre: 0 <= put[0] < 2**31 and -(2**63) <= put[1] < 2**63 and -(2**63) <= put[2] < 2**63
    pre: -(2**63) <= begin < 2**63
    post: _
    """
    header = IndexHeader(begin, 0, 7, 0, slot_count, 1 if is_first else 2)
    return _same_put("kernel", slot, put, header)


@contract(
    f"{FILE}:IndexFile._put",
    "RMQIDX-19 RMQIDX-20 RMQIDX-21 RMQIDX-22 RMQIDX-23 RMQIDX-24 RMQIDX-25",
    "the first and the second entry of a file, any slot value, any hash of 31 bits, any int64 "
    "offset and timestamps, any slot count",
    Mutant("index_count <= 1", "index_count <= 2"),
    Mutant("previous == 0", "previous != 0"),
    Mutant("time_diff, previous)", "time_diff, 0)"),
)
def put_by_class(
    slot: int, put: tuple[int, int, int], begin: int, slot_count: int, is_first: bool
) -> bool:
    """The put of a single key does the same.

    pre: -(2**31) <= slot < 2**31 and -(2**31) <= slot_count < 2**31
    pre: 0 <= put[0] < 2**31 and -(2**63) <= put[1] < 2**63 and -(2**63) <= put[2] < 2**63
    pre: -(2**63) <= begin < 2**63
    post: _
    """
    header = IndexHeader(begin, 0, 7, 0, slot_count, 1 if is_first else 2)
    return _same_put("class", slot, put, header)


@contract(
    f"{INDEX}:put_entries",
    "RMQIDX-17 RMQIDX-18 RMQIDX-24 RMQIDX-30",
    "2 slots, room for 2 entries, index counts from 1 to 4, two hashes of either slot",
    Mutant("header[5] < index_num", "header[5] < index_num - 1"),
    Mutant("len(hashes), number + index_num - header[5]", "len(hashes)"),
    Mutant("if previous == 0", "if previous <= 1"),
)
def puts_until_full(index_count: int, is_odd: bool, is_next_odd: bool) -> bool:
    """As many entries are put as have room, and the second of a slot is no new slot.

    pre: 1 <= index_count <= 4
    post: _
    """
    header = [1000, 1000, 0, 0, 0, index_count, 0]
    hashes = [5 if is_odd else 4, 7 if is_next_odd else 4]
    count = _put_entries({40: 0, 44: 0}, 2, 3, hashes, [100, 101], [1000, 2000], header, 2)
    if count != max(0, min(2, 3 - index_count)) or header[5] != index_count + count:
        return False
    return header[4] == (1 if count == 2 and is_odd == is_next_odd else count)
