# SPDX-License-Identifier: Apache-2.0
"""The laws of a store on disk: checkpoint, log, index and queues side by side.

Laws about entries judge the `followed` store: an index file whose chains can't be followed counts
as empty. Laws about missing entries judge an `entire` store, whose files can all be followed.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, pairwise

from segproof_model.laws.arithmetic import in_order, is_rising
from segproof_model.laws.register import law
from segproof_model.laws.rocketmq.broker import store_views as read
from segproof_model.laws.rocketmq.broker.config_json import CONFIG_NAME, is_config
from segproof_model.laws.rocketmq.broker.store_config import BatchQueues, config_is_complete
from segproof_model.laws.rocketmq.broker.store_timers import TimerFiles
from segproof_model.laws.rocketmq.broker.store_views import LogFile, StoreFiles
from segproof_model.laws.rocketmq.format.index_entries import seconds_between
from segproof_model.laws.rocketmq.format.index_file_on_disk import INDEX_NAME
from segproof_model.rocketmq.broker.message_store import MessageStore
from segproof_model.rocketmq.format.key_hash import hash_code

INDEX_SERVICE = "RocketMQ IndexService 4.7.0 to 5.5.1"
BUILD_INDEX = "RocketMQ IndexService.buildIndex 4.7.0 to 5.5.1"
COMMIT_LOG = "RocketMQ CommitLog.checkMessageAndReturnSize 4.7.0 to 5.5.1"
QUEUE = "RocketMQ ConsumeQueue 4.7.0 to 5.5.1"
READ_NAMES = (
    "commitlog", "index", "consumequeue", "checkpoint", "abort", "timerlog", read.GUESS_FILE,
)  # fmt: skip
"""What of a store segproof reads, beside its lock file and the JSON in `config`."""
MESSAGE_BYTES_MIN = 91
BLANK_TIMER = bytes.fromhex("cbd43194")
"""The magic of the entry that takes the rest of a file of timers."""


# --- index files beside each other, the checkpoint, the marker of a running broker ----------------


@law("RMQDISK-17", MessageStore, INDEX_SERVICE)
def files_follow_each_other(store: StoreFiles) -> bool:
    """In the order of names each index file begins at or after the end of the previous one."""
    ends = [(one.header.begin_phy_offset, one.header.end_phy_offset) for one in store.filled]
    return all(before[1] <= after[0] for before, after in pairwise(ends))


@law("RMQDISK-18", MessageStore, INDEX_SERVICE)
def files_have_one_length(store: StoreFiles) -> bool:
    """All index files of a store have the same length."""
    return len({len(one.image) for one in store.index}) <= 1


@law("RMQDISK-19", MessageStore, INDEX_SERVICE)
def earlier_files_are_full(store: StoreFiles) -> bool:
    """Every index file but the last one is full."""
    return all(one.header.index_count >= one.room for one in store.index[:-1])


@law("RMQDISK-20", MessageStore, "RocketMQ StoreCheckpoint")
def checkpoint_is_sound(store: StoreFiles) -> bool:
    """A store with a log or queues has a checkpoint, unless the log lies alone; it has 4096 bytes,
    and none of its three times is negative."""
    checkpoint = store.files.get("checkpoint")
    if checkpoint is None:
        return store.lies_alone or store.parts.isdisjoint({"commitlog", "consumequeue"})
    return len(checkpoint) == 4096 and min(store.times) >= 0


@law("RMQDISK-21", MessageStore, "RocketMQ IndexService.flush")
def checkpoint_knows_the_index(store: StoreFiles) -> bool:
    """Some index file has an end timestamp at or above the checkpoint's index time, if that time is
    above 0.
    """
    ends = [one.header.end_timestamp for one in store.filled]
    is_asked = ends or not (store.index or "rocksdbstore" in store.databases)
    return not is_asked or store.times[2] <= max(ends, default=0)


@law("RMQDISK-22", MessageStore, "RocketMQ DefaultMessageStore")
def store_was_stopped(store: StoreFiles) -> bool:
    """A store whose broker has stopped cleanly has no file `abort`."""
    return not store.is_running


@law("RMQDISK-43", MessageStore, "RocketMQ ConfigManager.load 4.9.8 and 5.5.1")
def config_can_be_read(store: StoreFiles) -> bool:
    """Each file of JSON in the folder `config` is one object, or null.

    Zeros may stand before and after it, and integers may be keys.
    """
    return all(is_config(data) for name, data in store.files.items() if CONFIG_NAME.fullmatch(name))


@law("RMQDISK-57", MessageStore, "RocketMQ ConfigManager.load, TopicConfigManager 4.9.8 and 5.5.1")
def config_knows_the_queues(store: StoreFiles) -> bool:
    """Each topic with a queue is in `topics.json`, if that is whole or else its backup is, with
    more read queues than the number of its last queue, and with the `queue.type` BatchCQ if its
    queues are in `batchconsumequeue`, and only then; `consumerOffset.json` has an offset if its
    backup has one. Neither is missing beside two others of the four files of a broker's state. If
    the queue of timers has a message, `timercheck` or the timer log says which were delivered.

    Not judged: topics that a broker makes itself; what is in RocksDB, and timers beside it.
    """
    return config_is_complete(store.files, store.databases)


@law("RMQDISK-38", MessageStore, INDEX_SERVICE)
def index_names_are_known(store: StoreFiles) -> bool:
    """A folder of index files contains nothing else."""
    names = [name.removeprefix("index/") for name in store.files if name.startswith("index/")]
    return all(INDEX_NAME.fullmatch(name) for name in names if name)


@law("RMQDISK-41", MessageStore, "segproof")
def files_are_looked_into(store: StoreFiles) -> bool:
    """Segproof reads every file of a store. A note names each file or folder in it that is not
    read, with the reason; a verdict covers only what was read.
    """
    return not store.databases and all(
        name.partition("/")[0] in READ_NAMES
        or (name == "lock" and data in (b"", b"lock"))
        or CONFIG_NAME.fullmatch(name) is not None
        for name, data in store.files.items()
    )


@law("RMQDISK-58", MessageStore, "segproof")
def logs_are_met_once(paths: Sequence[Collection[tuple[int, bytes]]]) -> bool:
    """No two paths of a call have a message of one commit log: by a link, by shared files, or as a
    copy. A note, that says which one has more; a warning if both share the file to which a broker
    appends, if they have different messages at one offset, or if one lacks a message within its log
    that the other one has. `paths`: the messages of the store or file at each, with their offsets.
    """
    return all(set(one).isdisjoint(two) for one, two in combinations(paths, 2))


@law("RMQDISK-51", MessageStore, "RocketMQ MessageStoreConfig 4.7.0 to 5.5.1")
def slots_are_not_guessed(store: StoreFiles) -> bool:
    """No file in the store says that slots and entries of its index are a guess of segproof."""
    return read.GUESS_FILE not in store.files


# --- the log -------------------------------------------------------------------------------------


@law("RMQDISK-23", MessageStore, "RocketMQ MappedFileQueue")
def log_files_follow(store: StoreFiles) -> bool:
    """The files of the commit log have one length, and each begins at the end of the previous one;
    the log has a file if index or queues have an entry, or the checkpoint has a time of the log,
    but for an index that is alone, perhaps with a checkpoint. Index and queues lead to at most two
    offsets beyond the last file.
    """
    if not store.log:
        is_index_alone = {"commitlog", "consumequeue", "abort", "config"}.isdisjoint(store.parts)
        has_messages = store.furthest >= 0 or store.times[0] > 0 or store.has_queues_in_rocksdb
        return is_index_alone or not has_messages
    follows = all(before.behind == after.start for before, after in pairwise(store.log))
    is_even = len({len(one.data) for one in store.log}) == 1
    return follows and is_even and not store.lacks_its_end


@law("RMQDISK-42", MessageStore, "RocketMQ MultiPathMappedFileQueue, DLedgerCommitLog 5.5.1")
def log_is_in_its_folder(store: StoreFiles) -> bool:
    """The commit log of a store is whole in its folder `commitlog`: no part of it lies in a folder
    of DLedger, or in a folder outside of the store that a broker reads too (`storePathCommitLog`).
    Index and queues lead to fewer than three messages, and to another one, of those that DLedger
    alone has.

    Not judged: a folder with copies of the store's files, or with older files alone, in a row
    before those of the store. These may have expired, or be of another broker.
    """
    return not store.is_dledger


@law("RMQDISK-45", MessageStore, "RocketMQ TimerMessageStore 5.5.1")
def timers_lead_into_the_log(store: StoreFiles) -> bool:
    """Each entry of the timer log leads before the end of the commit log. Zeros or a blank entry
    follow the entries of a file; the files of the timer log have one length, which is not 0.

    The timer log has its entries up to the end that `timercheck` says, and up to the last one that
    a slot of the wheel leads to whose time has not come. If an entry waits, a slot leads to one
    that does, unless the wheel has saved states. A timer log with an entry has a `timercheck` that
    is not zeros.
    """
    lengths = {len(data) for data in store.timer_log}
    is_even = len(lengths) <= 1 and 0 not in lengths
    if not TimerFiles(store.files).agree():
        return False
    if not is_even or not store.log:
        return is_even
    ends_well = all(rest[12:16] == BLANK_TIMER or not any(rest) for _, rest in store.timers)
    return ends_well and all(at < store.end for offsets, _ in store.timers for at in offsets)


@law("RMQDISK-44", MessageStore, "RocketMQ DefaultMessageStore 4.7.0 to 5.5.1")
def log_is_that_of_index_and_queues(followed: StoreFiles) -> bool:
    """The index and the queues were made of the commit log beside them: of the entries, and of the
    units, that lead into it, at least a quarter is right, or fewer than eight are wrong. Those that
    lead to its end or further are counted unless most of the others are right. The same holds of
    the offsets that they lead to in each single file, where also three wrong ones without a right
    one break it, while others of the log are right.
    """
    in_files = followed.matching_in_files
    is_ours = any(right > wrong for right, wrong in in_files)
    for right, wrong in in_files if is_ours else ():
        if (wrong >= 3 and not right) or (wrong >= 8 and wrong > 3 * right):
            return False
    return not any(
        wrong >= 8 and wrong > 3 * right
        for right, wrong in (followed.matching_entries, followed.matching_units)
    )


@law("RMQDISK-56", MessageStore, "RocketMQ CommitLog.doAppend, TopicQueueTable")
def unknown_files_go_on(followed: StoreFiles) -> bool:
    """In a later file of the log than index and queues lead to, at most two messages, or no more
    than the others, are of queues that do not go on there.

    A queue goes on with the number after its last one in the files before, or after the largest
    that is not alone. A larger number is right too where those files lack room for the messages
    between, and have a message of the same store host. With that host a queue without any message
    in them does not count where the first files have expired. A queue that begins with 0 was made
    again. Batches count otherwise, and are left out.
    """
    known: dict[read.Queue, tuple[set[int], int]] = {}
    hosts: set[bytes] = set()
    room, end = 0, followed.first
    reached = max(followed.furthest, BatchQueues(followed.files).furthest)
    for one in followed.log:
        room += one.start - end
        is_same_host = bool(one.hosts & hosts)
        fitting, wrong = _going_on(one, known, room, is_same_host, followed.first > 0)
        is_doubted = bool(known) and wrong > max(2, fitting)
        if is_doubted and one.start > reached:
            return False
        known |= {queue: (_following(numbers), room) for queue, numbers in one.numbers.items()}
        hosts |= one.hosts
        room, end = room + one.behind - one.end, one.behind
    return True


def _going_on(
    one: LogFile,
    known: Mapping[read.Queue, tuple[set[int], int]],
    room: int,
    is_same_host: bool,
    has_expired: bool,
) -> tuple[int, int]:
    """Return how many messages of a file are of queues that go on in it, and of others."""
    fitting = wrong = skipped = 0
    for queue, numbers in one.numbers.items():
        ((first, _),) = Counter(at - rank for rank, at in enumerate(numbers)).most_common(1)
        due, room_before = known.get(queue, ({0}, 0))
        fits = first in due and queue in known
        if not fits and first > min(due):
            skipped += first - max(at for at in due if at < first)
            fits = is_same_host and skipped * MESSAGE_BYTES_MIN <= room - room_before
        if not fits and has_expired and is_same_host and queue not in known:
            continue
        fitting += fits * len(numbers)
        wrong += (not fits and first != 0) * len(numbers)
    return fitting, wrong


def _following(numbers: Sequence[int]) -> set[int]:
    """Return what may follow some numbers: after the last one, and after the largest not alone."""
    largest = max((one for one in numbers if one - 1 in numbers), default=numbers[-1])
    return {largest + 1, numbers[-1] + 1}


@law("RMQDISK-24", MessageStore, COMMIT_LOG)
def records_are_whole(store: StoreFiles) -> bool:
    """Zeros or a blank end follow the records of a log file, not a damaged record.

    A blank end takes the rest of the file. No record lies behind it that says its own offset and is
    as young as the last one before it.
    """
    return all(one.is_whole or one.unchecked is not None for one in store.log)


@law("RMQDISK-25", MessageStore, "RocketMQ CommitLog.doAppend")
def records_know_their_place(store: StoreFiles) -> bool:
    """The physical offset in each record is its offset in the log."""
    return all(message.physical_offset == at for at, message in store.messages.items())


@law("RMQDISK-26", MessageStore, COMMIT_LOG)
def bodies_have_their_checksum(store: StoreFiles) -> bool:
    """The body of the record where a file's records end has a right checksum."""
    return all(one.unchecked is None for one in store.log)


@law("RMQDISK-55", MessageStore, "RocketMQ UtilAll.crc32, CommitLog.checkMessageAndReturnSize")
def messages_without_body_have_no_checksum(store: StoreFiles) -> bool:
    """A message without a body has the checksum 0, which a broker writes for it.

    RocketMQ reads a body length of 0 or less as no body, and compares no checksum then. With
    another checksum the message had a body.
    """
    return all(one.body or not one.body_crc for one in store.messages.values())


@law("RMQDISK-27", MessageStore, "RocketMQ CommitLog.doAppend")
def log_files_end_well(store: StoreFiles) -> bool:
    """The records of a file end with a blank end; those of the last one may end in zeros alone.

    Later files that are all zeros do not count.
    """
    ends = [one.is_blank or any(one.rest[:8]) for one in store.written]
    return all(ends[:-1]) and (all(ends) or not any(store.written[-1].rest))


@law("RMQDISK-52", MessageStore, "RocketMQ DefaultMessageStore 4.7.0 to 5.5.1")
def log_goes_as_far_as_index_and_queues(followed: StoreFiles) -> bool:
    """Index and queues lead to at most two offsets from the end of the last record on, which are
    wrong: each contradicts its neighbours, or is of a unit whose number a record has, or of an
    entry beyond the end offset of its file.

    A broker sends a message to them after it has put it into the log. Not judged: what leads to
    parts of the log that can't be read, or that are missing.
    """
    beyond = {at for at in followed.led_to if at >= followed.end}
    is_near = followed.end_of_files + 1024 * max([0, *(len(one.data) for one in followed.log)])
    return len(beyond) <= 2 and not any(at < is_near for at in beyond & _trusted(followed))


def _trusted(store: StoreFiles) -> set[int]:
    """Return the offsets of units and entries that nothing contradicts."""
    found: set[int] = set()
    for queue, units in store.units.items():
        held = {place for place, _ in store.records_of_queues[queue]}
        ordered = in_order([at for _, at, _ in units])
        found |= {at for place, at, _ in units if at in ordered and place not in held}
    for file in store.filled:
        own = in_order([entry.phy_offset for entry in file.entries])
        found |= {at for at in own if at <= file.header.end_phy_offset}
    return found


@law("RMQDISK-53", MessageStore, "RocketMQ StoreCheckpoint, FlushRealTimeService 4.7.0 to 5.5.1")
def checkpoint_knows_no_later_message(followed: StoreFiles) -> bool:
    """The checkpoint's times of log and queues are at most the largest store time in the log: a
    broker takes them from messages of the log.

    Not judged: a log without a message, a log that can't be read in part or that lacks a file, and
    one with an impossible store time.
    """
    stored = {at: message.store_timestamp for at, message in followed.messages.items()}
    is_dark = any(begin < end for begin, end in followed.dark)
    if not stored or is_dark or stored != followed.likely_times:
        return True
    return max(followed.times[:2]) <= max(stored.values())


@law("RMQDISK-54", MessageStore, "RocketMQ ConsumerOffsetManager 4.7.0 to 5.5.1")
def offsets_lie_in_their_queues(store: StoreFiles) -> bool:
    """Each offset of a consumer group, and of a level of delayed messages, in `config` and its
    backup is at most the end of its queue. A queue ends after its last unit, or after its last
    message in the log if that is later.

    Not judged: a queue without a folder and without a message, static topics, light queues (%LMQ%),
    and queues of batches.
    """
    if not store.log:
        return True
    ends = {queue: store.places_of(queue)[1] for queue in store.queues}
    for queue, records in store.records_of_queues.items():
        for place, _ in records:
            ends[queue] = max(ends.get(queue, 0), place + 1)
    judged = ends.keys() - store.queues_of_batches
    return all(
        offset <= ends[queue]
        for queue, offset in read.stored_offsets(store.files)
        if queue in judged and "%LMQ%" not in queue[0]
    )


@law("RMQDISK-39", MessageStore, "RocketMQ MappedFileQueue.load")
def folders_hold_their_files(store: StoreFiles) -> bool:
    """The folders of the log, of queues and of timers contain only files whose names are 20 digits,
    unless they are databases of RocksDB.

    The names are offsets: no byte of a file may have an offset above 2^63 - 1. The folder of a
    queue is named by its number, without zeros before it: a broker opens no other folder.
    """
    for name in store.files:
        match = read.LOG_NAME.fullmatch(name) or read.QUEUE_NAME.fullmatch(name)
        match = match or read.TIMER_LOG_NAME.fullmatch(name)
        is_offset = match is not None and int(match[match.lastindex or 0]) <= read.LAST_START
        is_of_row = name.startswith(("commitlog/", "consumequeue/", "timerlog/"))
        is_of_row &= name.partition("/")[0] not in store.databases
        if is_of_row and not is_offset and not read.FOLDER_NAME.fullmatch(name):
            return False
    return True


# --- the index and the log -----------------------------------------------------------------------


@law("RMQDISK-28", MessageStore, BUILD_INDEX)
def entries_lie_in_the_log(followed: StoreFiles) -> bool:
    """Every entry leads to an offset before the end of the commit log."""
    return all(entry.phy_offset < followed.end for _, entry in followed.entries)


@law("RMQDISK-29", MessageStore, BUILD_INDEX)
def entries_lead_to_messages(followed: StoreFiles) -> bool:
    """At the offset of each entry inside the commit log a message begins."""
    offsets = {entry.phy_offset for _, entry in followed.entries}
    return {offset for offset in offsets if offset < followed.end} <= followed.messages.keys()


@law("RMQDISK-30", MessageStore, BUILD_INDEX)
def entries_have_a_key_of_the_message(followed: StoreFiles) -> bool:
    """The hash of each entry is the hash of a key, or of the tags, of its message."""
    found = [(followed.messages.get(entry.phy_offset), entry) for _, entry in followed.entries]
    return all(
        one is None or entry.key_hash in read.hashes_of(one, tags=True) for one, entry in found
    )


@law("RMQDISK-31", MessageStore, BUILD_INDEX)
def keys_have_entries(entire: StoreFiles) -> bool:
    """From the first to the last indexed message each key of each message has its entry.

    Entries of the first message may be in an expired index file, if earlier messages have expired;
    entries of the last message may be missing beside `abort`.
    """
    wanted = Counter[tuple[int, int]]()
    for at, message in entire.messages.items():
        is_inside = entire.begin < at <= entire.end_of_index or at == entire.begin <= entire.first
        if is_inside and not (entire.is_running and at == entire.end_of_index):
            wanted.update((at, key_hash) for key_hash in read.hashes_of(message))
    return wanted <= entire.pairs


@law("RMQDISK-32", MessageStore, BUILD_INDEX)
def times_are_those_of_the_messages(followed: StoreFiles) -> bool:
    """Begin and end timestamp are the store times of the messages of the first and last entry, and
    each later difference is the seconds from the begin to its message's store time. Of a message
    with an impossible store time that is the likely one.

    Beside `abort` the end timestamp of the newest file may be the previous entry's.
    """
    for file, entry in followed.entries:
        message, begin = followed.messages.get(entry.phy_offset), file.header.begin_timestamp
        if message is None or entry.key_hash not in read.hashes_of(message, tags=True):
            continue
        time = followed.likely_times[entry.phy_offset]
        is_last = entry.number == len(file.entries)
        is_open = followed.is_running and file.image == followed.index[-1].image
        if is_last and not is_open and time != file.header.end_timestamp:
            return False
        found = entry.time_diff if entry.number > 1 else begin
        if found != (seconds_between(begin, time) if entry.number > 1 else time):
            return False
    return True


@law("RMQDISK-40", MessageStore, "RocketMQ CommitLog.asyncPutMessage")
def store_times_are_possible(followed: StoreFiles) -> bool:
    """No store time is more than an hour outside the times around it, unless the index has it too,
    or it is within a second of the born time, which is above 0.

    Nor does the index have a likelier one: one that is less far outside; or one inside that is
    within a second of the born time, where the message is more than a second further from it.
    Around a message lie the times of the one before it and of the one behind it, and the middle one
    of three on each side; beyond the first and the last message there is no bound, nor around two
    alone. A time that no clock gives in milliseconds is impossible whatever lies around it: one
    below 0, or 0 if the born time is more than an hour, beyond the year 9999, or within an hour of
    the born time if it is read as seconds. Times below 1 and beyond that year say nothing of their
    neighbours.
    """
    return all(
        message.store_timestamp == followed.likely_times[at]
        for at, message in followed.messages.items()
    )


@law("RMQDISK-33", MessageStore, BUILD_INDEX)
def index_covers_the_log(entire: StoreFiles) -> bool:
    """No message with keys is before the first or after the last indexed message.

    Beside `abort` messages may be missing from the last message of the queues
    on. Not judged: a log without the other parts.
    """
    is_in_rocksdb = "rocksdbstore" in entire.databases and not entire.index
    return (
        entire.lies_alone
        or is_in_rocksdb
        or not any(
            read.hashes_of(message)
            and (at < entire.begin or (at > entire.end_of_index and entire.is_due(at)))
            for at, message in entire.messages.items()
        )
    )


@law("RMQDISK-34", MessageStore, BUILD_INDEX)
def messages_are_indexed_once(followed: StoreFiles) -> bool:
    """No key of a message has more entries than the message has copies of the key."""
    return all(
        followed.pairs[at, key_hash] <= often
        for at, message in followed.messages.items()
        for key_hash, often in Counter(read.hashes_of(message, tags=True)).items()
    )


# --- the queues ----------------------------------------------------------------------------------


@law("RMQDISK-35", MessageStore, QUEUE)
def queues_have_whole_units(store: StoreFiles) -> bool:
    """A consume queue is units of 20 bytes without a gap from file to file, and then zeros; the
    files of all queues have one length, which is not 0.
    """
    for files in store.queues.values():
        used = [20 * len(read.units_of(data)) for _, data in files]
        ends = [start + len(data) for start, data in files]
        is_full = all(size == len(data) for size, (_, data) in zip(used, files[:-1], strict=False))
        is_rest_zero = not any(
            any(data[size:]) for size, (_, data) in zip(used, files, strict=True)
        )
        if not is_full or not is_rest_zero or ends[:-1] != [start for start, _ in files[1:]]:
            return False
    lengths = {len(data) for files in store.queues.values() for _, data in files}
    return len(lengths) <= 1 and not any(length % 20 or not length for length in lengths)


@law("RMQDISK-36", MessageStore, QUEUE)
def queues_rise(store: StoreFiles) -> bool:
    """The log offsets in a consume queue rise; filler units before its begin do not count, nor
    units that stand for lost messages.
    """
    return all(is_rising([at for _, at, _ in units]) for units in store.units.values())


@law("RMQDISK-37", MessageStore, QUEUE)
def units_lead_to_their_records(store: StoreFiles) -> bool:
    """Each unit leads to the record of its topic, queue and number. Each record has its unit if its
    topic has a queue, if `config` knows the topic, or if no topic has a queue.

    Prepared and rolled back records have none. A unit of a place without a record may stand for a
    lost message: it has a filler's size, or leads where the next one leads. Of a topic's queues of
    batches a file must be there. Not judged: these queues themselves, expired and unreadable parts
    of the log, units of a log without the other parts, and queues in RocksDB. Beside `abort` units
    may be missing from the last message of the queues and the index on, but of 64 messages at most
    if there is no queue and no index. A queue exists if the checkpoint's time for it is above 0.
    """
    batches = BatchQueues(store.files)
    has_others = store.has_queues_in_rocksdb or batches.with_files or batches.topics
    if store.log and store.times[1] > 0 and not store.queues and not has_others:
        return False
    topics = {topic for topic, _ in store.queues}
    left = batches.with_files - topics
    records = {one: own for one, own in store.records_of_queues.items() if one[0] not in left}
    for queue, found in store.units.items():
        own = records.get(queue, {})
        places = {place for place, _ in own}
        units = found + [one for one in store.stand_ins[queue] if one[0] in places]
        asked = [one for one in units if store.is_asked(one[1])]
        if any(own.get((place, at)) != size for place, at, size in asked):
            return False
    count = sum(len(own) for own in records.values())
    is_elsewhere = store.lies_alone or store.has_queues_in_rocksdb
    if not (topics or is_elsewhere) and store.furthest < 0 and count > read.WAITING_MAX:
        return False
    known = topics | store.known_topics if topics else set()
    known |= set() if is_elsewhere else batches.topics
    for queue, own in records.items():
        begin, end = store.places_of(queue)
        is_asked = queue[0] in known or not (topics or is_elsewhere)
        for place, at in own if is_asked else ():
            if not begin <= place < end and (place < end or store.is_due(at)):
                return False
    return True


@law("RMQDISK-50", MessageStore, COMMIT_LOG)
def units_have_the_tags_code(store: StoreFiles) -> bool:
    """A unit that leads to the record of its place has the hash code of the record's tags; 0 if the
    record has no tags.

    Not judged: records of the topic SCHEDULE_TOPIC_XXXX with a delay level, whose unit has the time
    of delivery; codes below -2147483648, which lead to an extension file.
    """
    for queue, codes in store.tags_codes.items():
        for place, at, code in codes:
            message = store.messages.get(at)
            is_own = message is not None and (
                (message.topic, message.queue_id, message.queue_offset) == (*queue, place)
            )
            if message is None or not is_own or message.sys_flag & 12 not in (0, 8):
                continue
            known = message.properties_map or {}
            is_delayed = message.topic == read.SCHEDULE_TOPIC and "DELAY" in known
            wanted = hash_code(known["TAGS"]) if "TAGS" in known else 0
            if code != wanted and code >= -(2**31) and not is_delayed:
                return False
    return True
