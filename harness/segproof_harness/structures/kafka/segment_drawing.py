# SPDX-License-Identifier: Apache-2.0
"""How the arguments of a segment's operations are drawn: near its batches, entries and borders."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from segproof.layouts.kafka import ABORTED_TXN, OFFSET_ENTRY, TIME_ENTRY
from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.choices import (
    INT32_MAX,
    INT32_MIN,
    INT64_MAX,
    INT64_MIN,
    MAGIC_NEWEST,
    Choose,
    within,
)
from segproof_harness.structures.kafka.abstract_index import base_of, clamp64, entries_of
from segproof_harness.structures.kafka.batch_drawing import (
    TIMES,
    draw_batch,
    draw_damaged,
    draw_records,
    number_of,
    whole_batches,
)
from segproof_harness.structures.kinds import Bytes, Integer, Kind, OneOf, Only, Row
from segproof_harness.structures.kinds import Record as RecordKind
from segproof_harness.structures.operations import Value
from segproof_harness.structures.steps import Situation
from segproof_model.kafka.format.batch_writing import (
    write_batch,
    write_empty_batch,
    write_end_transaction_marker,
)
from segproof_model.kafka.format.compression import COMPRESSIONS
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.record_batch import RecordBatch

BASE_OFFSETS = (0, 40, 2**31 - 5, 2**40, 2**63 - 2**31, -7)
"""Behind the largest of them no offset of 64 bits is too far."""
NEXT_OFFSET_MAX = INT64_MAX - 40
"""A drawn batch that begins here ends within 64 bits."""
SUFFIXES = ("", ".deleted", ".cleaned", ".swap")
KINDS = (".log", ".index", ".timeindex", ".txnindex")
SMALL_MAX = 1 << 20
LOG_BYTES_MAX = 2500
"""From this size on, histories append less."""
DAMAGES = ("cut", "zeros", "longer", "flipped", "replaced", "removed")

Damage = tuple[str, str, int, bytes]
"""Which file (its kind), what happens to it, how many bytes or where, and what is written."""


# --- where the segment stands --------------------------------------------------------------------


def log_of(situation: Situation) -> bytes:
    """Return the bytes of the log up to its logical end."""
    state = situation.state
    return b"" if state is None else bytes(state.log.image[: state.size])


def batches_of(situation: Situation) -> Sequence[RecordBatch]:
    """Return the batches from the beginning of the log, as far as they are whole."""
    return whole_batches(log_of(situation))


def next_offset(batches: Sequence[RecordBatch], base_offset: int) -> int:
    """Return the offset behind the last batch, not too large for another one."""
    last = number_of(batches[-1], "last_offset") if batches else base_offset - 1
    return min(base_offset if last is None else last + 1, NEXT_OFFSET_MAX)


def places_of(situation: Situation) -> list[int]:
    """Return the positions where batches begin, and the end."""
    return [*(batch.position for batch in batches_of(situation)), len(log_of(situation))]


# --- records -------------------------------------------------------------------------------------


def draw_transactional(choose: Choose, base_offset: int) -> bytes:
    """Draw a batch of one of three producers: records of a transaction, or its end."""
    producer_id = choose.integer(1, 3)
    if choose.one_in(3):
        return write_end_transaction_marker(
            choose.one_of(("ABORT", "ABORT", "COMMIT")),
            offset=base_offset,
            timestamp=choose.one_of(TIMES),
            producer_id=producer_id,
            producer_epoch=0,
            coordinator_epoch=choose.integer(0, 3),
        )
    return write_batch(
        draw_records(choose, base_offset, False),
        base_offset=base_offset,
        compression=COMPRESSIONS[choose.one_of((0, 0, 2, 4))],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=choose.integer(0, 20),
        partition_leader_epoch=choose.one_of((-1, 0, 1, 5)),
        is_transactional=not choose.one_in(4),
        codecs=CODECS,
    )


def draw_batches(choose: Choose, offset: int) -> bytes:
    """Draw one to four batches whose offsets rise, some of them with gaps."""
    drawn = []
    for _ in range(choose.one_of((1, 1, 1, 2, 4))):
        is_new = choose.magic_max == MAGIC_NEWEST
        draw = draw_transactional if is_new and choose.one_in(3) else draw_batch
        batch = draw(choose, offset)
        drawn.append(batch)
        offset = next_offset(whole_batches(batch), offset) + choose.one_of((0, 0, 0, 0, 1, 9))
        offset = min(offset, NEXT_OFFSET_MAX)
    return b"".join(drawn)


def draw_at_the_border(choose: Choose, base_offset: int) -> bytes:
    """Draw records whose last offset is the last one that fits a segment, or beside it."""
    last = min(base_offset + INT32_MAX + choose.one_of((0, 1, 1, -1)), INT64_MAX - 1)
    first = last - choose.integer(0, 3)
    time = choose.one_of(TIMES)
    records = [Record(offset, time, b"k", None) for offset in range(max(0, first), last + 1)]
    magic = 2 if choose.magic_max == MAGIC_NEWEST and not choose.one_in(4) else choose.integer(0, 1)
    return write_batch(
        records, magic=magic, base_offset=records[0].offset, compression="none", codecs=CODECS
    )


def _draw_damaged_batch(choose: Choose, offset: int) -> bytes:
    """Draw a batch that is damaged once or twice, so maybe with a checksum that is right again."""
    batch = draw_batch(choose, offset)
    for _ in range(choose.integer(1, 2)):
        batch = draw_damaged(choose, batch)
    return batch


def draw_appended(choose: Choose, situation: Situation) -> bytes:
    """Draw what is appended: mostly batches that continue the log."""
    base = base_of(situation)
    offset = next_offset(batches_of(situation), base)
    kind = choose.weighted((24, 6, 2, 1, 1, 1))
    if kind == 1:
        if not choose.one_in(3):
            return draw_at_the_border(choose, base)
        offset = base + INT32_MAX - choose.integer(-2, 12)
    elif kind == 2:
        offset -= choose.integer(1, 20)
    elif kind == 3:
        return choose.one_of((b"", bytes(5), bytes(30)))
    offset = max(min(base, 0), min(offset, NEXT_OFFSET_MAX))
    if kind == 4:
        return _draw_damaged_batch(choose, offset)
    records = draw_batches(choose, offset)
    return records[: choose.integer(1, len(records))] if kind == 5 else records


def _draw_append(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw (largest offset, records, largest timestamp, its offset) of one append."""
    records = draw_appended(choose, situation)
    batches = whole_batches(records)
    last = number_of(batches[-1], "last_offset") if batches else None
    largest = base_of(situation) if last is None else last
    if choose.one_in(12):
        base = base_of(situation)
        largest = clamp64(choose.one_of((largest + 3, base + 2**31, base, largest - 1)))
    timestamp = offset = None
    if choose.one_in(4):
        timestamp, offset = choose.one_of(TIMES), largest
    return largest, records, timestamp, offset


def draw_append(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw one append; a log that is large already mostly gets none."""
    if len(log_of(situation)) > LOG_BYTES_MAX and not choose.one_in(3):
        return base_of(situation), b"", None, None
    return _draw_append(choose, situation)


def draw_source(choose: Choose, situation: Situation) -> bytes:
    """Draw the bytes of a log to copy from, often with a first batch of 61 bytes."""
    if choose.one_in(12):
        return b""
    records = draw_appended(choose, situation)
    if choose.magic_max < MAGIC_NEWEST or choose.boolean():
        return records
    offset = max(0, base_of(situation))
    return write_empty_batch(offset, offset, 1_000) + records


def some_epochs(choose: Choose, situation: Situation) -> Value:
    """Draw the epochs known before a recovery; None for no cache of them."""
    base = base_of(situation)
    if base < 0:
        return None  # no epoch begins there
    return choose.one_of((None, (), ((0, base),), ((0, base), (4, base + 2))))


# --- what is looked for --------------------------------------------------------------------------


def some_offset(choose: Choose, situation: Situation) -> int:
    """Draw an offset: of a batch or beside it, the end, or a border."""
    base, batches = base_of(situation), batches_of(situation)
    kind = choose.weighted((12, 3, 1))
    if kind == 0 and batches:
        batch = choose.one_of(batches)
        offset = number_of(batch, choose.one_of(("base_offset", "last_offset")))
        return clamp64(choose.beside(base if offset is None else offset))
    if kind <= 1:
        return clamp64(choose.beside(choose.one_of((next_offset(batches, base), base))))
    return clamp64(choose.one_of((INT64_MIN, base + INT32_MAX, INT64_MAX, -1)))


def some_timestamp(choose: Choose, situation: Situation) -> int:
    """Draw a timestamp: of a batch or beside it, or another."""
    batches = batches_of(situation)
    if batches and not choose.one_in(6):
        return clamp64(choose.beside(number_of(choose.one_of(batches), "max_timestamp") or 0))
    return choose.one_of((*TIMES, 5_000, INT64_MIN, INT64_MAX))


def several(
    draw: Callable[[Choose, Situation], int],
) -> Callable[[Choose, Situation], tuple[Value, ...]]:
    """Return how some of these are drawn, in any order."""

    def drawn(choose: Choose, situation: Situation) -> tuple[Value, ...]:
        return tuple(draw(choose, situation) for _ in range(choose.integer(0, 6)))

    return drawn


def some_place(choose: Choose, situation: Situation) -> int:
    """Draw a position: mostly where a batch begins or ends."""
    kind = choose.weighted((6, 2, 1))
    if kind == 2:
        return choose.one_of((0, INT32_MAX, len(log_of(situation)) + 20))
    place = choose.one_of(places_of(situation))
    return place if kind == 0 else max(0, choose.beside(place))


def some_max_size(choose: Choose, situation: Situation) -> int:
    """Draw how much to read: around the sizes of batches."""
    places = places_of(situation)
    kind = choose.weighted((6, 3, 1))
    if kind == 0:
        return abs(choose.one_of(places) - choose.one_of(places))
    return choose.integer(0, 300) if kind == 1 else choose.one_of((0, -1, INT32_MAX))


def some_max_position(choose: Choose, situation: Situation) -> int | None:
    """Draw up to where to read; None where that is not known."""
    kind = choose.weighted((5, 5, 1))
    if kind == 0:
        return INT32_MAX
    return some_place(choose, situation) if kind == 1 else choose.one_of((None, -1))


def some_fetch(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw (offset, position) of a fetch; often from the beginning of the log."""
    return some_offset(choose, situation), (
        0 if choose.boolean() else some_place(choose, situation)
    )


def some_fetch_size(choose: Choose, situation: Situation) -> int:
    """Draw the size of a fetch: up to where an index entry points, or beside it, from a batch."""
    index = None if situation.state is None else situation.state.lazy_offset_index.index
    entries = () if index is None else entries_of(index)
    if not entries or choose.one_in(4):
        return some_max_size(choose, situation)
    start = 0 if choose.boolean() else choose.one_of(places_of(situation))
    size = choose.beside(choose.one_of(entries).position - start)
    return within(size, INT32_MIN, INT32_MAX)


def some_roll(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw the parameters of a roll, one of them near its border, or all.

    They are the limits in ms and bytes, and of what comes the largest timestamp, the largest
    offset and the bytes; then the time.
    """
    now = situation.now_ms + choose.integer(0, 50)
    timestamp = some_timestamp(choose, situation)
    coming = choose.integer(0, 200)
    limit_ms, limit_bytes, distance = INT64_MAX, INT32_MAX, 0
    near = choose.weighted((2, 2, 2, 1))
    if near in (0, 3):
        limit_ms = clamp64(choose.beside(_waited_of(situation, timestamp, now)))
    if near in (1, 3):
        limit_bytes = choose.beside(len(log_of(situation)) + coming)
    if near in (2, 3):
        distance = choose.beside(INT32_MAX)
    largest_offset = clamp64(base_of(situation) + distance)
    return limit_ms, limit_bytes, timestamp, largest_offset, coming, now


def _waited_of(situation: Situation, timestamp: int, now: int) -> int:
    """Return how long a segment has waited to be rolled, and its jitter, which lowers the limit."""
    batches = batches_of(situation)
    opened: Any = situation.opened["roll_jitter_ms"]
    jitter = int(opened)
    first = number_of(batches[0], "max_timestamp") if batches else None
    if first is not None and first >= 0:
        return timestamp - first + jitter
    created = 0 if situation.state is None else int(situation.state.created_ms)
    return now - created + jitter


def some_txn_border(choose: Choose, situation: Situation) -> int:
    """Draw an offset at which a transaction of the index begins or ends, or beside it."""
    index = None if situation.state is None else situation.state.txn_index
    entries = index.entries_list() if index is not None and index.is_open else ()
    if not entries or choose.one_in(3):
        return some_offset(choose, situation)
    entry = choose.one_of(entries)
    borders = entry.first_offset, entry.last_offset, entry.last_stable_offset
    return clamp64(choose.beside(choose.one_of(borders)))


def some_txn(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw a completed transaction: (producer id, first offset, last offset, whether aborted)."""
    last = some_offset(choose, situation)
    first = clamp64(last - choose.integer(-1, 30))
    return choose.integer(0, 9), first, last, not choose.one_in(3)


# --- what breaks between two openings ------------------------------------------------------------


def draw_index(choose: Choose, base_offset: int, suffix: str) -> bytes:
    """Draw the index of another segment: entries that rise, and mean other places."""
    entries, relative, value = [], 0, choose.one_of((0, 1_000))
    for _ in range(choose.integer(1, 5)):
        relative += choose.integer(1, 9)
        value += choose.one_of((61, 70, 140, 5_000))
        entries.append((relative, value))
    if suffix == ".index":
        return OFFSET_ENTRY.pack_all(entries)
    if suffix == ".timeindex":
        return TIME_ENTRY.pack_all((value, relative) for relative, value in entries)
    offsets = [clamp64(base_offset + relative) for relative, _ in entries]
    return ABORTED_TXN.pack_all((0, 1, one, one, one) for one in offsets)


def draw_damage_to_files(choose: Choose, situation: Situation) -> tuple[Value, ...]:
    """Draw what happens to files while nothing is open; mostly nothing."""
    if not choose.one_in(4):
        return ()
    return tuple(_draw_one(choose, situation) for _ in range(choose.one_of((1, 1, 2))))


def _draw_one(choose: Choose, situation: Situation) -> Damage:
    kinds = (".log", ".log", ".index", ".timeindex", ".txnindex")
    suffix = choose.one_of(kinds if choose.magic_max == MAGIC_NEWEST else kinds[:4])
    happens = DAMAGES[:4] if suffix == ".log" else DAMAGES
    return draw_broken(choose, suffix, happens, base_of(situation), 400)


def draw_broken(
    choose: Choose, name: str, kinds: tuple[str, ...], base_offset: int, flipped_max: int
) -> Damage:
    """Draw damage of one file; a byte is flipped up to a position."""
    what = choose.one_of(kinds)
    if what == "replaced":
        return name, what, 0, draw_index(choose, base_offset, f".{name.rpartition('.')[2]}")
    if what == "longer":
        size = choose.integer(1, 80)
        return name, what, 0, choose.data(size) if choose.boolean() else bytes(size)
    if what == "flipped":
        return name, what, choose.integer(0, flipped_max), bytes([1 << choose.integer(0, 7)])
    return name, what, choose.integer(1, 90) if what != "removed" else 0, b""


def damages(file: Kind) -> Kind:
    """Return the kind of what happens to files; `file` is how one is named."""
    one = RecordKind(
        file=file,
        what=OneOf(DAMAGES),
        number=Integer(0, SMALL_MAX - 1),
        data=Bytes(SMALL_MAX - 1),
    )
    return Row(Only(one, _flips_one_byte, "a damage that flips bits of one byte"), 8)


def _flips_one_byte(damage: Damage) -> bool:
    return damage[1] != "flipped" or len(damage[3]) == 1


def damaged(
    done: tuple[Damage, ...], stem: str, suffix: str, images: Mapping[str, bytes]
) -> Mapping[str, bytes]:
    """Return the files of a segment as something broke them; a missing one is left alone."""
    after = dict(images)
    for kind, what, number, data in done:
        name = stem + kind + suffix
        if name not in after and what != "replaced":
            continue
        image = after.get(name, b"")
        if what == "removed":
            del after[name]
        elif what == "replaced":
            after[name] = data
        elif what == "longer":
            after[name] = image + data
        elif what == "flipped" and number < len(image):
            flipped = bytes([image[number] ^ data[0]])
            after[name] = image[:number] + flipped + image[number + 1 :]
        elif what in ("cut", "zeros"):
            kept = image[: max(0, len(image) - number)]
            after[name] = kept + (bytes(len(image) - len(kept)) if what == "zeros" else b"")
    return after
