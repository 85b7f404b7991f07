# SPDX-License-Identifier: Apache-2.0
"""A whole store on disk as the laws see it: log, index, queues, and how they belong together.

Files are by their names in the store, such as `commitlog/`, `index/` and
`consumequeue/TOPIC/QUEUE/` and a file name; a folder without files is such a name alone. After a
damaged record the rest of its file is unreadable, and entries and units that lead there are not
judged.

With the marker `abort` a broker runs, or was killed. It goes through its log in order and tells the
queues of each message, then the index. So it can leave the end undone, and no more: of the newest
index file the end timestamp, of the last indexed message some keys, and what lies behind the
furthest message that a queue or the index knows. Everything else was written before, and is judged.
"""

import re
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import pairwise, takewhile

from segproof_model.laws.rocketmq.broker.config_json import read_config
from segproof_model.laws.rocketmq.broker.store_checkpoint import stored
from segproof_model.laws.rocketmq.broker.store_times import FAR, Times, filled, likely_time
from segproof_model.laws.rocketmq.format.index_entries import (
    Entry,
    IndexBytes,
    kept_hash,
    seconds_between,
)
from segproof_model.laws.rocketmq.format.index_file_on_disk import INDEX_NAME
from segproof_model.rocketmq.format.message import Message

LOG_NAME = re.compile(r"commitlog/([0-9]{20})")
QUEUE = r"0|[1-9][0-9]{0,8}"
"""How a broker writes the number of a queue."""
QUEUE_NAME = re.compile(rf"consumequeue/([^/]+)/({QUEUE})/([0-9]{{20}})")
FOLDER_NAME = re.compile(rf"commitlog/|consumequeue/([^/]+/)?|consumequeue/([^/]+)/({QUEUE})/")
LAST_START = 2**63 - 2**31
"""Behind it not all bytes of the longest file have an offset of 63 bits."""
TIMER_LOG_NAME = re.compile(r"timerlog/([0-9]{20})")
TIMER = struct.Struct(">iqiqiqiiq")
"""An entry of the timer log; its sixth field is an offset of the commit log."""
OF_ROCKSDB = re.compile(r"(.+)/(?:(?:MANIFEST|OPTIONS)-[0-9]{6,}|[0-9]{6,}\.(?:sst|blob))")
"""Names that RocksDB alone gives to files."""
MANIFEST = re.compile(r"(.+)/MANIFEST-[0-9]{6,}")
"""The path of a manifest. Each database of RocksDB has one, and a file CURRENT beside it."""
DLEDGER_NAME = re.compile(r"dledger-[^/]+/data/[0-9]{20}")
DLEDGER_DATA = re.compile(r"[^/]+/data/[0-9]{20}")
DLEDGER_PART = re.compile(r"([^/]+)/(data|index)/[0-9]{20}")
"""Parts of a group; a folder of any name that has both is one."""
FAR_OFFSET = 2**63
"""Above each offset of a log."""
UNIT = struct.Struct(">qiq")
FILLER = (0, 2**31 - 1)
"""Offset and size of a unit that fills the place before a queue."""
INNER_BATCH = 128
"""The flag of a message that contains a batch."""
GUESS_FILE = "segproof-index.guessed"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
"""The topic in which a broker keeps delayed messages until their time comes."""
WAITING_MAX = 64
"""Messages that a broker may have put into no queue yet, if none is there."""
INTEGER = re.compile(r"([-+]?[0-9]{1,30})[BSL]?")
"""How a file of `config` writes a number."""
Queue = tuple[str, int]
"""Topic and number."""


class LogFile:
    """One file of the commit log, and the end of its records."""

    def __init__(self, start: int, data: bytes, room: int | None = None) -> None:
        """`room` are the bytes up to the next file, which may begin before the end of this one."""
        self.start, self.data = start, data
        self.behind = start + len(data)
        """Offset of the first byte of the next file."""
        self.messages: dict[int, Message] = {}
        """By the offset of each in the log."""
        position = 0
        while (found := Message.check_message_and_return_size(data, position)).message is not None:
            self.messages[start + position] = found.message
            position += found.size
        self.end = start + position
        """Offset after the last record."""
        self.rest = data[position:]
        """What follows the records."""
        blank_end = position + int.from_bytes(self.rest[:4], "big")
        takes_the_rest = blank_end in (len(data), room)
        self.is_blank = found.success and takes_the_rest and not self._hides_messages(position)
        """Whether that is a blank end, which takes the rest of the file and hides no message."""
        self.is_whole = self.is_blank or not any(self.rest[:8])
        """Whether the records end as they may: at a blank end or in zeros."""
        self.unchecked = Message.check_message_and_return_size(data, position, False).message
        """The record that follows, if only its checksum is wrong."""

    @property
    def numbers(self) -> dict[Queue, list[int]]:
        """The numbers of its messages that are in a queue, and know their place, in order; without
        batches: each takes several."""
        found: dict[Queue, list[int]] = {}
        for at, one in sorted(self.messages.items()):
            if one.sys_flag & 140 in (0, 8) and one.physical_offset == at:
                found.setdefault((one.topic, one.queue_id), []).append(one.queue_offset)
        return found

    @property
    def hosts(self) -> set[bytes]:
        """The store hosts of these."""
        own = (one for one in self.messages.values() if one.sys_flag & 12 in (0, 8))
        return {one.store_host for one in own}

    def _hides_messages(self, blank: int) -> bool:
        """Return whether a record with its own offset lies behind a blank end, as young as the last
        one before it. What an earlier recovery has cut off is older.
        """
        least = max(self.messages.items())[1].store_timestamp if self.messages else -1
        for position in range(blank, len(self.data) - 8):
            found = Message.check_message_and_return_size(self.data, position)
            message = found.message
            if message is None or position + found.size > len(self.data) - 8:
                continue
            is_own = message.physical_offset == self.start + position
            if is_own and message.store_timestamp >= least:
                return True
        return False


def _has(log_files: Mapping[str, bytes], at: int, size: int) -> bool:
    """Return whether a message is at an offset; of this size, if it is above 0."""
    for name, data in log_files.items():
        head = data[at - int(name[-20:]) :][:8] if at >= int(name[-20:]) else b""
        if head[4:] in (b"\xda\xa3\x20\xa7", b"\xda\xa3\x20\xab"):
            found = int.from_bytes(head[:4], "big", signed=True)
            if 0 < found < 2**31 - 1 and size in (0, found):
                return True
    return False


class StoreFiles:
    """The files of a store, by what they are."""

    def __init__(self, files: Mapping[str, bytes], hash_slot_num: int = 1) -> None:
        self.files = dict(sorted(files.items()))
        self.is_running = "abort" in files
        """Whether the broker runs, or was killed."""
        known = {"commitlog", "consumequeue", "index", "checkpoint", "abort"}
        known |= {"config", "timerlog"}
        self.parts = {name.partition("/")[0] for name in files} & known
        """The existing parts of a store."""
        self.lies_alone = self.parts == {"commitlog"}
        """Whether only a commit log is there, as where a broker keeps it apart."""
        checkpoint = files.get("checkpoint", b"")
        self.times = stored(checkpoint, 3) if len(checkpoint) >= 40 else (-(2**63),) * 3
        """The checkpoint's times of log, queues and index; the least times without a checkpoint."""
        self.index = [
            IndexBytes(data, hash_slot_num)
            for name, data in self.files.items()
            if name.startswith("index/") and INDEX_NAME.fullmatch(name[6:])
        ]
        """The index files, in the order of their names."""
        self.filled = [one for one in self.index if not one.is_empty]
        """Those that count entries."""
        starts = {name: int(name[10:]) for name in self.files if LOG_NAME.fullmatch(name)}
        rooms = {at: behind - at for at, behind in pairwise(starts.values())}
        self.log = [
            LogFile(at, self.files[name], rooms.get(at))
            for name, at in starts.items()
            if at <= LAST_START
        ]
        """The files of the commit log by offset."""
        numbers = [number for number, one in enumerate(self.log, 1) if any(one.data)]
        self.written = self.log[: max(numbers, default=1)]
        """The files up to the last one with records, at least one if a file exists: a broker
        preallocates the next file, all zeros.
        """
        self.first = self.log[0].start if self.log else 0
        """The offset at which the log begins."""

    # --- the log -------------------------------------------------------------------------------

    @cached_property
    def messages(self) -> dict[int, Message]:
        """The records that can be read, by their offsets."""
        return {at: message for one in self.log for at, message in one.messages.items()}

    @cached_property
    def end(self) -> int:
        """The offset after the last record, or after the last file if it is damaged."""
        if not self.log:
            return 0
        last = self.written[-1]
        return last.behind if last.is_blank or not last.is_whole else last.end

    @cached_property
    def dark(self) -> list[tuple[int, int]]:
        """The unreadable parts of the log: after damage in a file, and missing files."""
        damaged = [one for one in self.written[:-1] if not one.is_blank]
        damaged += [one for one in self.written[-1:] if not one.is_whole]
        missing = [(before.behind, after.start) for before, after in pairwise(self.log)]
        if self.lacks_its_end:
            missing.append((self.end_of_files, FAR_OFFSET))
        return missing + [(one.end, one.behind) for one in damaged]

    @cached_property
    def end_of_files(self) -> int:
        """The offset after the last file of the log, if it is as long as the longest one."""
        return self.log[-1].start + max(len(one.data) for one in self.log) if self.log else 0

    @cached_property
    def lacks_its_end(self) -> bool:
        """Whether index and queues lead to more than two offsets beyond the last file."""
        entries = {
            entry.phy_offset
            for file in self.filled
            if file.header.end_phy_offset >= self.end_of_files
            for entry in file.entries
        }
        units = {
            offset
            for files in self.queues.values()
            for _, data in files
            for offset, size, _ in UNIT.iter_unpack(data[: len(data) // 20 * 20])
            if size > 0 and size != FILLER[1]
        }
        beyond = {one for one in entries | units if one >= self.end_of_files}
        return bool(self.log) and len(beyond) > 2

    @cached_property
    def databases(self) -> set[str]:
        """The folders that are databases of RocksDB, or what is left of one: these have no folder
        inside.
        """
        found = [one for one in map(OF_ROCKSDB.fullmatch, self.files) if one]
        whole = {
            one[1]
            for one in found
            if MANIFEST.fullmatch(one[0]) and f"{one[1]}/CURRENT" in self.files
        }
        above = {
            "/".join(folders[:length])
            for folders in (name.split("/")[:-1] for name in self.files)
            for length in range(len(folders))
        }
        return whole | {one[1] for one in found} - above

    @property
    def has_queues_in_rocksdb(self) -> bool:
        """Whether a database of RocksDB contains the queues."""
        return any(name.startswith("consumequeue") for name in self.databases)

    @property
    def timer_log(self) -> list[bytes]:
        """The files of the timer log."""
        return [data for name, data in self.files.items() if TIMER_LOG_NAME.fullmatch(name)]

    @cached_property
    def timers(self) -> list[tuple[list[int], bytes]]:
        """For each file of the timer log the offsets of the messages of its entries, and the bytes
        after these.
        """
        found = []
        for data in self.timer_log:
            entries = TIMER.iter_unpack(data[: len(data) // TIMER.size * TIMER.size])
            are_timers = takewhile(lambda one: one[0] == TIMER.size and 0 <= one[2] < 16, entries)
            offsets = [one[5] for one in are_timers]
            found.append((offsets, data[len(offsets) * TIMER.size :]))
        return found

    @cached_property
    def is_dledger(self) -> bool:
        """Whether the messages are in a log of DLedger: index and queues lead beyond the usual one,
        or to at least three messages that the usual one lacks, or to none but these, or it has no
        message.
        """
        parts = {one.groups() for one in map(DLEDGER_PART.fullmatch, self.files) if one}
        has_group = any(DLEDGER_NAME.fullmatch(name) for name in self.files)
        has_group |= any({(one, "data"), (one, "index")} <= parts for one, _ in parts)
        is_empty = not any(any(one.data[:8]) for one in self.log)
        is_beyond = is_empty or self.furthest >= self.end_of_files
        return has_group and (is_beyond or self._leads_into_dledger)

    @property
    def _leads_into_dledger(self) -> bool:
        """Whether units, or else index entries, lead to messages that DLedger alone has."""
        groups = {name: data for name, data in self.files.items() if DLEDGER_DATA.fullmatch(name)}
        own = {name: data for name, data in self.files.items() if LOG_NAME.fullmatch(name)}
        starts = [(int(name[-20:]), len(data)) for name, data in groups.items()]
        units = [(at, size) for own_units in self.units.values() for _, at, size in own_units]
        entries = [(entry.phy_offset, 0) for file in self.index for entry in file.entries]
        for leads in (units, entries):
            inside = [
                (at, size)
                for at, size in leads
                if any(start <= at < start + length for start, length in starts)
            ]
            if inside:
                right = sum(_has(groups, *one) and not _has(own, *one) for one in inside)
                return right >= 3 or right == len(inside)
        return False

    def is_asked(self, offset: int) -> bool:
        """Return whether the log can be read at an offset, or ends before it."""
        is_dark = any(begin <= offset < end for begin, end in self.dark)
        return bool(self.log) and offset >= self.first and not is_dark

    # --- the index -----------------------------------------------------------------------------

    @cached_property
    def entries(self) -> list[tuple[IndexBytes, Entry]]:
        """The entries that lead into the part of the log that can be read, with their files."""
        found = [(file, entry) for file in self.index for entry in file.entries]
        return [one for one in found if self.is_asked(one[1].phy_offset)]

    @cached_property
    def pairs(self) -> Counter[tuple[int, int]]:
        """How often each pair of offset and hash is among them."""
        return Counter((entry.phy_offset, entry.key_hash) for _, entry in self.entries)

    @property
    def begin(self) -> int:
        """The offset of the first message that is indexed; -1 without any."""
        return min((one.header.begin_phy_offset for one in self.filled), default=-1)

    @property
    def end_of_index(self) -> int:
        """The offset of the last message that is indexed; -1 without any."""
        return max((one.header.end_phy_offset for one in self.filled), default=-1)

    @property
    def matching_entries(self) -> tuple[int, int]:
        """How many index entries that lead into the log are right, and how many are wrong."""
        return self._counted(
            (
                entry.phy_offset,
                (message := self.messages.get(entry.phy_offset)) is not None
                and entry.key_hash in hashes_of(message, tags=True),
            )
            for _, entry in self.entries
        )

    @property
    def matching_units(self) -> tuple[int, int]:
        """How many units of queues that lead into the log are right, and how many are wrong."""
        return self._counted(
            (at, self.records_of_queues[queue].get((place, at)) == size)
            for queue, place, at, size in self._asked_units
        )

    @property
    def led_to(self) -> set[int]:
        """The offsets that index entries and units lead to, where the log can be read or ends
        before them; units that stand for a lost message are left out.
        """
        units = {at for _, _, at, _ in self._asked_units}
        return units | {entry.phy_offset for _, entry in self.entries}

    @property
    def matching_in_files(self) -> list[tuple[int, int]]:
        """For each file of the log, how many offsets that entries and units lead to in it have a
        message of the size that the unit says, and how many do not. An entry that leads to the
        begin of a file does not count: each file has a message there.
        """
        sizes = {at: size for _, _, at, size in self._asked_units}
        found = []
        for one in self.log:
            inside = [
                at for at in self.led_to
                if one.start < at < one.behind or (at == one.start and at in sizes)
            ]  # fmt: skip
            right = sum(
                at in self.messages
                and sizes.get(at, self.messages[at].total_size) == self.messages[at].total_size
                for at in inside
            )
            found.append((right, len(inside) - right))
        return found

    @property
    def _asked_units(self) -> list[tuple[Queue, int, int, int]]:
        """Queue, place, offset and size of each unit of `led_to`."""
        found = []
        for queue, own in self.units.items():
            places = {place for place, _ in self.records_of_queues[queue]}
            units = own + [one for one in self.stand_ins[queue] if one[0] in places]
            found += [(queue, *one) for one in units if self.is_asked(one[1])]
        return found

    def _counted(self, found: Iterable[tuple[int, bool]]) -> tuple[int, int]:
        """Return how many are right, and how many are wrong, by the offset that each leads to.

        Where most of those before the end of the log are right, later ones do not count.
        """
        counts = Counter((is_right, at >= self.end) for at, is_right in found)
        right, inside = counts[True, False], counts[False, False]
        return right, inside if right > inside else inside + counts[False, True]

    # --- store times ---------------------------------------------------------------------------

    @cached_property
    def likely_times(self) -> dict[int, int]:
        """The store time of each message by its offset, or the likely one if that is impossible."""
        stored = [message.store_timestamp for message in self.messages.values()]
        sides = filled(stored, -FAR), filled(stored[::-1], FAR)[::-1]
        earlier, later = (one[:1] * 3 + one + one[-1:] * 3 for one in sides)
        likely = {}
        for number, (at, message) in enumerate(self.messages.items()):
            before, behind = earlier[number : number + 3], later[number + 4 : number + 7]
            if number == 0 or len(stored) < 3:
                before = [-FAR] * 3
            if number == len(stored) - 1 or len(stored) < 3:
                behind = [FAR] * 3
            limits = [sorted(before)[1], before[-1], sorted(behind)[1], behind[0]]
            around = (min(limits), max(limits))
            likely[at] = likely_time(message, around, self._told_times(at, message))
        return likely

    def _told_times(self, at: int, message: Message) -> Times | None:
        """Return the first and last store time that all entries of a message tell."""
        told = [
            times
            for file, entry in self.entries
            if entry.phy_offset == at and entry.key_hash in hashes_of(message, tags=True)
            if (times := self._told_by(file, entry)) is not None
        ]
        first = max((one[0] for one in told), default=-FAR)
        last = min((one[1] for one in told), default=FAR)
        return (first, last) if told and first <= last else None

    def _told_by(self, file: IndexBytes, entry: Entry) -> Times | None:
        begin, end, seconds = (
            file.header.begin_timestamp,
            file.header.end_timestamp,
            entry.time_diff,
        )
        if not 0 < begin < FAR:
            return None
        if entry.number == 1:
            return begin, begin
        is_open = self.is_running and file.image == self.index[-1].image
        is_last = entry.number == len(file.entries) and not is_open and abs(end) < FAR
        if is_last and seconds == seconds_between(begin, end):
            return end, end
        if not 0 <= seconds < 2**31 - 1:
            return None
        least = begin + 1000 * seconds
        return least if seconds else -FAR, least + 999

    # --- the queues ----------------------------------------------------------------------------

    @cached_property
    def queues(self) -> dict[Queue, list[tuple[int, bytes]]]:
        """The files of each topic and queue: where each begins, and its bytes."""
        found: dict[Queue, list[tuple[int, bytes]]] = defaultdict(list)
        for name, data in self.files.items():
            folder, file = FOLDER_NAME.fullmatch(name), QUEUE_NAME.fullmatch(name)
            if folder is not None and folder[3] is not None:
                found[folder[2], int(folder[3])] += []
            if file is not None and int(file[3]) <= LAST_START:
                found[file[1], int(file[2])].append((int(file[3]), data))
        return dict(found)

    @cached_property
    def units(self) -> dict[Queue, list[tuple[int, int, int]]]:
        """Place, offset and size of each unit of each queue that leads to its own message."""
        return {queue: found for queue, (found, _) in self._units.items()}

    @cached_property
    def stand_ins(self) -> dict[Queue, list[tuple[int, int, int]]]:
        """The units that may stand for lost messages: those of a filler's size, and those that lead
        where the next one in the file leads.
        """
        return {queue: found for queue, (_, found) in self._units.items()}

    @cached_property
    def _units(self) -> dict[Queue, tuple[list[tuple[int, int, int]], list[tuple[int, int, int]]]]:
        """Units and stand-ins of each queue, without fillers."""
        found = {}
        for queue, files in self.queues.items():
            own: list[tuple[int, int, int]] = []
            stand_ins: list[tuple[int, int, int]] = []
            for start, data in files:
                units = units_of(data)
                for place, (unit, following) in enumerate(pairwise([*units, FILLER]), start // 20):
                    is_stand_in = unit == following or unit[1] == FILLER[1]
                    if unit != FILLER:
                        (stand_ins if is_stand_in else own).append((place, *unit))
            found[queue] = (own, stand_ins)
        return found

    @cached_property
    def tags_codes(self) -> dict[Queue, list[tuple[int, int, int]]]:
        """Place, offset and tags code of each unit of each queue whose size is its record's."""
        found: dict[Queue, list[tuple[int, int, int]]] = defaultdict(list)
        for queue, files in self.queues.items():
            for start, data in files:
                whole = UNIT.iter_unpack(data[: 20 * len(units_of(data))])
                for place, (at, size, code) in enumerate(whole, start // 20):
                    message = self.messages.get(at)
                    if message is not None and message.total_size == size:
                        found[queue].append((place, at, code))
        return found

    def places_of(self, queue: Queue) -> tuple[int, int]:
        """Return the number of the first unit of a queue, and the number after the last."""
        files = self.queues.get(queue) or [(0, b"")]
        begin = files[0][0] // 20
        ends = [start // 20 + len(units_of(data)) for start, data in files if units_of(data)]
        return begin, max([begin, *ends])

    @cached_property
    def records_of_queues(self) -> dict[Queue, dict[tuple[int, int], int]]:
        """Return the size of each record of each queue, by its place and its offset in the log."""
        found: dict[Queue, dict[tuple[int, int], int]] = defaultdict(dict)
        for at, message in self.messages.items():
            if message.sys_flag & 12 in (0, 8):
                own = found[message.topic, message.queue_id]
                own[message.queue_offset, at] = message.total_size
        return found

    @property
    def queues_of_batches(self) -> set[Queue]:
        """The queues with a message that contains a batch, which has more than one place."""
        found = [one for one in self.messages.values() if one.sys_flag & INNER_BATCH]
        return {(one.topic, one.queue_id) for one in found}

    @cached_property
    def known_topics(self) -> set[str]:
        """The topics that exist as `config` says: those of `topics.json`, else of the offsets of
        consumers.
        """
        found = {topic for topic, _ in _tables(self.files, "topics.json", "topicConfigTable")}
        return found or {topic for (topic, _), _ in stored_offsets(self.files)}

    @cached_property
    def furthest(self) -> int:
        """The largest offset that a queue or the index leads to; -1 without any.

        A broker has sent every message before it to queues and index.
        """
        offsets = [at for units in self.units.values() for _, at, _ in units]
        return max([-1, self.end_of_index, *offsets])

    def is_due(self, offset: int) -> bool:
        """Return whether queues and index must contain a message."""
        return not self.is_running or offset < self.furthest


def stored_offsets(files: Mapping[str, bytes]) -> list[tuple[Queue, int]]:
    """Return the offsets that `config` has of consumer groups and of levels of delayed messages;
    level n is queue n - 1. Those of static topics are left out.
    """
    static = _tables(files, "topicQueueMapping.json", "topicQueueMappingTable")
    found = []
    for key, queues in _tables(files, "consumerOffset.json", "offsetTable"):
        topic, _, group = key.partition("@")
        if topic and group and topic not in dict(static) and isinstance(queues, dict):
            found += [((topic, _integer(one)), _integer(at)) for one, at in queues.items()]
    for level, at in _tables(files, "delayOffset.json", "offsetTable"):
        number = _integer(level)
        found.append(((SCHEDULE_TOPIC, number and number - 1), _integer(at)))
    return [
        ((topic, queue), at)
        for (topic, queue), at in found
        if queue is not None and queue >= 0 and at is not None
    ]


def _tables(files: Mapping[str, bytes], name: str, table: str) -> list[tuple[str, object]]:
    """Return keys and values of a table in a file of `config` and in its backup."""
    found: list[tuple[str, object]] = []
    for one in (name, f"{name}.bak"):
        content = read_config(files.get(f"config/{one}", b"{}"))
        rows = content.get(table) if isinstance(content, dict) else None
        found += rows.items() if isinstance(rows, dict) else []
    return found


def _integer(text: object) -> int | None:
    """Return the integer that a text is, which a letter may follow; None if it is none."""
    found = INTEGER.fullmatch(text) if isinstance(text, str) else None
    return int(found[1]) if found else None


def units_of(data: bytes) -> list[tuple[int, int]]:
    """Return offset and size of the units of one file before the first invalid unit."""
    units = [unit[:2] for unit in UNIT.iter_unpack(data[: len(data) // 20 * 20])]
    return list(takewhile(lambda unit: unit[0] >= 0 and unit[1] > 0, units))


def hashes_of(message: Message, tags: bool = False) -> list[int]:
    """Return the hashes of the keys of a message that every release indexes; and of its tags."""
    known = message.properties_map or {}
    own = [known["UNIQ_KEY"]] if "UNIQ_KEY" in known else []
    keys = own + [token for token in known.get("KEYS", "").split(" ") if token]
    keys += [f"T#{known['TAGS']}"] if tags and "TAGS" in known else []
    return [kept_hash(f"{message.topic}#{key}") for key in keys if message.sys_flag & 12 != 12]
