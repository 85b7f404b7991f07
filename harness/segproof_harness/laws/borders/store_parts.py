# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws of a store's other parts: its layout, `config`, timers, another log."""

import struct
from collections.abc import Sequence

from segproof.findings import Severity
from segproof.layouts.rocketmq import BATCH_UNIT, TIMER_CHECK, TIMER_ENTRY, TIMER_SLOT
from segproof.rocketmq.message import blank_head
from segproof_harness.laws.borders.border import DIRECTORY, Border, Due, Files, Folder, Link
from segproof_harness.laws.borders.store_files import (
    END,
    ENTRIES,
    LOG,
    LOG_BYTES,
    OFFSETS,
    RECORDS,
    SIZE,
    SLOTS,
    SOUND,
    TIME,
    TOPIC,
    UNITS,
    Entry,
    border,
    index_file,
    log_of,
    queue_of,
    record,
    store,
    unit,
)

WARNING, NOTE = Severity.WARNING, Severity.NOTE
TOPICS, MAPPING = "config/topics.json", "config/topicQueueMapping.json"
OFFSETS_FILE = "config/consumerOffset.json"
NEXT_LOG = f"commitlog/{LOG_BYTES:020d}"
TIMERS = f"timerlog/{0:020d}"
CHECK, WHEEL = "config/timercheck", "timerwheel"
DLEDGER = f"dledger-n0/data/{0:020d}"
BATCH_QUEUE = f"batchconsumequeue/{TOPIC}/0/{0:020d}"


def _config(bound: str, lawful: bytes, unlawful: bytes, position: int | None) -> Border:
    files = [{**SOUND, MAPPING: text} for text in (lawful, unlawful)]
    return border("RMQDISK-43", bound, files[0], files[1], Due(MAPPING, position))


def _topics(count: int) -> Files:
    """Return a store whose topics have a number of read queues."""
    text = f'{{"topicConfigTable":{{"T":{{"readQueueNums":{count}}}}}}}'
    return {**SOUND, TOPICS: text.encode()}


def _typed(kind: str) -> Files:
    """Return a store whose topic, which has an ordinary queue, has a `queue.type`."""
    text = f'{{"topicConfigTable":{{"T":{{"attributes":{{"queue.type":"{kind}"}}}}}}}}'
    return {**SOUND, TOPICS: text.encode()}


def _group_at(offset: int, end: str = "", **parts: bytes) -> Files:
    """Return a store of three messages in one queue, with the offset of a consumer group."""
    text = f'{{"offsetTable":{{"T@g":{{0:{offset}}}}}}}'
    return {**store(**parts), OFFSETS_FILE + end: text.encode()}


def _beyond(end: str = "") -> Due:
    """Return the finding of an offset of 4, where the queue ends at 3."""
    return Due(OFFSETS_FILE + end, 25, "at most 3", 4, WARNING)


def _beside(
    bound: str, lawful: Files, unlawful: Files, due: Sequence[Severity],
    still: Sequence[Severity] = (),
) -> Border:  # fmt: skip
    """Return a border of the store with another one beside it.

    `due` and `still` are the severities of what is told of both.
    """
    files = [
        {**SOUND, **{f"../twin/{name}": data for name, data in one.items()}}
        for one in (lawful, unlawful)
    ]
    places = [("", f"{DIRECTORY}/../twin"), ("../twin", f"{DIRECTORY}/../store")]
    told = [
        [
            Due(name, None, None, other, severity)
            for (name, other), severity in zip(places, severities, strict=False)
        ]
        for severities in (due, still)
    ]
    return Border(
        "RMQDISK-58", bound, files[0], files[1], told[0], told[1], below="..", folder="store",
        options={"hash_slots": SLOTS},
        not_by_the_model="it is given the files of one store",
    )  # fmt: skip


def _of_another_log(wrong: int, right: int = 0) -> Files:
    """Return a store whose index has so many entries that lead to no message, and right ones."""
    entries = [*ENTRIES[:right], *(Entry(1, OFFSETS[2] + 1 + number) for number in range(wrong))]
    return store(index=index_file(sorted(entries, key=lambda one: one.offset), room=20))


def _queue_of_another_log(wrong: int) -> Files:
    return store(queue=queue_of(*(unit(1 + number) for number in range(wrong))))


def _queue_beyond(beyond: int) -> Files:
    """Return a store whose queue has `beyond` units that lead beyond the last record."""
    return store(queue=queue_of(*UNITS, *(unit(END + number) for number in range(beyond))))


def _wrong_beyond(beyond: int) -> Files:
    """Return a store whose last units lead beyond the last record, and its records have theirs."""
    wrong = [unit(END + number) for number in range(beyond)]
    return store(queue=queue_of(*UNITS[: len(UNITS) - beyond], *wrong))


def _timers(*offsets: int, rest: bytes = b"") -> Files:
    """Return a store with timers for messages at these offsets of the log."""
    entries = (TIMER_ENTRY.pack(52, -1, 0, 1, 1, at, SIZE, 0).ljust(52, b"\0") for at in offsets)
    timers = {TIMERS: (b"".join(entries) + rest).ljust(520, b"\0")}
    return {**SOUND, **timers, CHECK: _timercheck(52 * len(offsets))}


def _timercheck(flushed: int, read_to: int = 9) -> bytes:
    """Return what is known of a timer log that is durable up to a position."""
    return TIMER_CHECK.pack(read_to, flushed, 0).ljust(4096, b"\0")


def _waiting(last: int, read_to: int = 1) -> Files:
    """Return a store with two timers of the time 2, and a slot that leads to a position."""
    slot = TIMER_SLOT.pack(1, 0, last, 2, 0)
    return {**_timers(0, 0), CHECK: _timercheck(104, read_to), WHEEL: slot}


def _next_file(*records: tuple[str, int]) -> Files:
    """Return the store with a second file of the log, of topics and queue numbers: nothing else
    knows it."""
    blank = blank_head(LOG_BYTES - END)
    later, at = b"", LOG_BYTES
    for topic, number in records:
        later += record(number, at + len(later), topic=topic)
    return {**store(log=log_of(*RECORDS, blank)), NEXT_LOG: log_of(later)}


ROOM = (LOG_BYTES - END) // 91
"""At most this many messages fit after the last one of the first file."""
OTHERS = [("U", ROOM + 5), ("U", ROOM + 6), ("U", ROOM + 7), ("U", ROOM + 8)]
OWN = [("T", 3), ("T", 4), ("T", 5)]


def _batches(offset: int) -> Files:
    """Return a log whose second file goes on in no queue, and a queue of batches into the log."""
    log = {name: _next_file(*OTHERS[:3])[name] for name in (LOG, NEXT_LOG)}
    return {**log, BATCH_QUEUE: unit(offset)[:12].ljust(BATCH_UNIT.size, b"\0")}


BORDERS = (
    border(
        "RMQDISK-56", "two messages of another queue follow the known ones, or three",
        _next_file(*OTHERS[:2]), _next_file(*OTHERS[:3]), Due(NEXT_LOG, 0, None, 3, WARNING),
    ),
    border(
        "RMQDISK-56", "three messages of another queue and three that go on, or four",
        _next_file(*OWN, *OTHERS[:3]), _next_file(*OWN, *OTHERS),
        Due(NEXT_LOG, 0, None, 4, WARNING),
    ),
    border(
        "RMQDISK-56", "the files before have room for messages of another queue, or for one less",
        _next_file(("U", ROOM), ("U", ROOM + 1), ("U", ROOM + 2)),
        _next_file(("U", ROOM + 1), ("U", ROOM + 2), ("U", ROOM + 3)),
        Due(NEXT_LOG, 0, None, 3, WARNING),
    ),
    border(
        "RMQDISK-56", "the numbers of another queue begin with 0, or beyond the room",
        _next_file(("U", 0), ("U", 1), ("U", 2)), _next_file(*OTHERS[:3]),
        Due(NEXT_LOG, 0, None, 3, WARNING),
    ),
    border(
        "RMQDISK-56", "the numbers go on, or one lower",
        _next_file(*OWN), _next_file(("T", 2), ("T", 3), ("T", 4)),
        Due(NEXT_LOG, 0, None, 3, WARNING),
    ),
    border(
        "RMQDISK-56", "the only queue, of batches, leads into the second file, or to offset 0",
        _batches(LOG_BYTES), _batches(0), Due(NEXT_LOG, 0, None, 3, WARNING),
    ),
    border(
        "RMQDISK-42", "a folder of DLedger is empty, or has the log",
        store(log=bytes(LOG_BYTES)),
        {**store(log=bytes(LOG_BYTES)), DLEDGER: struct.pack(">ii", 1, 256) + bytes(4088)},
        Due("dledger-n0", severity=WARNING),
    ),
    _config("an object is closed, or not", b"{}", b"{", 1),
    _config("an object has its bracket, or nothing", b"{}", b"", None),
    _config("zeros follow the object, or one letter", b"{}\0\0", b"{}\0x", 3),
    _config("the last of two values ends with the object, or a comma more",
            b'{"a":1,}', b'{"a":1,,}', 7),
    border(
        "RMQDISK-44", "7 entries are wrong, or 8", _of_another_log(7), _of_another_log(8),
        Due("index", None, None, 8, WARNING),
    ),
    border(
        "RMQDISK-44", "9 entries are wrong and 3 are right, or 10",
        _of_another_log(9, 3), _of_another_log(10, 3), Due("index", None, None, 10, WARNING),
    ),
    border(
        "RMQDISK-44", "7 units are wrong, or 8", _queue_of_another_log(7),
        _queue_of_another_log(8), Due("consumequeue", None, None, 8, WARNING),
    ),
    border(
        "RMQDISK-52", "no unit leads beyond the last record, or one that nothing contradicts",
        SOUND, _queue_beyond(1), Due(LOG, END, f"messages up to offset {END}", END),
    ),
    border(
        "RMQDISK-52", "2 units of numbers that records have lead beyond the last record, or 3",
        _wrong_beyond(2), _wrong_beyond(3), Due(LOG, END, f"messages up to offset {END + 2}", END),
    ),
    border(
        "RMQDISK-45", "the timer leads to the last message, or to the end of the log",
        _timers(OFFSETS[2]), _timers(END), Due(TIMERS, 0, f"below {END}", END),
    ),
    border(
        "RMQDISK-45", "the second timer leads to the last byte of the log, or to its end",
        _timers(0, END - 1), _timers(0, END), Due(TIMERS, 52, f"below {END}", END),
    ),
    border(
        "RMQDISK-45", "both files of timers have one length, or one has a byte less",
        {**_timers(0), f"timerlog/{520:020d}": bytes(520)},
        {**_timers(0), f"timerlog/{520:020d}": bytes(519)},
        Due(f"timerlog/{520:020d}", None, 520, 519, WARNING),
    ),
    border(
        "RMQDISK-45", "timercheck knows the end of the timer log, or a byte more",
        _timers(0), {**_timers(0), CHECK: _timercheck(53)},
        Due("timerlog", None, 53, 52, WARNING),
    ),
    border(
        "RMQDISK-45", "a slot leads to the last timer, or to the byte after it",
        _waiting(52), _waiting(104), Due("timerlog", None, 156, 104, WARNING),
    ),
    border(
        "RMQDISK-45", "a slot leads to a timer that waits, or to a byte before it",
        _waiting(52), _waiting(51), Due(WHEEL, None, None, 2, WARNING),
    ),
    border(
        "RMQDISK-45", "the timers without a slot are read up to their time, or up to one before",
        _waiting(51, 2), _waiting(51, 1), Due(WHEEL, None, None, 2, WARNING),
    ),
    border(
        "RMQDISK-57", "the topic has one read queue, or none",
        _topics(1), _topics(0), Due(TOPICS, None, "more than 0", 0, WARNING),
    ),
    border(
        "RMQDISK-57", "the type of the topic is that of its queue, or that of queues of batches",
        _typed("SimpleCQ"), _typed("BatchCQ"), Due(TOPICS, None, None, 1, WARNING),
    ),
    border(
        "RMQDISK-57", "one other file of a broker's state is there, or two",
        {**SOUND, "config/delayOffset.json": b"{}"},
        {**SOUND, "config/delayOffset.json": b"{}", "config/consumerOffset.json": b"{}"},
        Due(TOPICS, None, None, 1, WARNING),
    ),
    border(
        "RMQDISK-39", "the number of a queue has 9 digits, or 10",
        {**SOUND, "consumequeue/T/999999999": Folder()},
        {**SOUND, "consumequeue/T/1000000000": Folder()},
        Due("consumequeue/T/1000000000", severity=WARNING),
        not_by_the_model="it is given no folder without a file",
    ),
    border(
        "RMQDISK-39", "a second folder is that of the queue 1, or its name has a zero before 0",
        {**SOUND, f"consumequeue/{TOPIC}/1": Folder()},
        {**SOUND, f"consumequeue/{TOPIC}/00/{0:020d}": SOUND[f"consumequeue/{TOPIC}/0/{0:020d}"]},
        Due(f"consumequeue/{TOPIC}/00", severity=WARNING),
    ),
    border(
        "RMQDISK-39", "beside the queues of a topic there is a folder of a queue, or a file",
        {**SOUND, "consumequeue/T/1": Folder()}, {**SOUND, "consumequeue/T/1": b""},
        Due("consumequeue/T/1", severity=WARNING),
    ),
    border(
        "RMQDISK-39", "the next file of the log is in its folder, or in a folder there",
        {**SOUND, NEXT_LOG: bytes(LOG_BYTES)},
        {**SOUND, f"commitlog/d/{LOG_BYTES:020d}": log_of(record(3, LOG_BYTES))},
        Due("commitlog/d"),
    ),
    border(
        "RMQDISK-25", "two files of the log have their own names, or each other's",
        {**SOUND, NEXT_LOG: log_of(record(3, LOG_BYTES))},
        {**SOUND, LOG: log_of(record(3, LOG_BYTES)), NEXT_LOG: SOUND[LOG]},
        [
            Due(LOG, 0, f"{LOG_BYTES:020d}", f"{0:020d}"),
            Due(NEXT_LOG, 0, f"{0:020d}", f"{LOG_BYTES:020d}"),
        ],
    ),
    border(
        "RMQDISK-25", "the file after the last one is empty, or a copy of that one",
        {**SOUND, NEXT_LOG: bytes(LOG_BYTES)}, {**SOUND, NEXT_LOG: SOUND[LOG]},
        Due(NEXT_LOG, 0, f"{0:020d}", f"{LOG_BYTES:020d}"),
    ),
    _beside(
        "the first message of a store beside this one is a millisecond later, or the same",
        {LOG: log_of(record(0, 0, time=TIME + 1))}, {LOG: log_of(RECORDS[0])}, (NOTE, NOTE),
    ),
    _beside(
        "the file beside this one begins at the next offset, or at the same",
        {NEXT_LOG: log_of(record(0, LOG_BYTES))}, {LOG: log_of(*RECORDS)}, (NOTE, NOTE),
    ),
    _beside(
        "the copy lacks the last message, or the one before it",
        {LOG: log_of(*RECORDS[:2])},
        {LOG: log_of(RECORDS[0], bytes(SIZE), RECORDS[2])}, (NOTE, WARNING), (NOTE, NOTE),
    ),
    _beside(
        "the copy has one message more, or another last one",
        {LOG: log_of(*RECORDS, record(3, END))},
        {LOG: log_of(*RECORDS[:2], record(2, 2 * SIZE, time=TIME))},
        (WARNING, WARNING), (NOTE, NOTE),
    ),
    _beside(
        "both have the bytes of the file to which a broker appends, or the file itself",
        {LOG: log_of(*RECORDS)}, {LOG: Link(f"../../store/{LOG}")},
        (WARNING, WARNING), (NOTE, NOTE),
    ),
    border(
        "RMQDISK-54", "a group is at the end of its queue, or one further",
        _group_at(3), _group_at(4), _beyond(),
    ),
    border(
        "RMQDISK-54", "the offset in the backup is the end of the queue, or one more",
        _group_at(3, ".bak"), _group_at(4, ".bak"), _beyond(".bak"),
    ),
    border(
        "RMQDISK-54", "the end of the queue is known by the log alone",
        _group_at(3, queue=queue_of()), _group_at(4, queue=queue_of()), _beyond(),
    ),
)  # fmt: skip
