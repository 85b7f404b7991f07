# SPDX-License-Identifier: Apache-2.0
"""Histories of segments with the answers of the classes of Kafka 4.3.1; the model agrees.

After each step of `segment_histories.json` the answer and the size of every file are compared, at
the end the first digits of each file's MD5.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from segproof_model.kafka.broker.leader_epoch_cache import LeaderEpochFileCache
from segproof_model.kafka.broker.producer_state import ProducerStateManager
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_segment import FetchDataInfo, LogSegment, RollParams
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.offset_index import OffsetPosition
from segproof_model.kafka.format.record_file import RecordFile
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import RELEASES

RELEASE = RELEASES["kafka-4.3.1"]
FILE = Path(__file__).parent / "segment_histories.json"
HISTORIES = json.loads(FILE.read_text(encoding="ascii"))["histories"]


def opened(
    files: Files, base_offset: int, interval: int, index_bytes: int, **options: Any
) -> LogSegment:
    """Open a segment."""
    config = LogConfig(index_interval_bytes=interval, segment_index_bytes=index_bytes)
    return RELEASE.kind(LogSegment)(files, "", base_offset, config, **options)


def acted(segment: LogSegment, name: str, arguments: list[Any]) -> Any:
    """Do one step of a history, and return the answer or `Raised`."""
    match name, arguments:
        case "append", [offset, records]:
            arguments = [offset, segment.kind(MemoryRecords)(bytes.fromhex(records))]
        case "append_from_file", [records]:
            source = RecordFile(Files({"source": bytes.fromhex(records)}), "source")
            arguments = [source, 0]
        case "recover", _:
            producers = segment.kind(ProducerStateManager)(segment.files)
            cache = segment.kind(LeaderEpochFileCache)(Files(), None)
            removed = outcome_of(segment.recover, producers, cache)
            return " ".join([in_words(removed), *known_of(producers)])
        case "should_roll", _:
            arguments = [RollParams(*arguments)]
        case "fetch_upper_bound_offset", [position, size]:
            arguments = [OffsetPosition(0, position), size]
        case "now", [now_ms]:
            segment.files.now_ms = now_ms
            return None
        case "largest_record_timestamp", _:
            return segment.largest_record_timestamp
        case "damage", [at]:
            log = bytearray(segment.log.image)
            log[at] ^= 0x41
            segment.files.write(segment.log.name, bytes(log))
            return None
    return outcome_of(getattr(segment, name), *arguments)


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
    history, files = HISTORIES[name], Files()
    size = history["preallocated_bytes"]
    segment = opened(
        files, *history["opening"], preallocate=size is not None, init_file_size=size or 0
    )
    for operation, arguments, answer, sizes in history["steps"]:
        if operation == "reopen":
            segment = opened(files, *history["opening"], file_already_exists=True)
        else:
            assert answer == in_words(acted(segment, operation, arguments)), (operation, arguments)
        assert sizes == " ".join(f"{one[20:]}:{len(files.image(one))}" for one in files), operation
    digested = [(one, hashlib.md5(files.image(one)).hexdigest()[:12]) for one in files]
    assert history["digests"] == [f"{one[20:]}:{digest}" for one, digest in digested]
