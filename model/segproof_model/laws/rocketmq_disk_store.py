# SPDX-License-Identifier: Apache-2.0
"""The laws of a whole store of RocketMQ as a verifier finds it: log, index, queues, side by side.

Every predicate takes the store's files: names such as `commitlog/`, `index/` and
`consumequeue/TOPIC/QUEUE/` and a file name; a folder without files is such a name alone. Where a
record is damaged the rest of its file is dark, and nothing is asked of what leads there.

With the marker `abort` a broker runs, or was killed. It goes through its log in order and tells the
queues of each message, then the index. So it can leave the end undone, and no more: of the newest
index file the end timestamp, of the last indexed message some keys, and what lies behind the
furthest message that a queue or the index knows. All else was written before, and is asked.

Used by: the harness, the tests of `verify`, the generated pages.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from segproof_model.directory import Directory
from segproof_model.laws.judging import is_rising
from segproof_model.laws.registry import law
from segproof_model.laws.rocketmq_disk import (
    INDEX_NAME,
    SERVICE,
    Entry,
    difference_of,
    entries_of,
    header_of,
    is_empty,
    lies_alone,
)
from segproof_model.rocketmq.key_hash import build_key, index_key_hash
from segproof_model.rocketmq.message import (
    DispatchRequest,
    Message,
    body_checksum,
    check_message_and_return_size,
    dispatch_request_of,
)

COMMIT_LOG = "RocketMQ CommitLog.checkMessageAndReturnSize 4.7.0 to 5.5.1"
BUILD_INDEX = "RocketMQ IndexService.buildIndex 4.7.0 to 5.5.1"
QUEUE = "RocketMQ ConsumeQueue 4.7.0 to 5.5.1"
LOG_NAME = re.compile(r"commitlog/([0-9]{20})")
QUEUE_NAME = re.compile(r"consumequeue/([^/]+)/([0-9]{1,9})/([0-9]{20})")
FOLDER_NAME = re.compile(r"commitlog/|consumequeue/([^/]+/)?|consumequeue/([^/]+)/([0-9]{1,9})/")
LAST_START = 2**63 - 2**31
"""Behind it not all bytes of the longest file have an offset of 63 bits."""
UNIT = struct.Struct(">qiq")
FILLER_SIZE = 2**31 - 1


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the commit log, and how its records end."""

    start: int
    data: bytes
    messages: tuple[tuple[int, Message], ...]
    """With the offset of each in the log."""
    end: int
    """Position behind the last record."""
    is_blank: bool
    """Whether a blank end follows."""

    @property
    def rest(self) -> bytes:
        """What follows the records."""
        return self.data[self.end :]

    @property
    def is_whole(self) -> bool:
        """Whether the records end as they may: at a blank end or in zeros."""
        return self.is_blank or not any(self.rest[:8])


# --- reading


def log_files(store: Directory) -> list[LogFile]:
    """Return the files of the commit log by offset."""
    found = [(match[0], int(match[1])) for match in map(LOG_NAME.fullmatch, store) if match]
    return [_read_log(at, store.read(name) or b"") for name, at in found if at <= LAST_START]


def _read_log(start: int, data: bytes) -> LogFile:
    messages: list[tuple[int, Message]] = []
    position = 0
    while True:
        found = check_message_and_return_size(data, position)
        if not found.success or found.message is None:
            return LogFile(start, data, tuple(messages), position, found.success)
        messages.append((start + position, found.message))
        position += found.size


def written(files: list[LogFile]) -> list[LogFile]:
    """Return the files up to the last one that holds something, one at least if there is one.

    A broker makes the next file, all zeros, before it needs it.
    """
    numbers = [number for number, one in enumerate(files, 1) if any(one.data)]
    return files[: max(numbers, default=1)]


def messages_of(store: Directory) -> dict[int, Message]:
    """Return the records that can be read, by their offsets."""
    return dict(pair for one in log_files(store) for pair in one.messages)


def dark_stretches(store: Directory) -> list[tuple[int, int]]:
    """Return where the log cannot be read: behind damage in a file, and where a file is missing."""
    files = log_files(store)
    found = [(before.start + len(before.data), after.start) for before, after in pairwise(files)]
    files = written(files)
    for number, one in enumerate(files):
        ends_well = one.is_whole if number == len(files) - 1 else one.is_blank
        if not ends_well:
            found.append((one.start + one.end, one.start + len(one.data)))
    return found


def is_dark(stretches: list[tuple[int, int]], offset: int) -> bool:
    """Return whether an offset lies where the log cannot be read."""
    return any(begin <= offset < end for begin, end in stretches)


def keys_of(request: DispatchRequest) -> list[str]:
    """Return the keys of a message that every release indexes, in their order."""
    if request.sys_flag & 12 == 12:
        return []
    unique = [] if request.uniq_key is None else [build_key(request.topic, request.uniq_key)]
    tokens = [token for token in (request.keys or "").split(" ") if token]
    return unique + [build_key(request.topic, token) for token in tokens]


def hashes_of(message: Message) -> list[int]:
    """Return the hashes of the keys of a message that every release indexes."""
    return [index_key_hash(key) for key in keys_of(dispatch_request_of(message))]


def lawful_hashes(message: Message) -> list[int]:
    """Return the hashes that an entry of a message may have: those, and that of its tags."""
    request = dispatch_request_of(message)
    tags = dict(request.properties_map or ()).get("TAGS")
    tag_keys = [build_key(request.topic, f"T#{tags}")] if tags else []
    has_entries = request.sys_flag & 12 != 12
    return hashes_of(message) + [index_key_hash(key) for key in tag_keys if has_entries]


def index_images(store: Directory) -> list[bytes]:
    """Return the index files, in the order of their names."""
    names = [name for name in store if INDEX_NAME.fullmatch(name.removeprefix("index/"))]
    return [store.read(name) or b"" for name in names if name.startswith("index/")]


def judged_entries(store: Directory, hash_slot_num: int) -> Iterator[tuple[bytes, int, Entry]]:
    """Yield (file, index, entry) of what leads into the part of the log that can be read."""
    files, dark = log_files(store), dark_stretches(store)
    for image in index_images(store) if files else ():
        for index, entry in enumerate(entries_of(image, hash_slot_num), 1):
            if entry.phy_offset >= files[0].start and not is_dark(dark, entry.phy_offset):
                yield image, index, entry


def is_running(store: Directory) -> bool:
    """Return whether the broker runs, or was killed."""
    return "abort" in store


def furthest(store: Directory) -> int:
    """Return the largest offset that a queue or the index leads to; -1 if there is none.

    A broker has told queues and index of every message before it.
    """
    ends = [header_of(one).end_phy_offset for one in index_images(store) if not is_empty(one)]
    units = [
        unit for files in queues_of(store).values() for _, data in files for unit in units_of(data)
    ]
    return max([-1, *ends, *(at for at, size, _ in units if (at, size) != (0, FILLER_SIZE))])


def log_end(store: Directory) -> int:
    """Return the offset behind the last record, or behind the last file if it is damaged."""
    files = written(log_files(store))
    if not files:
        return 0
    last = files[-1]
    size = last.end if last.is_whole and not last.is_blank else len(last.data)
    return last.start + size


# --- the log


@law("RMQDISK-23", structure=SERVICE, scope="disk", source="RocketMQ MappedFileQueue")
def log_files_follow(store: Directory) -> bool:
    """The files of the commit log have one length, and each begins where the one before ends; the
    log has one where index or queues have an entry.
    """
    files = log_files(store)
    if not files:
        has_folder = any(name.startswith("commitlog/") for name in store)
        return not has_folder or furthest(store) < 0
    return len({len(one.data) for one in files}) <= 1 and all(
        before.start + len(before.data) == after.start for before, after in pairwise(files)
    )


@law("RMQDISK-24", structure=SERVICE, scope="disk", source=COMMIT_LOG)
def records_are_whole(store: Directory) -> bool:
    """Where the records of a log file end there are zeros or a blank end, no damaged record."""
    return all(one.is_whole or _has_wrong_body(one) for one in log_files(store))


def _has_wrong_body(one: LogFile) -> bool:
    return check_message_and_return_size(one.data, one.end, False).message is not None


@law("RMQDISK-25", structure=SERVICE, scope="disk", source="RocketMQ CommitLog.doAppend")
def records_know_their_place(store: Directory) -> bool:
    """The physical offset in each record is where it lies in the log."""
    return all(message.physical_offset == at for at, message in messages_of(store).items())


@law("RMQDISK-26", structure=SERVICE, scope="disk", source=COMMIT_LOG)
def bodies_have_their_checksum(store: Directory) -> bool:
    """No record ends the records of its file only because its body has another checksum."""
    for one in log_files(store):
        found = check_message_and_return_size(one.data, one.end, False).message
        if found is not None and body_checksum(found.body) != found.body_crc:
            return False
    return True


@law("RMQDISK-27", structure=SERVICE, scope="disk", source="RocketMQ CommitLog.doAppend")
def log_files_end_well(store: Directory) -> bool:
    """The records of a file end with a blank end; those of the last one may end in zeros alone.

    Files behind it that are all zeros do not count.
    """
    files = written(log_files(store))
    for one in files[:-1]:
        if not one.is_blank and not any(one.rest[:8]):
            return False
    return not files or files[-1].is_blank or any(files[-1].rest[:8]) or not any(files[-1].rest)


# --- the index and the log


@law("RMQDISK-28", structure=SERVICE, scope="disk", source=BUILD_INDEX)
def entries_lie_in_the_log(store: Directory, hash_slot_num: int) -> bool:
    """No entry leads behind the end of the commit log."""
    end = log_end(store)
    return all(entry.phy_offset < end for _, _, entry in judged_entries(store, hash_slot_num))


@law("RMQDISK-29", structure=SERVICE, scope="disk", source=BUILD_INDEX)
def entries_lead_to_messages(store: Directory, hash_slot_num: int) -> bool:
    """At the offset of each entry inside the commit log a message begins."""
    messages, end = messages_of(store), log_end(store)
    return all(
        entry.phy_offset in messages or entry.phy_offset >= end
        for _, _, entry in judged_entries(store, hash_slot_num)
    )


@law("RMQDISK-30", structure=SERVICE, scope="disk", source=BUILD_INDEX)
def entries_have_a_key_of_the_message(store: Directory, hash_slot_num: int) -> bool:
    """The hash of each entry is that of a key, or of the tags, of the message that it leads to."""
    messages = messages_of(store)
    return all(
        entry.phy_offset not in messages
        or entry.key_hash in lawful_hashes(messages[entry.phy_offset])
        for _, _, entry in judged_entries(store, hash_slot_num)
    )


def right_entries(store: Directory, hash_slot_num: int) -> Counter[tuple[int, int]]:
    """Return how often each pair of offset and hash is in the index."""
    return Counter(
        (entry.phy_offset, entry.key_hash) for _, _, entry in judged_entries(store, hash_slot_num)
    )


def covered(store: Directory) -> tuple[int, int] | None:
    """Return the offsets of the first and the last message that the index has entries of."""
    headers = [header_of(image) for image in index_images(store) if not is_empty(image)]
    if not headers:
        return None
    begin = min(header.begin_phy_offset for header in headers)
    return begin, max(header.end_phy_offset for header in headers)


@law("RMQDISK-31", structure=SERVICE, scope="disk", source=BUILD_INDEX)
def keys_have_entries(store: Directory, hash_slot_num: int) -> bool:
    """From the first to the last indexed message each key of each message has its entry.

    Of the first one some may be in an index file that has expired, if messages before it have; of
    the last one some may be missing beside `abort`.
    """
    stretch, messages = covered(store), messages_of(store)
    if stretch is None:
        return True
    entries = right_entries(store, hash_slot_num)
    first = min((one.start for one in log_files(store)), default=0)
    for offset, message in messages.items():
        is_inside = stretch[0] < offset <= stretch[1] or offset == stretch[0] <= first
        if offset == stretch[1] and is_running(store):
            continue
        wanted = Counter((offset, each) for each in hashes_of(message))
        if is_inside and any(entries[pair] < often for pair, often in wanted.items()):
            return False
    return True


@law("RMQDISK-32", structure=SERVICE, scope="disk", source=BUILD_INDEX)
def times_are_those_of_the_messages(store: Directory, hash_slot_num: int) -> bool:
    """Begin and end timestamp are the store times of the messages of the first and last entry, and
    each difference behind the first is the seconds from the begin to its message's store time.

    Beside `abort` the end timestamp of the newest file may be that of the entry before.
    """
    messages = messages_of(store)
    newest = index_images(store)[-1:] if is_running(store) else []
    ends = {image: len(entries_of(image, hash_slot_num)) for image in index_images(store)}
    for image, index, entry in judged_entries(store, hash_slot_num):
        message, header = messages.get(entry.phy_offset), header_of(image)
        if message is None or entry.key_hash not in lawful_hashes(message):
            continue
        time = message.store_timestamp
        expected = difference_of(header.begin_timestamp, time)
        is_last = index == ends[image] and image not in newest
        if (index == 1 and time != header.begin_timestamp) or (
            is_last and time != header.end_timestamp
        ):
            return False
        if index > 1 and entry.time_diff != expected:
            return False
    return True


@law("RMQDISK-33", structure=SERVICE, scope="disk", source=BUILD_INDEX)
def index_covers_the_log(store: Directory, hash_slot_num: int) -> bool:
    """No message with keys lies before the first or behind the last message that is indexed.

    Beside `abort` those behind the last may, from the last one on that a queue knows. Of a log that
    lies alone nothing is asked.
    """
    if lies_alone(store):
        return True
    stretch, reached = covered(store), furthest(store)
    for offset, message in messages_of(store).items():
        is_before = stretch is not None and offset < stretch[0]
        is_behind = stretch is None or offset > stretch[1]
        may_come = is_running(store) and offset >= reached
        if hashes_of(message) and (is_before or (is_behind and not may_come)):
            return False
    return True


@law("RMQDISK-34", structure=SERVICE, scope="disk", source=BUILD_INDEX)
def messages_are_indexed_once(store: Directory, hash_slot_num: int) -> bool:
    """No key of a message has more entries than the message has it."""
    entries = right_entries(store, hash_slot_num)
    for offset, message in messages_of(store).items():
        wanted = Counter(lawful_hashes(message))
        if any(entries[offset, each] > often for each, often in wanted.items()):
            return False
    return True


# --- the queues


def queues_of(store: Directory) -> dict[tuple[str, int], list[tuple[int, bytes]]]:
    """Return the files of each topic and queue: where each begins, and its bytes."""
    found: dict[tuple[str, int], list[tuple[int, bytes]]] = {}
    for match in map(FOLDER_NAME.fullmatch, store):
        if match is not None and match[3] is not None:
            found[match[2], int(match[3])] = []
    for match in map(QUEUE_NAME.fullmatch, store):
        if match is not None and int(match[3]) <= LAST_START:
            files = found.setdefault((match[1], int(match[2])), [])
            files.append((int(match[3]), store.read(match[0]) or b""))
    return found


def units_of(data: bytes) -> list[tuple[int, int, int]]:
    """Return the units of one file before the first place that is none."""
    found: list[tuple[int, int, int]] = []
    for offset, size, tags_code in UNIT.iter_unpack(data[: len(data) // 20 * 20]):
        if offset < 0 or size <= 0:
            break
        found.append((offset, size, tags_code))
    return found


@law("RMQDISK-35", structure=SERVICE, scope="disk", source=QUEUE)
def queues_have_whole_units(store: Directory) -> bool:
    """A consume queue is units of 20 bytes without a gap from file to file, and zeros behind; the
    files of all queues have one length, but for those that a crash left empty."""
    queues = queues_of(store).values()
    if len({len(data) for files in queues for _, data in files if data}) > 1:
        return False
    for files in queues:
        for number, (start, data) in enumerate(files):
            units = units_of(data)
            if len(data) % 20 or any(data[20 * len(units) : len(data) // 20 * 20]):
                return False
            if number and start != files[number - 1][0] + len(files[number - 1][1]):
                return False
            if number < len(files) - 1 and 20 * len(units) < len(data):
                return False
    return True


@law("RMQDISK-36", structure=SERVICE, scope="disk", source=QUEUE)
def queues_rise(store: Directory) -> bool:
    """The log offsets in a consume queue rise; units that fill the place before it do not count."""
    for files in queues_of(store).values():
        units = [unit for _, data in files for unit in units_of(data)]
        if not is_rising([at for at, size, _ in units if (at, size) != (0, FILLER_SIZE)]):
            return False
    return True


@law("RMQDISK-37", structure=SERVICE, scope="disk", source=QUEUE)
def units_lead_to_their_records(store: Directory) -> bool:
    """Each unit leads to the record of its topic, queue and place, and each record of a topic with
    queues has its unit; where no topic has one, each record.

    Not prepared or rolled back ones; of what has expired, or is dark, nothing is asked, and of a
    log that lies alone no unit. Beside `abort` units may be missing behind the last one, from the
    furthest message on that a queue or the index knows. There is a queue if the checkpoint's time
    for them is above 0.
    """
    checkpoint = store.read("checkpoint") or b""
    is_known = len(checkpoint) >= 40 and int.from_bytes(checkpoint[8:16], signed=True) > 0
    queues, dark = queues_of(store), dark_stretches(store)
    if log_files(store) and is_known and not queues:
        return False
    first = min((one.start for one in log_files(store)), default=0)
    records = _records_of_queues(store)
    for queue, files in queues.items() if log_files(store) else ():
        for start, data in files:
            for number, (at, size, _) in enumerate(units_of(data), start // 20):
                is_asked = size != FILLER_SIZE and at >= first and not is_dark(dark, at)
                if is_asked and records.get(queue, {}).get((number, at)) != size:
                    return False
    topics, reached = {topic for topic, _ in queues}, furthest(store)
    if not topics and not lies_alone(store):
        topics = {topic for topic, _ in records}
    for queue, own in records.items():
        begin, end = _places_of(queues.get(queue, []))
        for place, at in own if queue[0] in topics else ():
            may_come = place >= end and is_running(store) and at >= reached
            if not (begin <= place < end or may_come):
                return False
    return True


def _records_of_queues(store: Directory) -> dict[tuple[str, int], dict[tuple[int, int], int]]:
    """Return the records of each queue: place and offset in the log, and the size."""
    found: dict[tuple[str, int], dict[tuple[int, int], int]] = {}
    for at, message in messages_of(store).items():
        if message.sys_flag & 12 in (0, 8):
            own = found.setdefault((message.topic, message.queue_id), {})
            own[message.queue_offset, at] = message.total_size
    return found


def _places_of(files: list[tuple[int, bytes]]) -> tuple[int, int]:
    """Return the place of the first unit of a queue, and the one behind the last."""
    begin = files[0][0] // 20 if files else 0
    ends = [start // 20 + len(units_of(data)) for start, data in files if units_of(data)]
    return begin, max([begin, *ends])


@law("RMQDISK-39", structure=SERVICE, scope="disk", source="RocketMQ MappedFileQueue.load")
def folders_hold_their_files(store: Directory) -> bool:
    """The folders of the log and of queues hold files whose names are 20 digits, and nothing else.

    The names are offsets: no byte of a file may lie behind 2^63 - 1.
    """
    for name in store:
        if name.startswith(("commitlog/", "consumequeue/")):
            match = LOG_NAME.fullmatch(name) or QUEUE_NAME.fullmatch(name)
            is_lawful = match is not None and int(match[match.lastindex or 0]) <= LAST_START
            if not is_lawful and not FOLDER_NAME.fullmatch(name):
                return False
    return True
