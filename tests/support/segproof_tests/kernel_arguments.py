# SPDX-License-Identifier: Apache-2.0
"""Every kernel, and how its arguments are drawn."""

import importlib
import inspect
import pkgutil
import struct
from array import array
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from segproof import kernels as package
from segproof.kernels.dispatch import Kernel

BYTES = st.integers(0, 255) | st.sampled_from([0, 1, 2, 127, 128, 129, 254, 255])
RAW = st.lists(BYTES, min_size=0, max_size=120).map(bytes)
INT32 = st.integers(-(2**31), 2**31 - 1) | st.integers(-2, 2)
INT64 = st.integers(-(2**63), 2**63 - 1) | INT32
SEQUENCES = st.integers(0, 2**31 - 1)
ENTRY = st.sampled_from([(8, 0, 4, 4), (12, 0, 8, 8)])
"""Entry size, key position, key size, value position of the two indexes."""


@dataclass(frozen=True)
class Out:
    """An argument into which the kernel writes: so many zeros of format q, each time anew."""

    length: int


@dataclass(frozen=True)
class Changed:
    """An argument that the kernel reads and changes: an array of these numbers, each time anew."""

    typecode: str
    numbers: tuple[int, ...]


def every_kernel() -> dict[str, Any]:
    """Return the kernels by module and name, also those that are plain functions."""
    found = {}
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, value in vars(module).items():
            function = getattr(value, "source", value)
            is_own = inspect.isfunction(function) and function.__module__ == module.__name__
            if is_own and info.name != "dispatch":  # it compiles kernels, and has none
                found[f"{info.name}.{name}"] = value
    return found


KERNELS: dict[str, Kernel[..., Any]] = {
    name: value for name, value in every_kernel().items() if isinstance(value, Kernel)
}
"""Those that numba may compile."""


def view(numbers: list[int]) -> memoryview:
    """Return native int64 numbers as kernels take them."""
    return memoryview(array("q", numbers))


def rising(size: int) -> st.SearchStrategy[list[int]]:
    """Draw strictly increasing int64 numbers."""
    numbers = st.lists(INT32, max_size=size, unique=True)
    return numbers.map(sorted)


@st.composite
def raw_at(draw: st.DrawFn, width: int) -> tuple[Any, ...]:
    """Draw bytes and a position at which `width` of them are left."""
    data = draw(st.binary(min_size=width, max_size=80))
    return data, draw(st.integers(0, len(data) - width))


@st.composite
def raw_up_to(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw bytes, a position and an end."""
    data = draw(RAW)
    end = draw(st.integers(0, len(data)))
    return data, draw(st.integers(0, end)), end


@st.composite
def search(draw: st.DrawFn, *, with_entry: str = "key") -> tuple[Any, ...]:
    """Draw the arguments of a search of one target."""
    entry_size, key_position, key_size, _ = draw(ENTRY)
    least = 1 if with_entry == "halve" else 0
    data = draw(st.binary(min_size=least * entry_size, max_size=200))
    entries = draw(st.integers(least, len(data) // entry_size))
    target = draw(INT32 if key_size == 4 else INT64)
    warm_entries = draw(st.integers(0, 6))
    if with_entry == "halve":
        low = draw(st.integers(0, entries - 1))
        return data, entry_size, key_position, key_size, target, low, entries - 1
    return data, entry_size, key_position, key_size, entries, target, warm_entries


@st.composite
def slots_of_any(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw the arguments of a search of many targets on raw bytes."""
    data, entry_size, key_position, key_size, entries, _, warm_entries = draw(search())
    targets = draw(st.lists(INT64, max_size=6))
    shape = (data, entry_size, key_position, key_size, entries)
    return (*shape, view(targets), Out(len(targets)), warm_entries)


@st.composite
def entries_at(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw slots to read, -1 among them."""
    shape = draw(ENTRY)
    data = draw(st.binary(min_size=12, max_size=200))
    slots = draw(st.lists(st.integers(-1, len(data) // shape[0] - 1), max_size=8))
    outs = (Out(len(slots)), Out(len(slots)))
    return (data, *shape, view(slots), *outs, draw(INT64), draw(INT64))


@st.composite
def native(draw: st.DrawFn, *, lanes: bool) -> tuple[Any, ...]:
    """Draw the arguments of a search on native keys; without lanes the targets never fall."""
    keys = draw(rising(12))
    targets = draw(st.lists(INT32 | st.sampled_from(keys or [0]), max_size=12))
    if lanes:
        out = Out(len(targets))
        return view(keys), len(keys), view(targets), out, draw(st.integers(1, 4))
    return view(keys), len(keys), view(sorted(targets)), Out(len(targets))


@st.composite
def merged(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw a part of the targets to merge; the slot is not above that of the first."""
    keys, entries, targets, out = draw(native(lanes=False))
    number = draw(st.integers(0, len(targets)))
    return keys, entries, targets, out, number, len(targets), -1


@st.composite
def native_entries(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw native columns with the missing entry, and slots to read."""
    keys = draw(st.lists(INT32, min_size=1, max_size=8))
    slots = draw(st.lists(st.integers(-1, len(keys) - 1), max_size=8))
    columns = (view(keys), view(keys[::-1]), len(keys) - 1, view(slots))
    return (*columns, Out(len(slots)), Out(len(slots)), draw(INT32), draw(INT32))


@st.composite
def kept(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw the arguments of a truncation."""
    entry_size, key_position = draw(st.sampled_from([(8, 0), (12, 8)]))
    data = draw(st.binary(max_size=200))
    entries = draw(st.integers(0, len(data) // entry_size))
    return data, entry_size, key_position, entries, draw(INT32), draw(st.integers(0, 6))


RECORDS = st.lists(
    st.sampled_from([b"\0\2\0\1\1\0", b"\0\0\4\2k\2v\0", b"\0\1\2\1\1\2\2h\1", b"\0\0\0\2"]).map(
        lambda body: bytes([2 * len(body)]) + body
    ),
    max_size=4,
)
LEFT_OVER = st.just(b"") | st.binary(max_size=12)


def record_blocks() -> st.SearchStrategy[bytes]:
    """Draw bytes that often are a few whole records."""
    return st.builds(lambda records, rest: b"".join(records) + rest, RECORDS, LEFT_OVER)


@st.composite
def headers(draw: st.DrawFn) -> bytes:
    """Draw bytes that often are a few whole batches of any magic, some with sound records."""
    batches = b""
    for _ in range(draw(st.integers(0, 3))):
        magic, records = draw(st.sampled_from([0, 1, 2, 2, 3, 255])), draw(RECORDS)
        fields = bytes(14)
        if magic == 2:
            attributes = draw(st.sampled_from([0, 8, 16, 32]) | st.integers(0, 65535))
            count = draw(st.just(len(records)) | INT32)
            fields = draw(st.binary(min_size=44, max_size=44))
            fields = struct.pack(">4sH34si", fields[:4], attributes, fields[10:], count)
        rest = bytes(4) + bytes([magic]) + fields + b"".join(records) + draw(LEFT_OVER)
        batches += draw(st.binary(min_size=8, max_size=8)) + len(rest).to_bytes(4, "big") + rest
    return batches + draw(st.binary(max_size=20))


@st.composite
def walks_of_batches(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw a buffer to scan, often not filled to the end of the range."""
    data = draw(headers())
    end = len(data) + draw(st.integers(0, 40))
    capacity = draw(st.integers(0, 4))
    return data, 0, len(data), end, draw(st.integers(0, 1)), capacity, Out(2 * capacity)


@st.composite
def walks_of_records(draw: st.DrawFn, *, columns: int) -> tuple[Any, ...]:
    """Draw a block of records and a count that is often right."""
    data = draw(record_blocks())
    capacity = draw(st.integers(0, 5))
    return data, 0, len(data), draw(st.integers(-1, 5)), capacity, Out(columns * capacity)


@st.composite
def summaries(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw whole batches with the rows that `walk_batches` has made of them."""
    from segproof.kernels.records import walk_batches

    data = draw(headers())
    rows = array("q", bytes(64))
    count, _, _ = walk_batches.interpreted(data, 0, len(data), len(data), 1, 4, memoryview(rows))
    return data, memoryview(rows), count, Out(6 * 4)


def reads_of_batches(of: tuple[bytes, int, bytes, int]) -> tuple[Any, ...]:
    """Return two batches of magic 2 with records, a count and a rest, and how many rows to fill."""
    data, count, rest, capacity = of
    one = bytes(57) + struct.pack(">i", count) + data + rest
    return one * 2, view([0, len(one), len(one), len(one)]), 2, capacity, Out(8 * capacity)


def reads_of_headers(of: tuple[list[bytes], int, int]) -> tuple[Any, ...]:
    """Return headers of two records, the first with so many, and how many rows to fill."""
    data, records = b"".join(of[0]), view([0, of[1], len(of[0][0]), 1])
    return data, len(data), records, 2, of[2], Out(4 * of[2])


HEADER_BYTES = st.sampled_from([b"\2h\1", b"\0\0", b"\4hi\2v", b"\1"])
FEW = st.integers(-1, 5)


@st.composite
def legacy_walks(draw: st.DrawFn, *, columns: int) -> tuple[Any, ...]:
    """Draw messages of magic 0 and 1."""
    data = b""
    for _ in range(draw(st.integers(0, 3))):
        magic = draw(st.integers(0, 2))
        body = bytes(4) + bytes([magic, 0]) + draw(st.binary(max_size=24))
        data += draw(st.binary(min_size=8, max_size=8)) + len(body).to_bytes(4, "big") + body
    data += draw(st.binary(max_size=30))
    capacity = draw(st.integers(0, 4))
    return data + bytes(30), 0, len(data), capacity, Out(columns * capacity)


@st.composite
def searches_in_logs(draw: st.DrawFn, *, many: bool, offset: bool = False) -> tuple[Any, ...]:
    """Draw a part of a log, and what to look for in it."""
    data = draw(headers())
    filled, rest = len(data), draw(st.integers(0, 40))
    end = filled + rest
    if not many:
        found = (data, draw(st.integers(0, end)), filled, end, draw(INT64))
        return (*found, draw(INT64)) if offset else found
    count, origin = draw(st.integers(0, 4)), draw(st.integers(0, 1000))
    starts = sorted(draw(st.lists(st.integers(0, end), min_size=count, max_size=count)))
    targets = draw(st.lists(INT64, min_size=count, max_size=count))
    asked = (view([origin + start for start in starts]), view(targets))
    given = (draw(INT64),) if offset else ()
    return data, filled, end, count, origin, *asked, *given, Out(count), Out(count)


@st.composite
def searches_in_batches(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw a magic 2 batch whose count is often right, and what to look for in it."""
    header, records = draw(st.binary(min_size=57, max_size=57)), draw(record_blocks())
    count = draw(st.integers(-1, 5)).to_bytes(4, "big", signed=True)
    attributes = draw(st.sampled_from([0, 8]) | st.integers(0, 255))
    data = header[:22] + bytes([attributes]) + header[23:] + count + records
    return data, 0, len(data), draw(INT64), draw(INT64)


@st.composite
def indexed(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw sizes of batches, an interval, and bytes since the last entry."""
    sizes = draw(st.lists(st.integers(26, 2**31 - 1) | st.integers(26, 99), max_size=8))
    bytes_since = draw(st.integers(0, 2**31 - 1) | st.integers(0, 99))
    interval = draw(st.integers(0, 2**31 - 1) | st.integers(0, 99))
    return view(sizes), len(sizes), interval, bytes_since, Out(len(sizes))


@st.composite
def index_files(draw: st.DrawFn) -> tuple[bytes, int, int]:
    """Draw an index file of RocketMQ whose slots and entries often lead to entries; H and N."""
    slots, entries = draw(st.integers(1, 3)), draw(st.integers(2, 5))
    is_sound = draw(st.booleans())

    def leading(below: int) -> st.SearchStrategy[int]:
        sound = st.integers(0, max(below - 1, 0))
        return sound if is_sound else sound | st.integers(-1, entries) | INT32

    data = bytes(40) + b"".join(
        draw(leading(entries)).to_bytes(4, "big", signed=True) for _ in range(slots)
    )
    for number in range(entries):
        seconds = st.integers(0, 9) if is_sound else st.integers(-1, 9) | INT32
        entry = (draw(HASHES), draw(INT64), draw(seconds), draw(leading(number)))
        data += struct.pack(">iqii", *entry)
    return data, slots, entries


HASHES = st.integers(0, 3) | SEQUENCES
TIMES = st.tuples(INT64, INT64, INT64)
ANY_TIME = (1_700_000_000_000, 0, 2**63 - 1)
"""Where the times of a file begin, and from when to when entries are sought."""


@st.composite
def puts(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw an index file, its header and entries to put, often more than have room."""
    data, slots, entries = draw(index_files())
    count = draw(st.integers(0, 5))
    rows = [draw(st.lists(kind, min_size=count, max_size=count)) for kind in (HASHES, INT64, INT64)]
    header = (*draw(st.tuples(INT64, INT64, INT64, INT64)), draw(INT32))
    changed = Changed("q", (*header, draw(st.integers(1, entries + 1)), 0))
    shape = (Changed("B", tuple(data)), slots, entries)
    return (*shape, *map(view, rows), changed, draw(st.integers(1, 3)))


def sought_in(data: bytes, slots: int) -> st.SearchStrategy[int]:
    """Draw a hash, often of an entry of an index file."""
    words = struct.unpack_from(f">{len(data) // 4}i", data)
    return st.sampled_from(words[10 + slots :: 5]) | HASHES


@st.composite
def walks_of_chains(draw: st.DrawFn, *, many: bool) -> tuple[Any, ...]:
    """Draw an index file and one chain to walk on, or the chains of some hashes."""
    data, slots, entries = draw(index_files())
    limit, times = draw(st.integers(1, entries)), draw(st.just(ANY_TIME) | TIMES)
    sought = sought_in(data, slots)
    if not many:
        walk = (draw(st.integers(-1, entries)), limit, *bytes(draw(st.integers(0, 3))))
        return data, slots, times[0], draw(sought), *times[1:], Changed("q", walk)
    hashes = draw(st.lists(sought, max_size=4))
    first, count = draw(st.integers(0, len(hashes))), len(hashes)
    asked = (draw(st.integers(-1, 3)), *times[1:])
    room = draw(st.integers(0, 9))
    outs = (Out(count), Out(count), Out(room), Out(room), Out(count + 1), Out(room))
    return data, slots, limit, times[0], view(hashes), first, count, *asked, *outs


@st.composite
def rounds_of_walks(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw an index file and chains that stand at some of its entries."""
    data, slots, entries = draw(index_files())
    begin_timestamp, *window = draw(st.just(ANY_TIME) | TIMES)
    hashes = draw(st.lists(sought_in(data, slots), max_size=4))
    count, total = len(hashes), draw(st.integers(0, 2))
    places = draw(st.lists(st.integers(0, entries - 1), min_size=count, max_size=count))
    lanes = Changed("q", tuple(draw(st.permutations(range(count)))))
    shape = (data, slots, begin_timestamp, view(hashes), 0, draw(st.integers(1, 2)), *window)
    outs = (Out(count + 1), Out(total + count), Out(total + count))
    return *shape, Changed("q", tuple(places)), lanes, draw(st.integers(0, count)), *outs, total


@st.composite
def slots_of_hashes(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw an index file, and which of some hashes to look at."""
    data, slots, _ = draw(index_files())
    hashes = draw(st.lists(HASHES, max_size=4))
    first = draw(st.integers(0, len(hashes)))
    return data, slots, view(hashes), first, len(hashes), Out(len(hashes) - first)


@st.composite
def texts_to_hash(draw: st.DrawFn, *, rows: bool) -> tuple[Any, ...]:
    """Draw bytes that are often UTF-8, in rows of one width or between bounds."""
    count = draw(st.integers(0, 4))
    data = draw(UTF8)
    if rows:
        width = draw(st.integers(0, 5))
        return data.ljust(count * width, b"\0"), width, Out(count)
    bounds = draw(st.lists(st.integers(0, len(data)), min_size=count + 1, max_size=count + 1))
    return data, view(sorted(bounds)), draw(st.integers(0, 1)), Out(count)


@st.composite
def written_at(draw: st.DrawFn, width: int) -> tuple[Any, ...]:
    """Draw bytes to write a number of so many bytes into, where, and the number."""
    data = draw(st.binary(min_size=width, max_size=20))
    position = draw(st.integers(0, len(data) - width))
    return Changed("B", tuple(data)), position, draw(INT32 if width == 4 else INT64)


NAMES = b"KEYSUNIQ_KEYTAGS"
PROPERTIES = st.lists(
    st.sampled_from([b"KEYS\1a b", b"UNIQ_KEY\1u", b"TAGS\1t", b"KEYS\1\xff", b"x\1y", b"\1", b""]),
    max_size=4,
).map(b"\2".join)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Draw bytes that are often a few records of RocketMQ's commit log, one of them damaged."""
    log = b""
    for _ in range(draw(st.integers(0, 3))):
        magic = draw(st.sampled_from([0xDAA320A7, 0xDAA320A7, 0xDAA320AB, 0xCBD43194]))
        flags = draw(st.sampled_from([0, 4, 8, 12, 16, 32, 48]))
        body, topic, properties = draw(st.binary(max_size=3)), b"T\xc3\xa9", draw(PROPERTIES)
        hosts = [bytes(20 if flags & bit else 8) for bit in (16, 32)]
        fields = draw(st.binary(min_size=28, max_size=28)) + struct.pack(">iq", flags, 7)
        fields += hosts[0] + struct.pack(">q", 9) + hosts[1] + bytes(12)
        fields += struct.pack(">i", len(body)) + body
        fields += bytes([0] * (magic == 0xDAA320AB) + [len(topic)]) + topic
        fields += struct.pack(">h", len(properties)) + properties
        log += struct.pack(">iI", len(fields) + 8, magic) + fields
    damaged = bytearray(log + draw(st.binary(max_size=9)))
    if damaged and draw(st.booleans()):
        damaged[draw(st.integers(0, len(damaged) - 1))] = draw(BYTES)
    return bytes(damaged)


@st.composite
def walks_of_messages(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw a part of a commit log, and room for a few rows."""
    data = draw(messages())
    return data, 0, len(data), NAMES, Out(16 * draw(st.integers(0, 3)))


@st.composite
def keys_of_messages(draw: st.DrawFn) -> tuple[Any, ...]:
    """Draw a part of a commit log with the rows that `walk_messages` has made of it."""
    from segproof.kernels.rocketmq_records import walk_messages

    data = draw(messages())
    rows = array("q", bytes(8 * 16 * 3))
    count, _, _ = walk_messages.interpreted(data, 0, len(data), NAMES, memoryview(rows))
    room = Out(len(data) + 2)
    return data, memoryview(rows)[: 16 * count], draw(st.integers(0, 1)), room, room


UTF8 = st.text("aZ\0\x80\u07ff\u4e2d\U0001f600", max_size=9).map(str.encode) | RAW
TEXT_BYTES = UTF8.flatmap(
    lambda data: st.tuples(
        st.just(data), st.integers(0, len(data)), st.just(len(data)), st.integers(0, 1)
    )
)
UNITS = UTF8 | st.lists(st.integers(0, 65535), max_size=9).map(
    lambda units: memoryview(array("H", units)).toreadonly()
)
HEADER = st.tuples(st.binary(min_size=61, max_size=61), st.sampled_from([0, 1, 2])).map(
    lambda drawn: (drawn[0][:16] + bytes([drawn[1]]) + drawn[0][17:], 0, Out(14))
)
KEY = st.tuples(st.binary(min_size=48, max_size=48), ENTRY, st.integers(0, 3)).map(
    lambda drawn: (drawn[0], *drawn[1][:3], drawn[2])
)
ARGUMENTS: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {
    "index_rules.kept_entries": kept(),
    "records.decode_int16": raw_at(2),
    "records.decode_int32": raw_at(4),
    "records.decode_int64": raw_at(8),
    "records.add_int64": st.tuples(INT64, INT64),
    "records.decode_varint": raw_up_to(),
    "records.decode_varlong": raw_up_to(),
    "records.short_varint": raw_at(2),
    "records.compression_code": st.tuples(st.integers(-(2**15), 2**15 - 1)),
    "records.attribute_bit": st.tuples(st.integers(-(2**15), 2**15 - 1), st.integers(3, 6)),
    "records.increment_sequence": st.tuples(SEQUENCES, INT32),
    "records.decrement_sequence": st.tuples(SEQUENCES, SEQUENCES),
    "records.decode_batch_header": HEADER,
    "records.walk_batches": walks_of_batches(),
    "records.next_header": raw_up_to(),
    "records.read_headers": st.tuples(
        st.lists(HEADER_BYTES, min_size=1, max_size=4), FEW, st.integers(0, 5)
    ).map(reads_of_headers),
    "records.next_record": raw_up_to() | record_blocks().map(lambda data: (data, 0, len(data))),
    "records.plain_record": raw_up_to() | record_blocks().map(lambda data: (data, 0, len(data))),
    "records.walk_records": walks_of_records(columns=8),
    "records.read_batches": st.tuples(RECORDS.map(b"".join), FEW, LEFT_OVER, st.integers(0, 8)).map(
        reads_of_batches
    ),
    "records.summarise_records": st.tuples(
        record_blocks(), st.integers(-1, 5), st.integers(0, 1)
    ).map(lambda drawn: (drawn[0], 0, len(drawn[0]), drawn[1], Out(7), drawn[2])),
    "records.summarise_batches": summaries(),
    "legacy_records.legacy_field": raw_up_to(),
    "legacy_records.walk_legacy_messages": legacy_walks(columns=8),
    "legacy_records.walk_legacy_positions": legacy_walks(columns=1),
    "rocketmq_index.add_unit": st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 65535)),
    "rocketmq_index.absolute_hash": st.tuples(st.integers(0, 2**32 - 1) | st.just(2**31)),
    "rocketmq_index.hash_of_units": st.tuples(UNITS),
    "rocketmq_index.key_hash_of_units": st.tuples(UNITS),
    "rocketmq_index.utf8_character": TEXT_BYTES.filter(lambda drawn: drawn[1] < drawn[2]),
    "rocketmq_index.hash_of_utf8": TEXT_BYTES,
    "rocketmq_index.hashes_of_joined": st.tuples(
        UTF8, st.integers(0, 1), st.integers(0, 4).map(Out)
    ),
    "rocketmq_index.hashes_of_rows": texts_to_hash(rows=True),
    "rocketmq_index.hashes_of_texts": texts_to_hash(rows=False),
    "rocketmq_index.slot_position": st.tuples(SEQUENCES, st.integers(1, 2**29)),
    "rocketmq_index.time_difference": st.tuples(INT64, INT64),
    "rocketmq_index.read_time": st.tuples(INT64, SEQUENCES),
    "rocketmq_index.previous_index": st.tuples(INT32, SEQUENCES),
    "rocketmq_index.write_int32": written_at(4),
    "rocketmq_index.write_int64": written_at(8),
    "rocketmq_index.put_entries": puts(),
    "rocketmq_index.newest_entries": slots_of_hashes(),
    "rocketmq_index.visit_entries": rounds_of_walks(),
    "rocketmq_index.follow_chains": walks_of_chains(many=True).map(
        lambda drawn: (*drawn[:12], drawn[14], *drawn[12:14])
    ),
    "rocketmq_index.walk_chain": walks_of_chains(many=False),
    "rocketmq_index.walk_chains": walks_of_chains(many=True),
    "rocketmq_records.is_name": raw_up_to().flatmap(
        lambda drawn: st.tuples(
            *map(st.just, drawn), st.just(drawn[0]), st.just(drawn[1]), st.just(drawn[2])
        )
    ),
    "rocketmq_records.find_properties": PROPERTIES.map(
        lambda data: (data, 0, len(data), NAMES, 0, Out(16))
    ),
    "rocketmq_records.read_message": messages()
    .filter(lambda data: len(data) >= 8)
    .map(lambda data: (data, 0, len(data), NAMES, 0, Out(16))),
    "rocketmq_records.walk_messages": walks_of_messages(),
    "rocketmq_records.extend_hash": UTF8.map(lambda data: (data, 0, len(data), 2**32 - 1)),
    "rocketmq_records.key_hash": st.tuples(UTF8, st.integers(-1, 2**32 - 1)).map(
        lambda drawn: (drawn[0], 0, len(drawn[0]), drawn[1])
    ),
    "rocketmq_records.hash_keys": keys_of_messages(),
    "segment_rules.indexed_batches": indexed(),
    "segment_search.find_batch": searches_in_logs(many=False),
    "segment_search.find_batches": searches_in_logs(many=True),
    "segment_search.find_in_batch": searches_in_batches(),
    "segment_search.find_time": searches_in_logs(many=False, offset=True),
    "segment_search.find_times": searches_in_logs(many=True, offset=True),
    "slot_search.int32_at": raw_at(4),
    "slot_search.int64_at": raw_at(8),
    "slot_search.key_at": KEY,
    "slot_search._halve": search(with_entry="halve"),
    "slot_search.lower_slot": search(),
    "slot_search.upper_slot": search(),
    "slot_search.lower_slots_of_any": slots_of_any(),
    "slot_search.entries_at": entries_at(),
    "slot_search.lower_slots_of_random": native(lanes=True),
    "slot_search._lower_native_slot": st.tuples(rising(12), INT32).map(
        lambda drawn: (view(drawn[0]), len(drawn[0]), drawn[1])
    ),
    "slot_search._merge": merged(),
    "slot_search.lower_slots_of_rising": native(lanes=False),
    "slot_search.native_entries_at": native_entries(),
}

SMALL = st.sampled_from([8, 12]) | st.integers(-3, 5)
NUMBER = SMALL | INT64 | st.integers(-(2**65), 2**65)
PAIRS = st.lists(st.tuples(SMALL, SMALL), max_size=5)
BY_ANNOTATION: dict[str, st.SearchStrategy[Any]] = {
    "int": NUMBER,
    "bool": st.booleans(),
    "Sequence[int]": st.lists(NUMBER, max_size=6) | st.lists(SMALL, max_size=6).map(sorted),
    "Sequence[tuple[int, int]]": PAIRS,
    "Iterable[tuple[int, int]]": PAIRS,
}


def of_plain(
    function: Callable[..., Any], cases: Mapping[str, tuple[int, ...]]
) -> st.SearchStrategy[tuple[Any, ...]]:
    """Draw arguments of a function that is not compiled, by their kinds or from these cases."""
    parameters = inspect.signature(function).parameters.values()
    kinds = {one.name: inspect.formatannotation(one.annotation) for one in parameters}
    return st.tuples(
        *[
            st.sampled_from(cases[name])
            if name in cases
            else BY_ANNOTATION[kind.replace("collections.abc.", "")]
            for name, kind in kinds.items()
        ]
    )


PLAIN = {name: value for name, value in every_kernel().items() if name not in KERNELS}
"""The functions that are not compiled."""


def arrays_of(arguments: tuple[Any, ...]) -> list[Any]:
    """Return arguments for a call, with a fresh memoryview for each that is written to."""
    return [
        memoryview(array("q", bytes(8 * one.length)))
        if isinstance(one, Out)
        else memoryview(array(one.typecode, one.numbers))
        if isinstance(one, Changed)
        else one
        for one in arguments
    ]


def is_written(argument: Any) -> bool:
    """Return whether a kernel writes into this drawn argument."""
    return isinstance(argument, Out | Changed)


def run(function: Callable[..., Any], arguments: tuple[Any, ...]) -> tuple[Any, list[list[int]]]:
    """Return what the function answers, and what it wrote."""
    given = arrays_of(arguments)
    result = function(*given)
    pairs = zip(arguments, given, strict=True)
    return result, [view.tolist() for one, view in pairs if is_written(one)]
