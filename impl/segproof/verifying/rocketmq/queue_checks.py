# SPDX-License-Identifier: Apache-2.0
"""The consume queues of a store: their units, in order, and against the commit log.

A broker that runs, or was killed, may not have entered the newest messages yet. It enters them in
the order of the log. So each message before one that a queue or the index knows must be entered.

Cost: one byte of memory for each unit that is there, where the log is at hand; names of LOST_MAX
  queues, and as many topics, that are in the log alone.
Laws: RMQDISK-35 to RMQDISK-37, RMQDISK-39.
Not covered: queues that other queues' messages are dispatched to (names with %LMQ%), whose units
  lead to messages of other topics; the extension files of queues; queues kept in RocksDB; the units
  of queues of batches, whose files are only looked for; a topic without any queue beside
  others, as one that was deleted, is only noted.
"""

import posixpath
from collections import Counter, defaultdict
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from segproof.commands import quoted_path
from segproof.counts import plural, verb
from segproof.files import Files, status_of
from segproof.findings import Severity
from segproof.hints import Hint, changes, reads
from segproof.reading.batch_queues import BATCH_QUEUES, batch_topics
from segproof.reading.config_offsets import NAME_MAX, known_topics
from segproof.reading.folder_names import names_of
from segproof.reading.log_kinship import Kin, Kinship
from segproof.reading.rows import Int64Array
from segproof.rocketmq.consume_queue import (
    SPOKEN_FOR_OTHERS,
    UNIT_BYTES,
    UNITS,
    is_queue_name,
    queue_number,
)
from segproof.rocketmq.message import has_queue_place
from segproof.stretches.rocketmq.witnesses import WRONG_TIMES
from segproof.verifying.rocketmq.expired_files import BEFORE_LOG_HINT, before_log
from segproof.verifying.rocketmq.log_records import (
    EMPTY_FILE,
    LogBlock,
    LogRecords,
)
from segproof.verifying.rocketmq.lost_end import LedBeyond
from segproof.verifying.rocketmq.queue_walk import (
    FILLER_SIZE,
    PIECE_UNITS,
    Queue,
    QueueFile,
    Units,
    Walk,
    has_unit_now,
    leads,
)
from segproof.verifying.rocketmq.store_checks import (
    Inside,
    is_folder,
    look_inside,
    numbered_files,
    report_stray,
)
from segproof.verifying.rocketmq.tags_checks import check_tags_codes
from segproof.wording.reporting import Described, Reporter
from segproof.wording.rules import DECLARED, REMAKE_STORE, declare

declare("index-service", Severity.ERROR, REMAKE_STORE, "RMQDISK-37")

NEAR_UNITS = 64
"""Units that lie no further apart are read together."""
PLACES_MAX = 1000
"""Wrong units of one queue whose right record is kept, so that a finding can name it."""
LOST_MAX = 10_000
"""Queues without a folder, and topics without any queue, that are told apart; the messages of
further ones are counted together."""
WAITING_MAX = 64
"""Messages that a broker beside `abort` may have put into no queue yet, if no queue and no index is
there: it enters each within milliseconds."""
TOPICS_NAMED = 3
NO_BATCHES = reads(
    "look for the folder batchconsumequeue in lost+found, in a backup or on a slave: no verb of"
    " segproof has queues of batches in what it saves unless they are here, and at ordinary queues"
    " of such a topic a broker ends its start"
)
BESIDE_ITS_QUEUE = reads(
    "keep it as it is, and compare its files with those of the folder that a broker opens (`cmp`):"
    " they are a copy of these, or of an older state, or the queue of another store. See"
    " what RMQDISK-37 says of the messages that the broker's queue lacks"
)


def _if_deleted(words: str) -> Hint:
    """Return what to do about messages without a queue, unless the words say why."""
    return DECLARED["RMQDISK-37"].hint.after(
        f"nothing if {words}: a broker removes the queues, and the messages go with the files of"
        " the log; else "
    )


def _to_its_number(path: str, opened: str) -> Hint:
    """Return the hint that copies a queue to the folder that a broker opens."""
    own, place = quoted_path(path), quoted_path(opened)
    return changes(
        f"copy it to its place, the name that a broker opens, with `test ! -e {place} &&"
        f" cp -a {own} {place}`, and verify again; leave this folder as it is until the broker"
        " serves these messages",
        only_if="this folder is a queue of this store, and nobody renamed it on purpose",
        if_wrong="the broker reads older units, or those of another store: where the next verify"
        " tells an error that this one did not tell, remove the copy again",
        copy_step="stop the broker and copy the store away",
    )


class QueueChecks:
    """All queues of a store; takes the blocks of the log, if there is one."""

    def __init__(self, store: str, files: Files, reporter: Reporter, is_running: bool) -> None:
        self._store = store
        self._folder = posixpath.join(store, "consumequeue")
        self._files = files
        self._reporter = reporter
        self._is_running = is_running
        self.is_whole = True
        """Whether each folder that should be there could be looked into."""
        self._batches = batch_topics(store, files)
        self._has_queues = False
        self._listed: set[str] = set()
        """The folders of topics when the reading began."""
        self._queues: dict[tuple[str, int], Queue] = {}
        self._topics: dict[str, str] = {}
        """The folders of the topics that have a queue."""
        self.furthest = -1
        """The largest offset in the log that a unit of any queue leads to."""
        self._reached = -1
        """The same of queues and index."""
        self._records: LogRecords | None = None
        self._time = 0
        """The checkpoint's time for queues."""
        self._folderless = 0
        """Queues without a folder beside others of their topic."""
        self._lost: Counter[str] = Counter()
        """The messages of each topic that has no queue; those of too many under no name."""
        self._last_lost = -1
        """The offset of the last of them."""
        self._lengths: dict[str, int] = {}
        """Of each file of a queue."""
        self.kinship = Kinship()
        """How many units that lead into the log are right; known at the end."""
        self.beyond = LedBeyond()
        self._expired = 0
        """Units that lead to what lies before the log."""

    def check(self, with_log: bool) -> None:
        """Find all queues and judge them by themselves."""
        for topic in self._folders(self._folder):
            self._listed.add(topic.name)
            for one in self._folders(topic.path):
                number = queue_number(one.name)
                if number is not None and is_queue_name(one.name):
                    self._queue(Queue(topic.name, number, one.path), topic.path, with_log)
                elif number is not None:
                    self._report_misnamed(one.path, posixpath.join(topic.path, str(number)))
                else:
                    words = "RocketMQ passes over a folder that is no number"
                    report_stray(one.path, self._reporter, words, Severity.WARNING)
        times = Counter(self._lengths.values())
        usual = max(times, key=lambda size: (times[size], size), default=0)
        for path, size in self._lengths.items():
            if not size:
                self._report_empty(path)
            elif size != usual:
                self._reporter.at(path).add(
                    "RMQDISK-35",
                    f"it has {size} bytes and the other files of queues have {usual}: RocketMQ"
                    " loads files of one length, and ends its start at another",
                    position=min(size, usual),
                    expected=usual,
                    actual=size,
                )

    def _report_misnamed(self, path: str, opened: str) -> None:
        """Report the folder of a queue whose number has another form in its name."""
        number, name = posixpath.basename(opened), posixpath.basename(path)
        words = f"of the name {name} a broker reads the number {number}, and opens {opened}"
        if status_of(self._files, opened) is not None:
            words += ", which is here too: no broker reads what is in this folder"
            report_stray(path, self._reporter, words, Severity.WARNING, BESIDE_ITS_QUEUE)
            return
        words += (
            ", which is not here: the queue is empty there, and the messages that the units here"
            " lead to can't be consumed"
        )
        report_stray(path, self._reporter, words, Severity.ERROR, _to_its_number(path, opened))

    def _report_empty(self, path: str) -> None:
        """Report a file of 0 bytes, unless a broker has given it its length meanwhile."""
        status = status_of(self._files, path)
        if status is not None and not status.size_bytes:
            self._reporter.at(path).add(
                "RMQDISK-35",
                f"it has 0 bytes: {EMPTY_FILE}",
                position=0,
                severity=Severity.WARNING,
                hint=REMAKE_STORE.after(
                    "nothing for 5.1.4 and later, if it is the last file of its queue and each"
                    " message has its unit (RMQDISK-37); else "
                ),
            )

    def _folders(self, path: str) -> list[Inside]:
        """Return the folders in a folder; report what else is there."""
        found = []
        for one in look_inside(path, self._files, self._reporter):
            if one.status is not None and one.status.is_regular:
                words = "RocketMQ passes over a file beside folders"
                report_stray(one.path, self._reporter, words, Severity.WARNING)
            elif is_folder(one, self._reporter):
                found.append(one)
            else:
                self.is_whole = False
        return found

    def _queue(self, queue: Queue, topic_folder: str, with_log: bool) -> None:
        found, unread = numbered_files(queue.folder, self._files, self._reporter)
        queue.queue_files = [QueueFile(*one) for one in found]
        queue.is_whole = not unread
        Walk(queue, self._files, self._reporter).check()
        queue.firsts = np.array([one.first for one in queue.queue_files], np.int64)
        queue.stops = np.array([one.stop for one in queue.queue_files], np.int64)
        self._has_queues = True
        self._lengths |= {one.path: one.size_bytes for one in queue.queue_files}
        self.furthest = max(self.furthest, queue.furthest)
        if not with_log or SPOKEN_FOR_OTHERS in queue.topic:
            return
        for one in queue.queue_files:
            one.seen = np.zeros(one.units, np.bool_)
        self._queues[queue.topic, queue.queue_id] = queue
        self._topics[queue.topic] = topic_folder

    def queue(self, topic: str, queue_id: int) -> Queue | None:
        """Return a queue that has a folder, or a message in the log beside queues of its topic."""
        return self._queues.get((topic, queue_id))

    def compare_with(self, records: LogRecords, time: int, reached: int) -> None:
        """Say what `add` and `finish` will compare the queues with.

        `time` is the checkpoint's for queues; `reached` the last offset that queues or index know.
        """
        self._records, self._time, self._reached = records, time, reached

    def add(self, block: LogBlock) -> None:
        """Compare the records of a block with their units."""
        places: dict[tuple[str, int], list[int]] = defaultdict(list)
        for place, request in enumerate(block.requests):
            if has_queue_place(request.sys_flag):
                places[request.topic or "", block.queue_ids[place]].append(place)
        for key, rows in places.items():
            queue = self._queues.get(key)
            if queue is None and key[0] in self._topics and self._folderless < LOST_MAX:
                folder = posixpath.join(self._topics[key[0]], str(key[1]))
                queue = self._queues[key] = Queue(*key, folder)
                self._folderless += 1
            if queue is not None:
                self._compare(queue, block, rows)
            elif SPOKEN_FOR_OTHERS not in key[0] and key[0] not in self._batches.with_files:
                self._lose(key[0], [block.offsets[row] for row in rows])

    def _lose(self, topic: str, offsets: list[int]) -> None:
        """Count records without a queue; for the newest ones a broker that runs may make it yet."""
        is_due = not self._is_running or self._reached < 0
        lost = [one for one in offsets if is_due or one < self._reached]
        if lost:
            is_named = topic in self._lost or len(self._lost) < LOST_MAX
            self._lost[topic if is_named else ""] += len(lost)
            self._last_lost = lost[-1]

    def _compare(self, queue: Queue, block: LogBlock, rows: list[int]) -> None:
        wanted = np.array([block.requests[row].consume_queue_offset for row in rows], np.int64)
        offsets = np.array([block.offsets[row] for row in rows], np.int64)
        sizes = np.array([block.requests[row].msg_size for row in rows], np.int64)
        self._lacking(queue, wanted, offsets)
        requests = [block.requests[row] for row in rows]
        order = np.argsort(wanted, kind="stable")
        wanted, offsets, sizes = wanted[order], offsets[order], sizes[order]
        lows, highs = np.searchsorted(wanted, queue.firsts), np.searchsorted(wanted, queue.stops)
        for at in np.flatnonzero(lows < highs).tolist():
            one, inside = queue.queue_files[at], slice(lows[at], highs[at])
            places = wanted[inside] - one.first
            units = self._read(one, places)
            is_right = (units["commit_log_offset"] == offsets[inside]) & (
                units["size"] == sizes[inside]
            )
            one.seen[places[is_right]] = True
            if self._records is not None:
                self._records.met.add(offsets[inside][is_right], are_right=True)
            own = order[inside][is_right]
            check_tags_codes(
                one.path, one.first, places[is_right], units["tags_code"][is_right],
                [requests[row] for row in own], self._reporter,
            )  # fmt: skip
            for row in np.flatnonzero(~is_right)[: PLACES_MAX - len(queue.elsewhere)].tolist():
                record = int(offsets[inside][row]), int(sizes[inside][row])
                queue.elsewhere[int(wanted[inside][row])] = record

    def _lacking(self, queue: Queue, wanted: Int64Array, offsets: Int64Array) -> None:
        """Count the records that lie outside the queue."""
        is_before = wanted < queue.first
        behind = np.flatnonzero(wanted >= queue.stop)
        queue.lacking += int(np.count_nonzero(is_before)) + len(behind)
        if len(behind) and queue.lacks is None:
            queue.lacks = int(wanted[behind[0]]), int(offsets[behind[0]])
        if is_before.any():
            queue.lacks_before = int(offsets[is_before].max())

    def _read(self, one: QueueFile, places: Int64Array) -> Units:
        """Return units of a file by their places, which rise; zeros where it was cut meanwhile."""
        found = np.zeros(len(places), UNITS)
        with closing(self._files.open(one.path)) as file:
            done = 0
            for near in np.split(places, np.flatnonzero(np.diff(places) > NEAR_UNITS) + 1):
                first, count = int(near[0]), int(near[-1] - near[0]) + 1
                data = file.pread(count * UNIT_BYTES, first * UNIT_BYTES)
                data = data.ljust(count * UNIT_BYTES, b"\0")
                found[done : done + len(near)] = np.frombuffer(data, UNITS)[near - first]
                done += len(near)
        return found

    def finish(self) -> None:
        """Report units that no record has accounted for, and records without a unit."""
        records = self._records
        assert records is not None
        self.kinship = self._compared(records)
        if self.kinship.kin is Kin.OTHER:
            return
        if self.is_whole:
            self._report_lost(records, self._time)
        for queue in self._queues.values():
            if queue.is_whole and queue.lacking:
                self._report_lacking(queue, records)
            for one in queue.queue_files:
                for first in range(0, one.units, PIECE_UNITS):
                    part = one.seen[first : first + PIECE_UNITS]
                    self._unseen(queue, one, np.flatnonzero(~part) + first, records)
        if self._expired:
            self._reporter.at(self._folder).add(
                "RMQDISK-37",
                f"{plural(self._expired, 'unit', 'leads', 'lead')} to messages before the first one"
                f" of the commit log, {before_log(records)}",
                actual=self._expired,
                severity=Severity.NOTE,
                hint=reads(f"nothing where log files expire: a file of a queue {BEFORE_LOG_HINT}"),
            )

    def _compared(self, records: LogRecords) -> Kinship:
        """Return how many units that lead into the log are right."""
        found = Kinship()
        files = [(queue, one) for queue in self._queues.values() for one in queue.queue_files]
        found.right = sum(int(np.count_nonzero(one.seen)) for _, one in files)
        if sum(one.units for _, one in files) <= (WRONG_TIMES + 1) * found.right:
            return found
        for queue, one in files:
            for first in range(0, one.units, PIECE_UNITS):
                places = np.flatnonzero(~one.seen[first : first + PIECE_UNITS]) + first
                if len(places):
                    units = self._read(one, places)
                    wrong = self._wrong(queue, one, places, units, records)
                    is_beyond = wrong & (units["commit_log_offset"] >= records.end)
                    found.inside += int(np.count_nonzero(wrong & ~is_beyond))
                    found.beyond += int(np.count_nonzero(is_beyond))
        return found

    def _report_lost(self, records: LogRecords, time: int) -> None:
        """Report records whose topics have no queue, or that the store has no queue at all."""
        if self._is_running:  # some may have been made meanwhile
            batches = batch_topics(self._store, self._files).with_files
            for topic in {*names_of(self._folder, self._files)} - self._listed | batches:
                self._lost.pop(topic, None)
            if self._reached < 0 and self._lost.total() <= WAITING_MAX:
                self._lost.clear()
        is_there = bool(self._lost) and self._last_lost >= records.first_now()
        if is_there:
            self._report_batches({*self._lost} & self._batches.topics)
            is_there = bool(self._lost)
        is_due = time > 0 and not self._batches.topics
        if not self._has_queues and (is_due or is_there):
            are = plural(self._lost.total(), "message", "is", "are")
            words = f"{are} in the commit log, and no queue is here"
            words += f" but those in {BATCH_QUEUES}" * bool(self._batches.with_files)
            if is_due:
                words = f"the checkpoint calls queues durable up to {time}, and there are none"
            self._reporter.at(self._folder).add(
                "RMQDISK-37",
                f"{words}: no message of the log can be consumed until they are made new",
                actual=time,
                severity=Severity.WARNING,
                hint=_if_deleted("every topic was deleted"),
            )
        elif is_there:
            known = known_topics(self._store, self._files)
            self._report_topics({*self._lost} & known, is_known=True)
            self._report_topics({*self._lost} - known, is_known=False)

    def _report_batches(self, topics: set[str]) -> None:
        """Report topics with the type of queues of batches that have none, and forget them."""
        if not topics:
            return
        count = sum(self._lost.pop(one) for one in topics)
        names = ", ".join(one[:NAME_MAX] for one in sorted(topics)[:TOPICS_NAMED])
        self._reporter.at(posixpath.join(self._store, BATCH_QUEUES), shown_by=self._store).add(
            "RMQDISK-37",
            f"{plural(count, 'message', 'is', 'are')} in the commit log, and no queue of their"
            f" topics is here; these are {len(topics)}, such as {names}, with the queue.type"
            " BatchCQ: the messages cannot be consumed without these queues",
            actual=count,
            severity=Severity.WARNING,
            hint=NO_BATCHES,
        )

    def _report_topics(self, topics: set[str], *, is_known: bool) -> None:
        """Report topics whose messages have no queue, though other topics have queues."""
        if not topics:
            return
        count = sum(self._lost[one] for one in topics)
        names = ", ".join(one[:NAME_MAX] for one in sorted(topics)[:TOPICS_NAMED] if one)
        words = (
            f"{plural(count, 'message', 'is', 'are')} in the commit log, and no queue of their"
            f" topics is here; these are {len(topics)}, such as {names}"
        )
        if is_known:
            words += (
                f". The files in config know {verb(len(topics), 'this topic', 'these topics')}: the"
                " messages cannot be consumed until their queues are made new"
            )
        self._reporter.at(self._folder).add(
            "RMQDISK-37",
            words,
            actual=count,
            severity=Severity.WARNING if is_known else Severity.NOTE,
            hint=_if_deleted(
                "these topics were deleted after these messages, and created again"
                if is_known
                else "these topics were deleted"
            ),
        )

    def _report_lacking(self, queue: Queue, records: LogRecords) -> None:
        """Report records without a unit, but for those that expired while the log was read."""
        if queue.lacks is None and queue.lacks_before < records.first_now():
            return
        is_late = self._is_running and queue.lacks_before < records.first_now()
        if is_late and queue.lacks is not None and queue.lacks[1] < self._reached:
            is_late = has_unit_now(queue, queue.lacks[0], self._files)
        path = queue.queue_files[-1].path if queue.queue_files else queue.folder
        are, have = verb(queue.lacking, "is", "are"), verb(queue.lacking, "has", "have")
        self._reporter.at(path).add(
            "RMQDISK-37",
            f"{plural(queue.lacking, 'message')} of this queue {are} in the commit log, and {have}"
            " no unit here" + (": the broker makes them when it runs" if is_late else ""),
            actual=queue.lacking,
            severity=Severity.NOTE if is_late else Severity.WARNING,
        )

    def _are_lost(
        self, queue: Queue, one: QueueFile, places: Int64Array, units: Units
    ) -> NDArray[np.bool_]:
        """Return which units stand for a message that the log does not have."""
        if len(queue.elsewhere) >= PLACES_MAX:  # no more places are known
            return np.zeros(len(places), np.bool_)
        behind = self._read(one, np.minimum(places + 1, one.units - 1))
        is_alike = (units["commit_log_offset"] == behind["commit_log_offset"]) & (
            units["size"] == behind["size"]
        )
        is_alike &= places + 1 < one.units
        has_record = np.isin(places + one.first, list(queue.elsewhere))
        are_lost: NDArray[np.bool_] = (is_alike | (units["size"] == FILLER_SIZE)) & ~has_record
        return are_lost

    def _wrong(
        self, queue: Queue, one: QueueFile, places: Int64Array, units: Units, records: LogRecords
    ) -> NDArray[np.bool_]:
        """Return which units lead into the log, and to no record of their place."""
        offsets = units["commit_log_offset"].astype(np.int64)
        are_wrong: NDArray[np.bool_] = leads(units) & ~self._are_lost(queue, one, places, units)
        are_wrong &= (offsets >= records.log.min_offset) & ~records.is_dark(offsets)
        return are_wrong

    def _unseen(
        self, queue: Queue, one: QueueFile, places: Int64Array, records: LogRecords
    ) -> None:
        """Report units that lead to no record of their place, as far as the log can tell."""
        if not len(places):
            return
        units = self._read(one, places)
        offsets = units["commit_log_offset"].astype(np.int64)
        self._expired += int(np.count_nonzero(leads(units) & (offsets < records.log.min_offset)))
        wrong = np.flatnonzero(self._wrong(queue, one, places, units, records))
        self.beyond.add(offsets[wrong][offsets[wrong] >= records.end])
        records.met.add(offsets[wrong][offsets[wrong] < records.end], are_right=False)

        def describe(row: int) -> Described:
            number, offset = one.first + int(places[wrong[row]]), int(offsets[wrong[row]])
            wanted = queue.elsewhere.get(number)
            record = "no record of this queue is there"
            if wanted is not None:
                record = f"the record of this place lies at {wanted[0]} and has {wanted[1]} bytes"
            return Described(
                f"the unit {number} leads to {int(units['size'][wrong[row]])} bytes at offset"
                f" {offset}, and {record}",
                None if wanted is None else wanted[0],
                offset,
            )

        self._reporter.at(one.path).add_rows("RMQDISK-37", places[wrong] * UNIT_BYTES, describe)
