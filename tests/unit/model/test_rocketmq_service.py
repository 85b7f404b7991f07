# SPDX-License-Identifier: Apache-2.0
"""The index service and the store: what the model answers, by release and as segproof.

Each number was seen in the answers of the real classes 4.7.0, 4.9.8 or 5.5.1.

Used by: the tox environments `quick` and `py311` to `py313`.
"""

import random
from dataclasses import replace
from typing import Any

import pytest

from segproof_model.directory import Directory
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.checking import broken_state_laws, broken_step_laws
from segproof_model.laws.registry import LAWS, Transition
from segproof_model.profiles import (
    ROCKETMQ_4_7_0,
    ROCKETMQ_4_9_8,
    ROCKETMQ_5_1_4,
    ROCKETMQ_5_3_3,
    ROCKETMQ_5_4_0,
    ROCKETMQ_5_5_1,
    SEGPROOF,
    Profile,
)
from segproof_model.rocketmq.consume_queue import ConsumeQueue
from segproof_model.rocketmq.index_file import IndexFile
from segproof_model.rocketmq.index_service import IndexService, QueryOffsetResult
from segproof_model.rocketmq.message import (
    MAGIC_V1,
    DispatchRequest,
    Message,
    blank_tail,
    encode_message,
)
from segproof_model.rocketmq.message_store import (
    MessageStore,
    MessageStoreConfig,
    max_physic_offset,
    rebuild_index,
)

CLOCK_MS = 1795223767450
TIME_MS = 1700000000000
MAX_INT64 = 2**63 - 1
ALL = (SEGPROOF, ROCKETMQ_5_5_1, ROCKETMQ_5_3_3, ROCKETMQ_5_1_4, ROCKETMQ_4_9_8, ROCKETMQ_4_7_0)
RELEASES = ALL[1:]


def request(
    offset: int,
    keys: str | None = "k",
    *,
    uniq_key: str | None = None,
    flag: int = 0,
    tags: str | None = None,
    time_ms: int = TIME_MS,
) -> DispatchRequest:
    """Return what a service is told of a message of the topic T."""
    properties = None if tags is None else (("TAGS", tags),)
    return DispatchRequest("T", offset, 99, 0, time_ms, 0, keys, uniq_key, flag, 0, properties)


def service_of(
    profile: Profile, directory: Directory = Directory(), slots: int = 4, entries: int = 6
) -> IndexService:
    """Return a service with small files."""
    return IndexService.open(
        "", slots, entries, directory=directory, profile=profile, now_ms=CLOCK_MS
    ).after


def built(service: IndexService, *requests: DispatchRequest) -> IndexService:
    """Return the service told of messages, one millisecond each."""
    for one in requests:
        step = service.build_index(one)
        assert step.outcome is None
        service = replace(step.after, now_ms=service.now_ms + 1)
    return service


def asked(service: IndexService, key: str = "k", begin: int = 0, **more: Any) -> tuple[int, ...]:
    """Return the offsets of a key of the topic T."""
    given = {"max_num": 64, "end": MAX_INT64, **more}
    outcome = service.query_offset("T", key, begin=begin, **given).outcome
    assert isinstance(outcome, QueryOffsetResult)
    return outcome.phy_offsets


def names(service: IndexService) -> list[str]:
    """Return the names of the listed files."""
    return [file.file_name.removeprefix("index/") for file in service.files]


def counts(service: IndexService) -> list[int]:
    """Return the index counts of the listed files."""
    return [file.index_count for file in service.files]


def test_a_message_is_found_by_each_key() -> None:
    """Tokens are split at single spaces; the unique key comes first, the tags last."""
    service = built(
        service_of(ROCKETMQ_5_5_1, entries=9),
        request(0, "  a  b\tc  d ", uniq_key="u", tags="x y"),
    )
    assert [6] == counts(service)
    for key in ("u", "a", "b\tc", "d", "T#x y"):
        assert (0,) == asked(service, key)
    assert (0,) == asked(service, "x y", index_type="T")
    assert () == asked(service, "x y", index_type="K")
    assert ["20261121011607450"] == names(service)


@pytest.mark.parametrize("profile", ALL)
def test_tags_are_indexed_by_the_newest_only(profile: Profile) -> None:
    """One entry more from 5.4.0 on; empty tags have none."""
    service = built(service_of(profile), request(0, tags="x"), request(9, tags=""))
    assert [4 if profile in (SEGPROOF, ROCKETMQ_5_5_1) else 3] == counts(service)


def test_a_null_topic_is_a_word() -> None:
    """A null topic is found under the word, and a null key too."""
    service = built(service_of(ROCKETMQ_5_5_1), request(0)._replace(topic=None, uniq_key="null"))
    found = service.query_offset(None, None, 64, 0, MAX_INT64).outcome
    assert QueryOffsetResult((0,), TIME_MS, 0) == found


@pytest.mark.parametrize("profile", ALL)
def test_what_was_passed_or_rolled_back_is_ignored(profile: Profile) -> None:
    """A message before the end, and one with the flag 12; prepared and committed ones count."""
    service = built(service_of(profile), request(50))
    ignored = built(service, request(49), request(60, flag=12), request(60, flag=13))
    assert [2] == counts(ignored)
    assert [4] == counts(built(service, request(60, flag=4), request(61, flag=8)))


def test_a_message_told_again() -> None:
    """Upstream enters it again; segproof completes what is missing, be it over two files."""
    twice = request(50, "a b c")
    for profile in RELEASES:
        assert [5, 2] == counts(built(service_of(profile, entries=5), request(0, "x y"), twice))
        again = built(service_of(profile, entries=20), request(0), twice, twice)
        assert [8] == counts(again)
    service = built(service_of(SEGPROOF, entries=5), request(0, "x y"), request(50, "a b"))
    completed = built(service, twice, twice)
    assert [5, 2] == counts(completed)
    assert (50,) == asked(completed, "c")


def test_a_full_file_is_continued() -> None:
    """The new file begins at the end of the full one, which the checkpoint then covers."""
    service = built(service_of(ROCKETMQ_5_5_1), request(9, "a b c d e"), request(20, None))
    first, second = service.index_files
    assert (9, 9, TIME_MS, TIME_MS, 1) == (
        second.begin_phy_offset,
        second.end_phy_offset,
        second.begin_timestamp,
        second.end_timestamp,
        second.index_count,
    )
    assert first.is_write_full()
    assert TIME_MS == service.store_checkpoint.index_msg_timestamp
    assert TIME_MS.to_bytes(8, "big") == (service.directory.read("checkpoint") or b"")[16:24]


def test_two_files_of_one_millisecond() -> None:
    """Upstream they share path and bytes; segproof names the second one millisecond later."""
    many = request(9, "a b c d e f")
    shared = service_of(ROCKETMQ_5_5_1).build_index(many).after
    assert ["20261121011607450"] * 2 == names(shared)
    distinct = service_of(SEGPROOF).build_index(many).after
    assert ["20261121011607450", "20261121011607451"] == names(distinct)


@pytest.mark.parametrize("profile", ALL)
def test_a_file_that_cannot_be_created(profile: Profile) -> None:
    """A file is in the way of the folder: upstream an error of the lock hides it."""
    blocked = service_of(profile, Directory().write("index", b""))
    kind = ErrorKind.IO_ERROR if profile is SEGPROOF else ErrorKind.LOCK_STATE
    assert Raised(kind) == blocked.build_index(request(0)).outcome
    assert (True, ()) == (blocked.load(True).outcome, blocked.load(True).after.files)


def test_a_put_that_never_ends() -> None:
    """Without room for an entry upstream makes files for ever, and without slots it dies."""
    tiny = service_of(ROCKETMQ_5_5_1, entries=1)
    assert Raised(ErrorKind.ENDLESS) == tiny.build_index(request(0)).outcome
    none = service_of(ROCKETMQ_5_5_1, slots=0)
    assert Raised(ErrorKind.ARITHMETIC) == none.build_index(request(0)).outcome
    wrapped = service_of(ROCKETMQ_5_5_1, slots=10, entries=214748365)
    assert Raised(ErrorKind.ENDLESS) == wrapped.build_index(request(0)).outcome
    for slots, entries in ((4, 1), (0, 6), (10, 214748365)):
        refused = service_of(SEGPROOF, slots=slots, entries=entries).build_index(request(0))
        assert Raised(ErrorKind.INVALID_ARGUMENT) == refused.outcome
        assert ["checkpoint"] == list(refused.after.directory)


def rolled(profile: Profile) -> IndexService:
    """Return a service of three files, of which the last has one entry."""
    requests = [request(10 * n, time_ms=TIME_MS + 10_000 * n) for n in range(11)]
    return built(service_of(profile), *requests)


@pytest.mark.parametrize("profile", ALL)
def test_a_query_goes_back_in_time(profile: Profile) -> None:
    """Newest first, cut at the number, ended by the first file that begins earlier."""
    service = rolled(profile)
    assert tuple(range(100, -1, -10)) == asked(service)
    assert (100, 90, 80) == asked(service, max_num=3)
    # The first entry of a continued file reads as later by the gap of 10 seconds.
    assert (100, 90, 80, 70) == asked(service, begin=TIME_MS + 65_000)
    assert () == asked(service, "none")
    assert (
        QueryOffsetResult((), TIME_MS + 100_000, 100)
        == service.query_offset("T", "none", 64, 0, MAX_INT64).outcome
    )


def test_numbers_of_a_query() -> None:
    """A negative number is refused; the greatest one exhausts memory in older releases."""
    for profile in ALL:
        service = service_of(profile)
        refused = service.query_offset("T", "k", -1, 0, MAX_INT64).outcome
        assert Raised(ErrorKind.INVALID_ARGUMENT) == refused
        most = service.query_offset("T", "k", 2**31 - 1, 0, MAX_INT64).outcome
        exhausts = profile in (ROCKETMQ_5_1_4, ROCKETMQ_4_9_8, ROCKETMQ_4_7_0)
        expected = Raised(ErrorKind.OUT_OF_MEMORY) if exhausts else QueryOffsetResult((), 0, 0)
        assert expected == most


def test_number_of_a_typed_query() -> None:
    """5.4.0 cuts the greatest number too late where a type of key is given."""
    service = service_of(ROCKETMQ_5_4_0)
    typed = service.query_offset("T", "k", 2**31 - 1, 0, MAX_INT64, "T").outcome
    untyped = service.query_offset("T", "k", 2**31 - 1, 0, MAX_INT64).outcome
    assert (Raised(ErrorKind.OUT_OF_MEMORY), QueryOffsetResult((), 0, 0)) == (typed, untyped)


def test_an_empty_file_hides_older_ones() -> None:
    """A zero file that sorts last ends each query that begins above 0, but not in segproof."""
    for profile in ALL:
        full = rolled(profile).directory.write("index/30000000000000000", bytes(176))
        service = service_of(profile, full).load(True).after
        assert (11 if profile is SEGPROOF else 0) == len(asked(service, begin=1))
        assert 11 == len(asked(service))


def test_a_corrupt_chain_ends_a_query_of_segproof() -> None:
    """Upstream answers what it likes; segproof says what is wrong."""
    service = built(service_of(SEGPROOF, slots=1), request(0), request(9))
    name = service.files[0].file_name
    image = bytearray(service.directory.read(name) or b"")
    image[40:44] = (9).to_bytes(4, "big")
    damaged = replace(service, directory=service.directory.write(name, bytes(image)))
    outcome = damaged.query_offset("T", "k", 64, 0, MAX_INT64).outcome
    assert Raised(ErrorKind.CORRUPT_INDEX) == outcome


def test_loading_in_the_order_of_names() -> None:
    """Names are numbers in the order of their characters; another name stays where it is."""
    directory = Directory().write("index/notanumber", b"x")
    for name in ("9", "10", "100", "+5", "-7", "\u0663"):
        directory = directory.write(f"index/{name}", bytes(176))
    for profile in ALL:
        step = service_of(profile, directory).load(True)
        assert (True, ["+5", "-7", "10", "100", "9", "\u0663"]) == (
            step.outcome,
            names(step.after),
        )
        assert b"x" == step.after.directory.read("index/notanumber")
        again = step.after.load(True).after
        assert (6 if profile is SEGPROOF else 12) == len(again.files)


def test_loading_files_of_another_size() -> None:
    """Upstream grows a short one; segproof refuses it, and changes nothing."""
    short = Directory().write("index/5", b"\0").write("index/6", bytes(176))
    for profile in RELEASES:
        step = service_of(profile, short).load(True)
        assert (True, ["5", "6"]) == (step.outcome, names(step.after))
        assert bytes(176) == step.after.directory.read("index/5")
    refused = service_of(SEGPROOF, short).load(True)
    assert Raised(ErrorKind.CORRUPT_INDEX) == refused.outcome
    assert b"\0" == refused.after.directory.read("index/5")


@pytest.mark.parametrize("profile", ALL)
def test_loading_stops_at_a_folder(profile: Profile) -> None:
    """A folder with a number as its name ends the loading; what was listed before it stays."""
    directory = Directory().write("index/5", bytes(176)).write("index/6/x", b"")
    step = service_of(profile, directory.write("index/7", bytes(176))).load(True)
    assert (False, ["5"]) == (step.outcome, names(step.after))


@pytest.mark.parametrize("profile", ALL)
def test_loading_after_a_crash(profile: Profile) -> None:
    """Files beyond the checkpoint are deleted; the one that it covers exactly stays."""
    service = rolled(profile)
    flushed = service.flush(2).after.directory
    loaded = service_of(profile, flushed).load(False).after
    assert names(service)[:2] == names(loaded)
    assert TIME_MS + 90_000 == loaded.store_checkpoint.index_msg_timestamp
    assert names(service)[2] not in "".join(loaded.directory)
    assert 3 == len(service_of(profile, flushed).load(True).after.files)


@pytest.mark.parametrize("profile", ALL)
def test_expired_files_are_deleted(profile: Profile) -> None:
    """Strictly before the offset, never the last; one that is held stays and answers nothing."""
    service = rolled(profile)
    assert 3 == len(service.delete_expired_file(40).after.files)
    assert names(service)[1:] == names(service.delete_expired_file(41).after)
    assert names(service)[2:] == names(service.delete_expired_file(MAX_INT64).after)
    held = replace(service.files[0], resource=service.files[0].resource.hold().after)
    kept = replace(service, files=(held, *service.files[1:])).delete_expired_file(99).after
    assert 3 == len(kept.files)
    assert tuple(range(100, 40, -10)) == asked(kept)
    later = replace(kept, now_ms=kept.now_ms + 3000).delete_expired_file(99).after
    assert names(service)[2:] == names(later)


def test_ending() -> None:
    """destroy deletes; shutdown empties the list, and does nothing in 4.x."""
    for profile in ALL:
        service = rolled(profile)
        destroyed = service.destroy().after
        assert (["checkpoint"], ()) == (list(destroyed.directory), destroyed.files)
        ended = service.shutdown().after
        is_old = profile in (ROCKETMQ_4_9_8, ROCKETMQ_4_7_0)
        assert (3 if is_old else 0, 4) == (len(ended.files), len(ended.directory.files))
        assert (528, 528 if is_old else 0) == (service.total_size, ended.total_size)


# --- stores --------------------------------------------------------------------------------------


def record(offset: int, number: int) -> bytes:
    """Return the record of a message of 200 bytes, one second after the one before."""
    properties = f"KEYS\x01k{number % 3} all\x02"
    head = (0, MAGIC_V1, 0, 0, 0, number, offset, 0, 0)
    tail = (TIME_MS + 1000 * number, bytes(8), 0, 0, bytes(96), "T", properties)
    data = encode_message(Message(*head, bytes(8), *tail))
    assert isinstance(data, bytes)
    assert 200 == len(data)
    return data


def stored(count: int = 20, reached: int = 20) -> Directory:
    """Return a log of so many messages, four in a file, and a queue of the first of them."""
    directory = Directory()
    offsets = [number // 4 * 1000 + number % 4 * 200 for number in range(count)]
    for start in range(0, count, 4):
        here = range(start, min(start + 4, count))
        data = b"".join(record(offsets[number], number) for number in here)
        tail = blank_tail(200) if len(here) == 4 else bytes(1000 - len(data))
        assert isinstance(tail, bytes)
        directory = directory.write(f"commitlog/{start // 4 * 1000:020d}", data + tail)
    queue = ConsumeQueue.open("", "T", 0, 100, directory=directory).after
    for number in range(reached):
        queue = queue.put_message_position_info(offsets[number], 200, 0, number).after
    return queue.directory


def store_of(profile: Profile, directory: Directory, *, safe: bool = False) -> MessageStore:
    """Return a loaded store with files of four messages."""
    config = MessageStoreConfig(4, 200, 1000, message_index_safe=safe)
    opened = MessageStore.open("", config, directory=directory, profile=profile, now_ms=CLOCK_MS)
    assert isinstance(opened.after, MessageStore)
    step = opened.after.load()
    assert step.outcome is True
    return step.after


def recovered(store: MessageStore) -> list[int]:
    """Return the offsets that a recovery entered, the newest first."""
    step = store.recover()
    assert step.outcome is None
    return list(asked(step.after.index_service, "all"))


def test_what_the_queues_lack_is_indexed_after_a_clean_exit() -> None:
    """From 5.3.2 on the message that begins where the queues end is lost, but not in segproof.

    Releases from 5.0.0 to 5.1.4 read on at the end of the log.
    """
    directory = stored(20, 10)
    assert 2400 == max_physic_offset("", directory)
    missing = [4600, 4400, 4200, 4000, 3600, 3400, 3200, 3000, 2600, 2400]
    for profile in ALL:
        goes_on = profile.rmq_normal_recovery_dispatches or profile.rmq_reads_on_from_queues
        wanted = missing if goes_on else []
        if profile in (ROCKETMQ_5_5_1, ROCKETMQ_5_3_3):
            wanted = missing[:-1]
        store = store_of(profile, directory)
        assert store.last_exit_ok
        assert wanted == recovered(store)


@pytest.mark.parametrize("profile", ALL)
def test_recovery_after_a_crash(profile: Profile) -> None:
    """From the newest file that begins 3 s before what is durable; 5.5.1 asks for no 3 s."""
    crashed = store_of(profile, stored().write("abort", b"77"))
    assert not crashed.last_exit_ok
    assert LAWS["RMQCKPT-5"].predicate(b"77", crashed.last_exit_ok)
    assert 20 == len(recovered(crashed))
    checkpoint = crashed.store_checkpoint.set_physic_msg_timestamp(TIME_MS + 13_000).after
    checkpoint = checkpoint.set_logics_msg_timestamp(TIME_MS + 13_000).after.flush().after
    asks_each = profile in (SEGPROOF, ROCKETMQ_5_5_1)
    covered = store_of(profile, checkpoint.directory)
    assert (8 if asks_each else 12) == len(recovered(covered))
    safe = store_of(profile, checkpoint.directory, safe=True)
    assert 20 == len(recovered(safe))


def test_how_far_the_queues_are_counts_in_the_newest() -> None:
    """The sixth field of the checkpoint says where recovery begins, if it is above 0."""
    crashed = store_of(ROCKETMQ_5_5_1, stored().write("abort", b""))
    checkpoint = crashed.store_checkpoint.set_logics_physical_offset(3200).after.flush().after
    for profile, count in ((SEGPROOF, 8), (ROCKETMQ_5_5_1, 8), (ROCKETMQ_5_3_3, 20)):
        assert count == len(recovered(store_of(profile, checkpoint.directory)))


def test_recovery_goes_back_ten_files() -> None:
    """In the newest; older releases go back to the first file."""
    directory = stored(60).write("abort", b"")
    for profile, count in ((SEGPROOF, 40), (ROCKETMQ_5_5_1, 40), (ROCKETMQ_5_3_3, 60)):
        assert count == len(recovered(store_of(profile, directory)))


def test_a_store_is_loaded_with_whole_log_files_only() -> None:
    """A file of another length refuses the store; an empty last one only in 4.x."""
    cut = stored().write("commitlog/00000000000000004000", bytes(999))
    empty = stored().write("commitlog/00000000000000005000", b"")
    config = MessageStoreConfig(4, 200, 1000)
    for profile in ALL:
        opened = MessageStore.open("", config, directory=cut, profile=profile).after
        assert isinstance(opened, MessageStore)
        assert opened.load().outcome is False
        opened = MessageStore.open("", config, directory=empty, profile=profile).after
        assert isinstance(opened, MessageStore)
        is_old = profile in (ROCKETMQ_4_9_8, ROCKETMQ_4_7_0)
        assert opened.load().outcome is not is_old


def test_an_index_that_is_not_loaded_is_looked_at_since_5_1() -> None:
    """A folder in the way: 4.x starts all the same."""
    directory = stored().write("index/6/x", b"")
    config = MessageStoreConfig(4, 200, 1000)
    for profile in ALL:
        opened = MessageStore.open("", config, directory=directory, profile=profile).after
        assert isinstance(opened, MessageStore)
        is_old = profile in (ROCKETMQ_4_9_8, ROCKETMQ_4_7_0)
        assert opened.load().outcome is is_old


def test_messages_are_found_in_the_order_of_the_log() -> None:
    """The newest ones that the number allows, oldest first; none at an offset without a record."""
    store = store_of(ROCKETMQ_5_5_1, stored().write("abort", b"")).recover().after
    outcome = store.query_message("T", "k1", 3, 0, MAX_INT64).outcome
    assert isinstance(outcome, tuple)
    assert [3200, 4000, 4600] == [one.physical_offset for one in outcome[0]]
    assert (TIME_MS + 19_000, 4600) == outcome[1:]
    nothing = store.query_message("T", "none", 3, 0, MAX_INT64).outcome
    assert ((), 0, 0) == nothing
    lost = store.index_service.build_index(request(9999, "gone")).after
    store = replace(store, index_service=lost)
    assert ((), TIME_MS, 9999) == store.query_message("T", "gone", 3, 0, MAX_INT64).outcome


def test_no_index_is_no_index() -> None:
    """A store without an index tells it nothing."""
    config = MessageStoreConfig(4, 200, 1000, message_index_enable=False)
    opened = MessageStore.open("", config, directory=stored(), profile=SEGPROOF).after
    assert isinstance(opened, MessageStore)
    assert () == opened.recover().after.index_service.files
    refused = MessageStore.open("", replace(config, mapped_file_size_commit_log=0))
    assert Raised(ErrorKind.INVALID_ARGUMENT) == refused.outcome


@pytest.mark.parametrize("profile", ALL)
def test_a_rebuilt_index_has_the_same_bytes(profile: Profile) -> None:
    """Whatever the names: told of the messages one by one, or made from the log."""
    directory = stored()
    fed = service_of(profile, slots=4, entries=7)
    for number in range(20):
        offset = number // 4 * 1000 + number % 4 * 200
        keys = f"k{number % 3} all"
        time_ms = TIME_MS + 1000 * number
        fed = built(fed, request(offset, keys, time_ms=time_ms))
    rebuilt = rebuild_index("", 4, 7, directory=directory, profile=profile, now_ms=5).after
    assert 7 == len(rebuilt.files)
    assert LAWS["RMQLOG-7"].predicate(fed, rebuilt)
    assert not LAWS["RMQLOG-7"].predicate(fed, fed.delete_expired_file(900).after)


# --- laws over histories -------------------------------------------------------------------------

KEYS = ("a", "b", "AaAa", "BBBB", "", "polygenelubricants", "x\ty")


def some_call(rng: random.Random, offset: int, time_ms: int) -> tuple[str, dict[str, Any]]:
    """Return an operation and its arguments."""
    drawn = rng.randrange(20)
    if drawn < 9:
        keys = rng.choice((None, "", " a  b ", " ".join(rng.choices(KEYS, k=3))))
        told = request(
            offset,
            keys,
            uniq_key=rng.choice((None, "", "u")),
            flag=rng.choice((0, 0, 4, 8, 12)),
            tags=rng.choice((None, "", "x")),
            time_ms=time_ms,
        )
        return "build_index", {"request": told}
    if drawn < 15:
        return "query_offset", {
            "topic": rng.choice(("T", "T", None)),
            "key": rng.choice((*KEYS, "u", "x", None)),
            "max_num": rng.choice((64, 1, 0, -1, 2**31 - 1)),
            "begin": rng.choice((0, time_ms - 3000, time_ms)),
            "end": rng.choice((MAX_INT64, time_ms)),
            "index_type": rng.choice((None, "T")),
        }
    return rng.choice(
        (
            ("load", {"last_exit_ok": rng.random() < 0.6}),
            ("delete_expired_file", {"offset": offset - rng.choice((0, 300))}),
            ("flush", {"position": rng.randrange(-1, 4)}),
            ("get_and_create_last_index_file", {}),
            ("destroy", {}),
            ("shutdown", {}),
        )
    )


@pytest.mark.parametrize("profile", ALL)
@pytest.mark.parametrize("seed", range(6))
def test_histories_are_lawful(profile: Profile, seed: int) -> None:
    """Every step of random histories keeps every law."""
    rng = random.Random(seed)
    service = service_of(profile, slots=rng.choice((1, 3)), entries=rng.choice((5, 8)))
    offset, time_ms = 0, TIME_MS
    for _ in range(60):
        service = replace(service, now_ms=service.now_ms + rng.choice((0, 1, 1000)))
        offset += rng.choice((0, 1, 100, 100, -50))
        time_ms += rng.choice((0, 999, 5000, -3000))
        name, arguments = some_call(rng, offset, time_ms)
        if len(set(names(service))) < len(service.files) and name != "query_offset":
            service = service_of(
                profile, service.directory, service.hash_slot_num, service.index_num
            )
        step = getattr(service, name)(**arguments)
        transition = Transition(service, name, arguments, step.after, step.outcome)
        assert [] == broken_step_laws(transition), (name, arguments)
        assert [] == broken_state_laws(step.after)
        service = step.after
    assert all(isinstance(file, IndexFile) for file in service.files)
