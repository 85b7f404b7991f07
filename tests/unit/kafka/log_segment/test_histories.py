# SPDX-License-Identifier: Apache-2.0
"""Histories of segments with the answers of the classes of Kafka 4.3.1.

After each step the answer and the size of every file, at the end the first digits of each file's
MD5, as a Java program printed them.
"""

import hashlib
from collections.abc import Sequence
from typing import Any

import pytest

from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.batch_writing import write_batch, write_end_transaction_marker
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment, RollParams
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.offset_index import OffsetPosition
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import RELEASES

RELEASE = RELEASES["kafka-4.3.1"]

HISTORIES: dict[str, tuple[str, list[tuple[str, str, str]], list[str]]] = {
    # Base offset, interval, index bytes, preallocate, bytes; then operation, answer, file sizes.
    "timestamps that fall, a cut inside a batch, a clean restart": (
        "40 0 1000 0 0",
        [
            ("append 43 40:1000,1010 42:990,980", "None", ".index:1000 .log:170 .timeindex:996"),
            ("append 47 44:1020 45:1005,1030 47:-1", "None", ".index:1000 .log:401 .timeindex:996"),
            ("maxpair", "1030,46", ".index:1000 .log:401 .timeindex:996"),
            ("find 1005 0", "1010,41,None", ".index:1000 .log:401 .timeindex:996"),
            ("find 1021 41", "1030,46,None", ".index:1000 .log:401 .timeindex:996"),
            ("find 1031 0", "None", ".index:1000 .log:401 .timeindex:996"),
            ("truncate_to 46", "158", ".index:1000 .log:243 .timeindex:996"),
            ("maxpair", "1020,44", ".index:1000 .log:243 .timeindex:996"),
            ("next", "45", ".index:1000 .log:243 .timeindex:996"),
            ("close", "None", ".index:16 .log:243 .timeindex:24"),
            ("reopen 1", "None", ".index:16 .log:243 .timeindex:24"),
            ("maxpair", "1020,44", ".index:16 .log:243 .timeindex:24"),
            ("read 41 100 none 0", "40,40,0,empty,0", ".index:16 .log:243 .timeindex:24"),
            (
                "read 41 100 2147483647 1",
                "40,40,0,100:081f7a1ae5885876a3fe0769356ae754,0",
                ".index:16 .log:243 .timeindex:24",
            ),
            (
                "read 43 10 200 1",
                "42,40,85,85:c8a681bf9dd184dd7de093954130dbba,0",
                ".index:16 .log:243 .timeindex:24",
            ),
            (
                "read 43 10 200 0",
                "42,40,85,10:bff38ceafe501b0c185c0143c9120f6d,1",
                ".index:16 .log:243 .timeindex:24",
            ),
            ("append 45 45:1001", "None", ".index:16 .log:316 .timeindex:24"),
            ("translate 45", "45,243,73", ".index:16 .log:316 .timeindex:24"),
        ],
        [".index:15a4a2868bb2", ".log:5a9cb7d98864", ".timeindex:cb92cc0a4d21"],
    ),
    "indexes that are full": (
        "0 0 24 0 0",
        [
            ("append 0 0:10", "None", ".index:24 .log:73 .timeindex:24"),
            ("append 1 1:20", "None", ".index:24 .log:146 .timeindex:24"),
            ("append 2 2:30", "!invalid-argument", ".index:24 .log:219 .timeindex:24"),
            ("append 3 3:40", "!invalid-argument", ".index:24 .log:292 .timeindex:24"),
            ("maxpair", "40,3", ".index:24 .log:292 .timeindex:24"),
            ("next", "4", ".index:24 .log:292 .timeindex:24"),
            ("roll 1000000 1000000 5 4 0 0", "1", ".index:24 .log:292 .timeindex:24"),
            ("recover", "!invalid-argument m2", ".index:24 .log:292 .timeindex:24"),
            ("resize 48", "None", ".index:48 .log:292 .timeindex:48"),
            ("append 4 4:50", "None", ".index:48 .log:365 .timeindex:48"),
            ("next", "5", ".index:48 .log:365 .timeindex:48"),
            ("inactive", "None", ".index:24 .log:365 .timeindex:24"),
            ("close", "None", ".index:24 .log:365 .timeindex:24"),
        ],
        [".index:4baeb72825b6", ".log:335845e6832b", ".timeindex:7fc35c900709"],
    ),
    "a crash, damage, recovery": (
        "100 100 1000 0 0",
        [
            ("append 103 100:5 101:7 102:6 103:4", "None", ".index:1000 .log:292 .timeindex:996"),
            ("append 106 104:9,8,3", "None", ".index:1000 .log:389 .timeindex:996"),
            ("crash", "None", ".index:1000 .log:389 .timeindex:996"),
            ("reopen 1", "None", ".index:1000 .log:389 .timeindex:996"),
            ("maxpair", "0,100", ".index:1000 .log:389 .timeindex:996"),
            ("next", "107", ".index:1000 .log:389 .timeindex:996"),
            ("damage .log 330 flip", "None", ".index:1000 .log:389 .timeindex:996"),
            ("recover", "97 m104", ".index:8 .log:292 .timeindex:12"),
            ("maxpair", "7,101", ".index:8 .log:292 .timeindex:12"),
            ("next", "104", ".index:8 .log:292 .timeindex:12"),
            ("waited 500 20", "15", ".index:8 .log:292 .timeindex:12"),
            ("append 106 104:9,8,3", "None", ".index:8 .log:389 .timeindex:12"),
            ("recover", "0 m107", ".index:16 .log:389 .timeindex:24"),
            ("find 8 0", "9,104,None", ".index:16 .log:389 .timeindex:24"),
        ],
        [".index:d42f77517d28", ".log:1e59c457a8e3", ".timeindex:554879a7960f"],
    ),
    "a preallocated log": (
        "0 0 100 1 2000",
        [
            ("append 1 0:-1,-1", "None", ".index:96 .log:2000 .timeindex:96"),
            ("largestrec", "None", ".index:96 .log:2000 .timeindex:96"),
            ("find -1 0", "-1,0,None", ".index:96 .log:2000 .timeindex:96"),
            ("firstts", "9223372036854775807", ".index:96 .log:2000 .timeindex:96"),
            ("now 300", "None", ".index:96 .log:2000 .timeindex:96"),
            ("waited 310 900", "310", ".index:96 .log:2000 .timeindex:96"),
            ("inactive", "None", ".index:0 .log:85 .timeindex:0"),
            ("append 2 2:7", "!invalid-argument", ".index:0 .log:158 .timeindex:0"),
            ("close", "None", ".index:0 .log:158 .timeindex:0"),
        ],
        [".index:d41d8cd98f00", ".log:010496f99472", ".timeindex:d41d8cd98f00"],
    ),
    "offsets too far from the base": (
        "2147483643 0 1000 0 0",
        [
            ("append 2147483643 2147483643:1", "None", ".index:1000 .log:73 .timeindex:996"),
            (
                "append 4294967291 4294967291:2",
                "!segment-overflow",
                ".index:1000 .log:73 .timeindex:996",
            ),
            (
                "append 2147483642 2147483642:2",
                "!segment-overflow",
                ".index:1000 .log:73 .timeindex:996",
            ),
            ("overflow", "0", ".index:1000 .log:73 .timeindex:996"),
            (
                "fromfile 0 2147483644:3 4294967290:4 4294967291:5 4294967292:6",
                "146",
                ".index:1000 .log:219 .timeindex:996",
            ),
            ("next", "4294967291", ".index:1000 .log:219 .timeindex:996"),
            ("overflow", "0", ".index:1000 .log:219 .timeindex:996"),
            ("roll 1000 1000000 5 4294967291 0 1", "1", ".index:1000 .log:219 .timeindex:996"),
            (
                "read 4294967290 1000 1000 0",
                "4294967290,2147483643,146,73:0157e0436333c06a6155752e28e1b075,0",
                ".index:1000 .log:219 .timeindex:996",
            ),
            (
                "append 4294967290 4294967291:8",
                "!index-offset-overflow",
                ".index:1000 .log:292 .timeindex:996",
            ),
            ("overflow", "1", ".index:1000 .log:292 .timeindex:996"),
            ("recover", "!segment-overflow m4294967291", ".index:1000 .log:292 .timeindex:996"),
        ],
        [".index:ad518fc7ed93", ".log:d97d8e9023c1", ".timeindex:32be704295ce"],
    ),
    "transactions": (
        "10 0 1000 0 0",
        [
            ("append 12 10:1@7 11:2@8 12:3@9", "None", ".index:1000 .log:219 .timeindex:996"),
            ("append 14 13:abort8 14:abort7", "None", ".index:1000 .log:375 .timeindex:996"),
            ("flush", "None", ".index:1000 .log:375 .timeindex:996"),
            (
                "recover",
                "0 p7:0:10:-1 p8:0:11:-1 p9:0:12:12 m15",
                ".index:32 .log:375 .timeindex:36 .txnindex:68",
            ),
            (
                "collect 0 100",
                "8:11:13:10 7:10:14:12 0",
                ".index:32 .log:375 .timeindex:36 .txnindex:68",
            ),
            (
                "collect 12 13",
                "8:11:13:10 7:10:14:12 0",
                ".index:32 .log:375 .timeindex:36 .txnindex:68",
            ),
            ("truncate_to 14", "78", ".index:1000 .log:297 .timeindex:996 .txnindex:34"),
            ("collect 0 100", "8:11:13:10 0", ".index:1000 .log:297 .timeindex:996 .txnindex:34"),
            ("append 14 14:abort7", "None", ".index:1000 .log:375 .timeindex:996 .txnindex:34"),
            ("close", "None", ".index:24 .log:375 .timeindex:36 .txnindex:34"),
            ("reopen 1", "None", ".index:24 .log:375 .timeindex:36 .txnindex:34"),
            (
                "recover",
                "0 p7:0:10:-1 p8:0:11:-1 p9:0:12:12 m15",
                ".index:32 .log:375 .timeindex:36 .txnindex:68",
            ),
        ],
        [
            ".index:fa55938222e4",
            ".log:9fc1a2e3a65b",
            ".timeindex:af008087b763",
            ".txnindex:b039d855cad8",
        ],
    ),
    "names, and files that are not there": (
        "0 0 1000 0 0",
        [
            ("sanity 0", "!file-not-found", ".log:0"),
            ("suffix - .cleaned", "None", ".log.cleaned:0"),
            ("hassuffix .cleaned", "1", ".log.cleaned:0"),
            ("suffix .swap -", "!invalid-argument", ".log.cleaned:0"),
            ("append 0 0:1", "None", ".index.cleaned:1000 .log.cleaned:73 .timeindex.cleaned:996"),
            ("suffix .cleaned .swap", "None", ".index.swap:1000 .log.swap:73 .timeindex.swap:996"),
            ("sanity 1", "None", ".index.swap:1000 .log.swap:73 .timeindex.swap:0"),
            (
                "append 1 1:2",
                "!invalid-argument",
                ".index.swap:1000 .log.swap:146 .timeindex.swap:0",
            ),
            ("suffix .swap -", "None", ".index:1000 .log:146 .timeindex:0"),
            ("upper 0 60", "1", ".index:1000 .log:146 .timeindex:0"),
            ("upper 0 76", "None", ".index:1000 .log:146 .timeindex:0"),
            ("upper 0 77", "None", ".index:1000 .log:146 .timeindex:0"),
            ("delete", "None", ""),
            ("next", "!unmapped", ""),
        ],
        [],
    ),
}


def batches(words: Sequence[str]) -> bytes:
    """Return batches named base:timestamps@producer, or base:abort and a producer."""
    data = b""
    for base, _, rest in (word.partition(":") for word in words):
        times, _, producer = rest.replace("abort", "@").partition("@")
        if not times:
            written = write_end_transaction_marker(
                "ABORT",
                offset=int(base),
                timestamp=9,
                producer_id=int(producer),
                producer_epoch=0,
                coordinator_epoch=0,
            )
        else:
            numbers = enumerate(times.split(","))
            written = write_batch(
                [Record(int(base) + n, int(at), None, b"hello") for n, at in numbers],
                base_offset=int(base),
                producer_id=int(producer or -1),
                producer_epoch=0 if producer else -1,
                base_sequence=0 if producer else -1,
                is_transactional=bool(producer),
            )
        data += written
    return data


OPERATIONS = {
    "maxpair": "read_max_timestamp_and_offset_so_far",
    "next": "read_next_offset",
    "find": "find_offset_by_timestamp",
    "translate": "translate_offset",
    "waited": "time_waited_for_roll",
    "firstts": "get_first_batch_timestamp",
    "inactive": "on_become_inactive_segment",
    "resize": "resize_indexes",
    "overflow": "has_overflow",
    "collect": "collect_aborted_txns",
    "crash": "close_handlers",
    "suffix": "change_file_suffixes",
    "hassuffix": "has_suffix",
    "delete": "delete_if_exists",
    "sanity": "sanity_check",
}


def opened(
    files: Files, base_offset: int, interval: int, index_bytes: int, **options: Any
) -> LogSegment:
    """Open a segment."""
    config = LogConfig(index_interval_bytes=interval, segment_index_bytes=index_bytes)
    return RELEASE.kind(LogSegment)(files, "", base_offset, config, **options)


def acted(segment: LogSegment, words: list[str]) -> Any:
    """Do one step of a history, and return the answer or `Raised`."""
    name, *rest = words
    values: list[Any] = [int(word) if word.lstrip("-").isdigit() else word for word in rest]
    match name:
        case "append":
            records = segment.kind(MemoryRecords)(batches(rest[1:]))
            return outcome_of(segment.append, values[0], records)
        case "fromfile":
            source = RecordFile(Files({"source": batches(rest[1:])}), "source")
            return outcome_of(segment.append_from_file, source, 0)
        case "read":
            known = None if rest[2] == "none" else values[2]
            return outcome_of(segment.read, values[0], values[1], known, rest[3] == "1")
        case "recover":
            producers = segment.kind(ProducerStateManager)(segment.files)
            cache = segment.kind(LeaderEpochFileCache)(Files(), None)
            removed = outcome_of(segment.recover, producers, cache)
            return " ".join([in_words(removed), *known_of(producers)])
        case "roll":
            return outcome_of(segment.should_roll, RollParams(*values))
        case "upper":
            place = OffsetPosition(0, values[0])
            return outcome_of(segment.fetch_upper_bound_offset, place, values[1])
        case "now":
            segment.files.now_ms = values[0]
            return None
        case "largestrec":
            return segment.largest_record_timestamp
        case "damage":
            log, at = segment.log.image, values[1]
            segment.files.write(
                segment.log.name, log[:at] + bytes([log[at] ^ 0x41]) + log[at + 1 :]
            )
            return None
        case "suffix":
            values = ["" if word == "-" else word for word in rest]
        case "sanity":
            values = [rest[0] == "1"]
    return outcome_of(getattr(segment, OPERATIONS.get(name, name)), *values)


def known_of(producers: ProducerStateManager) -> list[str]:
    """Return what is known of each producer, and up to where, as the histories write it."""
    entries = sorted(producers.active_producers.items())
    words = [
        f"p{number}:{one.producer_epoch}:{one.last_offset}:{one.current_txn_first_offset}"
        for number, one in entries
    ]
    return [*(word.replace("None", "-1") for word in words), f"m{producers.map_end_offset}"]


def in_words(outcome: Any) -> str:
    """Return an answer as the histories write it."""
    match outcome:
        case Raised(kind):
            return f"!{kind}"
        case FetchDataInfo(metadata, records, is_incomplete):
            data = b"" if records is None else records.read()
            read = "empty" if not data else f"{len(data)}:{hashlib.md5(data).hexdigest()}"
            return f"{','.join(map(str, metadata))},{read},{int(is_incomplete)}"
        case bool():
            return str(int(outcome))
        case ([*txns], bool(is_complete)):
            found = [":".join(map(str, entry[1:])) for entry in txns]
            return " ".join([*found, str(int(is_complete))])
    return ",".join(map(str, outcome)) if isinstance(outcome, tuple) else str(outcome)


@pytest.mark.checks("SEG-2", "SEG-10", "SEG-20", "SEG-38")
@pytest.mark.parametrize("name", HISTORIES)
def test_history(name: str) -> None:
    """Each answer, the size of each file after each step, and each file's bytes at the end."""
    options, steps, digests = HISTORIES[name]
    *numbers, preallocate, size = map(int, options.split())
    files = Files()
    segment = opened(files, *numbers, preallocate=bool(preallocate), init_file_size=size)
    for line, answer, sizes in steps:
        words = line.split()
        if words[0] == "reopen":
            segment = opened(files, *numbers, file_already_exists=True)
        else:
            assert answer == in_words(acted(segment, words)), line
        assert sizes == " ".join(f"{one[20:]}:{len(files.image(one))}" for one in files), line
    digested = [(one, hashlib.md5(files.image(one)).hexdigest()[:12]) for one in files]
    assert digests == [f"{one[20:]}:{digest}" for one, digest in digested]
