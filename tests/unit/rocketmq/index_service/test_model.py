# SPDX-License-Identifier: Apache-2.0
"""The index service: what is answered, by release and as segproof.

Each number was seen in the answers of the real classes 4.7.0, 4.9.8 or 5.5.1.
"""

from typing import Any

import pytest

from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import NEWEST_ROCKETMQ, RELEASES, SEGPROOF
from segproof_model.rocketmq.broker.index_service import IndexService, QueryOffsetResult
from segproof_model.rocketmq.broker.index_service_releases import (
    QueryMakesItsList,
    ShutdownDoesNothing,
    StrangeNameEndsLoading,
    TagsAreNotIndexed,
)
from segproof_model.rocketmq.format.message import DispatchRequest

CLOCK_MS = 1795223767450
TIME_MS = 1700000000000
MAX_INT64 = 2**63 - 1
INVALID, OUT_OF_MEMORY = Raised(ErrorKind.INVALID_ARGUMENT), Raised(ErrorKind.OUT_OF_MEMORY)
ENDLESS, CORRUPT = Raised(ErrorKind.ENDLESS), Raised(ErrorKind.CORRUPT_INDEX)
NOTHING = QueryOffsetResult((), 0, 0)


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
    release: Release = NEWEST_ROCKETMQ,
    images: dict[str, bytes] | None = None,
    slots: int = 4,
    entries: int = 6,
) -> IndexService:
    """Return a service with small files."""
    return release.kind(IndexService)(Files(images or {}, CLOCK_MS), "", slots, entries)


def built(service: IndexService, *requests: DispatchRequest) -> IndexService:
    """Tell the service of messages, one millisecond each, and return it."""
    for one in requests:
        service.build_index(one)
        service.files.now_ms += 1
    return service


def rolled(release: Release = NEWEST_ROCKETMQ) -> IndexService:
    """Return a service of three files, of which the last has one entry."""
    requests = [request(10 * n, time_ms=TIME_MS + 10_000 * n) for n in range(11)]
    return built(service_of(release), *requests)


def asked(
    service: IndexService, key: str = "k", begin: int = 0, most: int = 64, kind: str | None = None
) -> tuple[int, ...]:
    """Return the offsets of a key of the topic T."""
    return service.query_offset("T", key, most, begin, MAX_INT64, kind).phy_offsets


def names(service: IndexService) -> list[str]:
    """Return the names of the listed files."""
    return [file.file_name.removeprefix("index/") for file in service.index_files]


def counts(service: IndexService) -> list[int]:
    """Return the index counts of the listed files."""
    return [file.index_count for file in service.index_files]


# --- messages ------------------------------------------------------------------------------------


def test_a_message_is_found_by_each_key() -> None:
    """Tokens are split at single spaces; the unique key comes first, the tags last."""
    told = request(0, "  a  b\tc  d ", uniq_key="u", tags="x y")
    service = built(service_of(entries=9), told)
    assert ([6], ["20261121011607450"]) == (counts(service), names(service))
    assert {(0,)} == {asked(service, key) for key in ("u", "a", "b\tc", "d", "T#x y")}
    assert (0,) == asked(service, "x y", kind="T")
    assert () == asked(service, "x y", kind="K")


def test_tags_are_indexed_since_5_4(any_rocketmq: Release) -> None:
    """One entry more; empty tags have none."""
    service = built(service_of(any_rocketmq), request(0, tags="x"), request(9, tags=""))
    assert [3 if any_rocketmq.has(TagsAreNotIndexed) else 4] == counts(service)


def test_a_null_topic_is_a_word() -> None:
    """A null topic is found under the word, and a null key too."""
    service = built(service_of(), request(0)._replace(topic=None, uniq_key="null"))
    found = service.query_offset(None, None, 64, 0, MAX_INT64)
    assert QueryOffsetResult((0,), TIME_MS, 0) == found


@pytest.mark.parametrize(
    ("name", "count"), [("segproof", 4), ("rocketmq-4.3.2", 4), ("rocketmq-3.2.6", 3)]
)
def test_what_was_passed_or_rolled_back_is_ignored(name: str, count: int) -> None:
    """A message before the end, and one with the flag 12; prepared ones count, and since 4.x
    committed ones.
    """
    service = built(service_of(RELEASES[name]), request(50))
    built(service, request(49), request(60, flag=12), request(60, flag=13))
    assert [2] == counts(service)
    assert [count] == counts(built(service, request(60, flag=4), request(61, flag=8)))


def test_a_message_told_again_is_entered_again(rocketmq: Release) -> None:
    """Upstream."""
    twice = request(50, "a b c")
    service = service_of(rocketmq, entries=5)
    assert [5, 2] == counts(built(service, request(0, "x y"), twice))
    again = built(service_of(rocketmq, entries=20), request(0), twice, twice)
    assert [8] == counts(again)


def test_a_message_told_again_is_completed_by_segproof() -> None:
    """With what is missing, be it over two files."""
    service = built(service_of(SEGPROOF, entries=5), request(0, "x y"), request(50, "a b"))
    built(service, request(50, "a b c"), request(50, "a b c"))
    assert [5, 2] == counts(service)
    assert (50,) == asked(service, "c")


# --- files that are made -------------------------------------------------------------------------


def test_a_full_file_is_continued() -> None:
    """The new file begins at the end of the full one, which the checkpoint then covers."""
    service = built(service_of(), request(9, "a b c d e"), request(20, None))
    first, second = service.index_files
    assert (TIME_MS, TIME_MS, 9, 9, 0, 1) == second.header
    assert first.is_write_full
    assert TIME_MS == service.store_checkpoint.index_msg_timestamp
    assert TIME_MS.to_bytes(8, "big") == service.files.image("checkpoint")[16:24]


def test_two_files_of_one_millisecond() -> None:
    """Upstream they share path and bytes; segproof names the second one millisecond later."""
    first = "20261121011607450"
    for release, second in ((NEWEST_ROCKETMQ, first), (SEGPROOF, "20261121011607451")):
        service = built(service_of(release), request(9, "a b c d e f"))
        assert [first, second] == names(service)


def test_a_file_that_cannot_be_created(any_rocketmq: Release) -> None:
    """A file is in the way of the folder: upstream an error of the lock hides it."""
    blocked = service_of(any_rocketmq, {"index": b""})
    kind = ErrorKind.IO_ERROR if any_rocketmq is SEGPROOF else ErrorKind.LOCK_STATE
    assert Raised(kind) == outcome_of(blocked.build_index, request(0))
    assert (True, ()) == (blocked.load(True), blocked.index_files)


@pytest.mark.parametrize(
    ("slots", "entries", "outcome"),
    [(4, 1, ENDLESS), (0, 6, Raised(ErrorKind.ARITHMETIC)), (10, 214748365, ENDLESS)],
)
def test_a_put_that_never_ends(slots: int, entries: int, outcome: Raised) -> None:
    """Without room for an entry upstream makes files for ever, and without slots it dies."""
    service = service_of(slots=slots, entries=entries)
    assert outcome == outcome_of(service.build_index, request(0))
    ours = service_of(SEGPROOF, slots=slots, entries=entries)
    assert INVALID == outcome_of(ours.build_index, request(0))
    assert ["checkpoint"] == list(ours.files)


# --- queries -------------------------------------------------------------------------------------


def test_a_query_goes_back_in_time(any_rocketmq: Release) -> None:
    """Newest first, cut at the number, ended by the first file that begins earlier."""
    service = rolled(any_rocketmq)
    assert tuple(range(100, -1, -10)) == asked(service)
    assert (100, 90, 80) == asked(service, most=3)
    # The first entry of a continued file reads as later by the gap of 10 seconds.
    assert (100, 90, 80, 70) == asked(service, begin=TIME_MS + 65_000)
    found = service.query_offset("T", "none", 64, 0, MAX_INT64)
    assert QueryOffsetResult((), TIME_MS + 100_000, 100) == found


def test_numbers_of_a_query(any_rocketmq: Release) -> None:
    """A negative number is refused; the greatest one exhausts memory in older releases."""
    query = service_of(any_rocketmq).query_offset
    assert INVALID == outcome_of(query, "T", "k", -1, 0, MAX_INT64)
    most = outcome_of(query, "T", "k", 2**31 - 1, 0, MAX_INT64)
    assert (OUT_OF_MEMORY if any_rocketmq.has(QueryMakesItsList) else NOTHING) == most


def test_number_of_a_typed_query() -> None:
    """5.4.0 cuts the greatest number too late where a type of key is given."""
    query = service_of(RELEASES["rocketmq-5.4.0"]).query_offset
    assert OUT_OF_MEMORY == outcome_of(query, "T", "k", 2**31 - 1, 0, MAX_INT64, "T")
    assert NOTHING == query("T", "k", 2**31 - 1, 0, MAX_INT64)


def test_an_empty_file_hides_older_ones(any_rocketmq: Release) -> None:
    """A zero file that sorts last ends each query that begins above 0, but not in segproof."""
    images = {**rolled(any_rocketmq).files.images, "index/30000000000000000": bytes(176)}
    service = service_of(any_rocketmq, images)
    service.load(True)
    assert (11 if any_rocketmq is SEGPROOF else 0) == len(asked(service, begin=1))
    assert 11 == len(asked(service))


def test_a_corrupt_chain_ends_a_query_of_segproof() -> None:
    """Upstream answers what it likes; segproof says what is wrong."""
    service = built(service_of(SEGPROOF, slots=1), request(0), request(9))
    (file,) = service.index_files
    service.files.write(file.file_name, file.image[:40] + b"\0\0\0\x09" + file.image[44:])
    assert CORRUPT == outcome_of(service.query_offset, "T", "k", 64, 0, MAX_INT64)


# --- loading -------------------------------------------------------------------------------------


def test_loading_in_the_order_of_names(any_rocketmq: Release) -> None:
    """Names are numbers in the order of their characters; another name stays where it is, or ends
    the loading of 3.2.6.
    """
    numbers = ["+5", "-7", "10", "100", "9", "\u0663"]
    images: dict[str, Any] = {f"index/{name}": bytes(176) for name in numbers}
    service = service_of(any_rocketmq, {**images, "index/notanumber": b"x"})
    if any_rocketmq.has(StrangeNameEndsLoading):
        assert Raised(ErrorKind.NUMBER_FORMAT) == outcome_of(service.load, True)
        assert numbers[:-1] == names(service)
        return
    assert (True, numbers) == (service.load(True), names(service))
    assert b"x" == service.files.image("index/notanumber")
    service.load(True)
    assert numbers * (1 if any_rocketmq is SEGPROOF else 2) == names(service)


def test_loading_files_of_another_size(any_rocketmq: Release) -> None:
    """Upstream grows a short one; segproof refuses it, and changes nothing."""
    service = service_of(any_rocketmq, {"index/5": b"\0", "index/6": bytes(176)})
    outcome = outcome_of(service.load, True)
    if any_rocketmq is SEGPROOF:
        assert (CORRUPT, b"\0") == (outcome, service.files.image("index/5"))
    else:
        assert (True, ["5", "6"]) == (outcome, names(service))
        assert bytes(176) == service.files.image("index/5")


def test_loading_stops_at_a_folder(any_rocketmq: Release) -> None:
    """A folder with a number as its name ends the loading; what was listed before it stays."""
    images = {"index/5": bytes(176), "index/6/x": b"", "index/7": bytes(176)}
    service = service_of(any_rocketmq, images)
    assert (False, ["5"]) == (service.load(True), names(service))


def test_loading_after_a_crash(any_rocketmq: Release) -> None:
    """Files beyond the checkpoint are deleted; the one that it covers exactly stays."""
    service = rolled(any_rocketmq)
    service.flush(2)
    images = dict(service.files.images)
    crashed, stopped = (service_of(any_rocketmq, images) for _ in range(2))
    crashed.load(False)
    assert names(service)[:2] == names(crashed)
    assert TIME_MS + 90_000 == crashed.store_checkpoint.index_msg_timestamp
    assert f"index/{names(service)[2]}" not in crashed.files
    stopped.load(True)
    assert 3 == len(stopped.index_files)


# --- the end -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("offset", "left"), [(40, 3), (41, 2), (MAX_INT64, 1)])
def test_expired_files_are_deleted(offset: int, left: int, any_rocketmq: Release) -> None:
    """Strictly before the offset, never the last."""
    service = rolled(any_rocketmq)
    expected = names(service)[-left:]
    service.delete_expired_file(offset)
    assert expected == names(service)


def test_a_file_that_is_held_stays(any_rocketmq: Release) -> None:
    """It answers nothing; later it is deleted all the same."""
    service = rolled(any_rocketmq)
    last = names(service)[-1:]
    service.index_files[0].resource.hold()
    service.delete_expired_file(99)
    assert 3 == len(service.index_files)
    assert tuple(range(100, 40, -10)) == asked(service)
    service.files.now_ms += 3000
    service.delete_expired_file(99)
    assert last == names(service)


def test_ending(any_rocketmq: Release) -> None:
    """destroy deletes; shutdown empties the list, and does nothing in 4.x."""
    destroyed, ended = rolled(any_rocketmq), rolled(any_rocketmq)
    destroyed.destroy()
    assert (["checkpoint"], ()) == (list(destroyed.files), destroyed.index_files)
    assert 528 == ended.total_size
    ended.shutdown()
    left = 3 if any_rocketmq.has(ShutdownDoesNothing) else 0
    assert (left, 4, 176 * left) == (
        len(ended.index_files),
        len(ended.files.images),
        ended.total_size,
    )
