# SPDX-License-Identifier: Apache-2.0
"""How many slots and entries an index file has, which its bytes do not say.

Only 40 + 4H + 20N is known. The answer is what was given, else the broker's default if its length
is that of the file, else what files of the same length beside it tell, else what fits: the header
names the offsets of the first and of the last entry, the newest entry is the head of its slot, and
every chain is consistent. In a sound file the last byte that is not zero lies in the last entry:
only one pair of numbers puts it there. Where that pair does not pass, each other one is tried, and
the answer is ambiguous unless all were tried and a single one passes.

Upstream: RocketMQ 5.5.1: MessageStoreConfig.maxHashSlotNum, maxIndexNum.
Laws: RMQIDX-1, RMQDISK-2.
Not covered: a file without entries, in which every pair fits.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from segproof.files import REAL_FILES, File, Files
from segproof.kernels.rocketmq_index import HEADER_BYTES
from segproof.rocketmq.index_header import StoredHeader
from segproof.rocketmq.index_table import (
    ENTRY_BYTES,
    SLOT_BYTES,
    Geometry,
    entry_blocks,
    read_slots,
    read_stored_header,
)

DEFAULT_GEOMETRY: Final = Geometry(5_000_000, 20_000_000)
CANDIDATES_MAX: Final = 8
"""Pairs that are looked into wholly, and that an ambiguous answer names."""
SIZE_MAX_BYTES: Final = 1 << 29
"""Of a file that is looked into; the default one has 420,000,040 bytes and is known by that."""
_STEP: Final = 1 << 20
_NAME = re.compile(r"[0-9]{17}", re.ASCII)

Int32Array = NDArray[np.int32]
Int64Array = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class GeometryAnswer:
    """What is known of one file's geometry."""

    geometry: Geometry | None
    """None: none fits, or each does since there is no entry."""
    origin: str
    """`given`, `default`, `siblings`, `inferred`, `ambiguous` (the first candidate is taken), or
    `unknown`."""
    candidates: tuple[Geometry, ...] = ()
    """Of an ambiguous answer: what fits, at most CANDIDATES_MAX."""


def geometry_with_slots(size_bytes: int, hash_slot_num: int) -> Geometry | None:
    """Return the geometry of a file of this length with so many slots, or None.

    None unless at least one slot and two entries fit the length exactly.
    """
    room = size_bytes - HEADER_BYTES - SLOT_BYTES * hash_slot_num
    if hash_slot_num < 1 or room < 2 * ENTRY_BYTES or room % ENTRY_BYTES:
        return None
    return Geometry(hash_slot_num, room // ENTRY_BYTES)


def index_file_names(names: Iterable[str]) -> list[str]:
    """Return the names that are those of index files: times of 17 digits; sorted."""
    return sorted(name for name in names if _NAME.fullmatch(name))


def find_geometry(
    path: str | os.PathLike[str],
    *,
    hash_slot_num: int | None = None,
    files: Files = REAL_FILES,
) -> GeometryAnswer:
    """Return the geometry of one index file.

    `hash_slot_num` is believed if given, unless the length forbids it.
    Raises: OSError if the file can't be read.
    """
    directory, name = os.path.split(os.fspath(path))
    directory = directory or "."
    own = _own_answer(os.path.join(directory, name), hash_slot_num, files)
    if own.origin not in ("ambiguous", "unknown"):
        return own
    try:
        beside = index_file_names(files.list_directory(directory))
    except OSError:
        return own
    return _from_siblings({name: own}, directory, [one for one in beside if one != name], files)[
        name
    ]


def find_geometries(
    directory: str,
    names: Iterable[str],
    *,
    hash_slot_num: int | None = None,
    files: Files = REAL_FILES,
) -> dict[str, GeometryAnswer]:
    """Return the geometry of each of the named files of one directory; not of unreadable ones."""
    answers: dict[str, GeometryAnswer] = {}
    for name in names:
        try:
            answers[name] = _own_answer(os.path.join(directory, name), hash_slot_num, files)
        except OSError:
            continue
    return _from_siblings(answers, directory, (), files)


def _own_answer(path: str, hash_slot_num: int | None, files: Files) -> GeometryAnswer:
    with closing(files.open(path)) as file:
        size = file.size()
        if hash_slot_num is not None:
            return GeometryAnswer(geometry_with_slots(size, hash_slot_num), "given")
        if size == DEFAULT_GEOMETRY.file_size:
            return GeometryAnswer(DEFAULT_GEOMETRY, "default")
        found = infer_geometries(file)
    if len(found) == 1:
        return GeometryAnswer(found[0], "inferred")
    if found:
        return GeometryAnswer(found[0], "ambiguous", found)
    return GeometryAnswer(None, "unknown")


def _from_siblings(
    answers: dict[str, GeometryAnswer], directory: str, others: Iterable[str], files: Files
) -> dict[str, GeometryAnswer]:
    """Give what is not told by a file itself the geometry of files of its length."""

    def size_of(name: str) -> int:
        status = files.status(os.path.join(directory, name))
        return -1 if status is None else status.size_bytes

    known = {
        answer.geometry.file_size: answer.geometry
        for answer in answers.values()
        if answer.geometry is not None and answer.origin in ("inferred", "default")
    }
    wanting = {
        name: size_of(name)
        for name, answer in answers.items()
        if answer.origin in ("ambiguous", "unknown")
    }
    for other in others:
        if set(wanting.values()) <= known.keys():
            break
        try:
            if size_of(other) in set(wanting.values()) - known.keys():
                answer = _own_answer(os.path.join(directory, other), None, files)
                if answer.geometry is not None and answer.origin == "inferred":
                    known[answer.geometry.file_size] = answer.geometry
        except OSError:
            continue
    for name, size in wanting.items():
        if size in known:
            answers[name] = replace(
                answers[name], geometry=known[size], origin="siblings", candidates=()
            )
    return answers


# --- inference


def infer_geometries(file: File) -> tuple[Geometry, ...]:
    """Return what fits the contents of a file, the best first; empty if nothing does.

    Cost: reads the file a few times in pieces; 8 bytes for each entry that a candidate has.
    """
    size, header = file.size(), read_stored_header(file)
    if header is None or size > SIZE_MAX_BYTES or (size - HEADER_BYTES) % SLOT_BYTES:
        return ()
    if header.index_count <= 1:
        return ()
    pinned = _pinned(file, size, header)
    if pinned is not None and _is_sound(file, pinned, header):
        return (pinned,)
    for use_begin, use_end in ((True, True), (True, False), (False, True)):
        found: list[tuple[float, Geometry]] = []
        for geometry in _fitting(file, size, header, use_begin, use_end):
            found.append((consistency(file, geometry, header), geometry))
            if len(found) >= CANDIDATES_MAX:
                break
        best = max((score for score, _ in found), default=0.0)
        if best > 0.5 and len(found) < CANDIDATES_MAX:
            return tuple(geometry for score, geometry in found if score == best)
        if best > 0.5:  # a better pair may be among those that were not tried
            found.sort(key=lambda one: -one[0])
            return tuple(geometry for _, geometry in found)
    return ()


def _pinned(file: File, size: int, header: StoredHeader) -> Geometry | None:
    """Return the only pair that puts the last byte that is not zero into the last entry."""
    last = _last_byte(file, size)
    words = (size - HEADER_BYTES) // SLOT_BYTES
    most = (last - HEADER_BYTES - ENTRY_BYTES * (header.index_count - 1)) // SLOT_BYTES
    slots = most - (most - words) % 5
    if slots < 1 or (words - slots) // 5 < max(2, header.index_count):
        return None
    return Geometry(slots, (words - slots) // 5)


def _last_byte(file: File, size: int) -> int:
    """Return the position of the last byte that is not zero; -1 if all are."""
    for start in range((size - 1) // _STEP * _STEP, -1, -_STEP):
        if data := file.pread(_STEP, start).rstrip(b"\0"):
            return start + len(data) - 1
    return -1


def _is_sound(file: File, geometry: Geometry, header: StoredHeader) -> bool:
    """Return whether header, slots and chains agree with a pair, and name each entry once."""
    count = header.index_count
    slots = read_slots(file, geometry)
    own = np.full(count, -1, np.int64)
    previous, offsets = np.zeros(count, np.int64), np.zeros(count, np.int64)
    for first, block in entry_blocks(file, geometry, 0, count):
        rows = slice(first, first + len(block))
        own[rows] = block["key_hash"]
        previous[rows], offsets[rows] = block["prev_index"], block["phy_offset"]
    is_begun = not (own[0] or previous[0] or offsets[0]) and bool((own >= 0).all())
    if not is_begun or (header.begin_phy_offset, header.end_phy_offset) != (
        offsets[1],
        offsets[-1],
    ):
        return False
    own %= geometry.hash_slot_num
    used, linked = np.flatnonzero(slots), np.flatnonzero(previous)
    linked = linked[linked > 0]
    targets = np.concatenate([slots[used].astype(np.int64), previous[linked]])
    sources = np.concatenate([used, own[linked]])
    if len(targets) != count - 1 or not bool(((targets > 0) & (targets < count)).all()):
        return False
    is_once = len(np.unique(targets)) == count - 1
    return is_once and bool((own[targets] == sources).all() & (previous[linked] < linked).all())


def _fitting(
    file: File, size: int, header: StoredHeader, use_begin: bool, use_end: bool
) -> Iterator[Geometry]:
    """Yield the pairs in which first and last entry are where the header says, few slots first.

    The last entry must be the head of its slot, unless its place is not asked for.
    """
    words = (size - HEADER_BYTES) // SLOT_BYTES
    least = max(2, header.index_count if use_end else 2)
    largest = words - 5 * least
    heads = _slots_with(file, header.index_count - 1, words) if use_end else None
    smallest = words - (words - 1) // 5 * 5
    for first in range(smallest, largest + 1, 5 * _STEP):
        slots: Int64Array = np.arange(first, min(first + 5 * _STEP, largest + 1), 5, dtype=np.int64)
        if use_begin:
            _, offsets = _entries_at(file, slots, 1)
            slots = slots[offsets == header.begin_phy_offset]
        if heads is not None and len(slots):
            hashes, offsets = _entries_at(file, slots, header.index_count - 1)
            is_end = (offsets == header.end_phy_offset) & (hashes >= 0)
            slots, hashes = slots[is_end], hashes[is_end]
            slots = slots[heads[hashes % slots]]
        for count in slots.tolist():
            yield Geometry(count, (words - count) // 5)


def _entries_at(file: File, slots: Int64Array, index: int) -> tuple[Int64Array, Int64Array]:
    """Return hash and offset of entry `index` for each number of slots; the numbers rise by 5."""
    if not len(slots):
        empty = np.zeros(0, np.int64)
        return empty, empty
    low = int(slots[0])
    position = HEADER_BYTES + SLOT_BYTES * low + ENTRY_BYTES * index
    length = SLOT_BYTES * (int(slots[-1]) - low + 3)
    data = file.pread(length, position)
    data += bytes(length - len(data))
    words = np.frombuffer(data, ">u4").astype(np.int64)
    at = slots - low
    hashes = words[at]
    hashes = np.where(hashes >= 1 << 31, hashes - (1 << 32), hashes)
    high = words[at + 1]
    high = np.where(high >= 1 << 31, high - (1 << 32), high)
    return hashes, (high << 32) + words[at + 2]


def _slots_with(file: File, value: int, words: int) -> NDArray[np.bool_]:
    """Return which words behind the header have a value."""
    found = np.zeros(words, np.bool_)
    for first in range(0, words, _STEP):
        data = file.pread(SLOT_BYTES * min(_STEP, words - first), HEADER_BYTES + SLOT_BYTES * first)
        part = np.frombuffer(data[: len(data) // SLOT_BYTES * SLOT_BYTES], ">i4")
        found[first : first + len(part)] = part == value
    return found


def consistency(file: File, geometry: Geometry, header: StoredHeader) -> float:
    """Return which share of the links lead back, inside the file and inside their slot: 0 to 1."""
    count = min(header.index_count, geometry.index_num)
    slots = read_slots(file, geometry)
    own = np.full(count, -1, np.int32)
    previous = np.zeros(count, np.int32)
    for first, block in entry_blocks(file, geometry, 1, count):
        own[first : first + len(block)] = block["key_hash"] % geometry.hash_slot_num
        previous[first : first + len(block)] = block["prev_index"]
    used = np.flatnonzero(slots)
    if not len(used) or len(slots) == 0:
        return 0.0
    good = _inside(slots[used], used.astype(np.int32), own)
    linked = np.flatnonzero(previous)
    back = previous[linked] < linked
    good += _inside(previous[linked][back], own[linked][back], own)
    return good / (len(used) + len(linked))


def _inside(targets: Int32Array, wanted: Int32Array, own: Int32Array) -> int:
    """Return how many targets are entries of the wanted slot."""
    is_entry = (targets > 0) & (targets < len(own))
    return int(np.count_nonzero(own[targets[is_entry]] == wanted[is_entry]))
