# SPDX-License-Identifier: Apache-2.0
"""Histories of a partition's log with the answers of the classes of Kafka 4.3.1; the model agrees.

`log_histories.json` has histories chosen, for the commands and answers in them, from hundreds of
random ones: appends of every kind, reads, cuts, retention, stops, crashes and crafted leftovers.
After each command the answer, the state, and names, sizes and digests of all files are compared;
of producer snapshots the entries, which have no order. What the classes schedule was run at once.
"""

import hashlib
import json
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from segproof_model.kafka.broker.log_validator import LogAppendInfo
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.broker.producer_snapshot import read_snapshot
from segproof_model.kafka.format.compression import Codecs
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_segment import FetchDataInfo
from segproof_model.kafka.format.record_file import TimestampAndOffset
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Raised, Step
from segproof_model.language.states import apply, opened, refusal
from segproof_model.releases import release_named

KAFKA_4_3_1 = release_named("kafka-4.3.1")
HISTORIES = json.loads((Path(__file__).parent / "log_histories.json").read_text(encoding="ascii"))
LAWS_OF_LOGS = (
    "LOG-5", "LOG-6", "LOG-7", "LOG-8", "LOG-9", "LOG-10", "LOG-11", "LOG-12", "LOG-13", "LOG-14",
    "LOG-15", "LOG-16", "LOG-17", "LOG-18", "LOG-19", "LOG-20", "LOG-21",
)  # fmt: skip
LAWS_OF_LOADING = (
    "LOAD-1", "LOAD-2", "LOAD-3", "LOAD-4", "LOAD-5", "LOAD-6", "LOAD-7", "LOAD-8", "LOAD-9",
    "LOAD-10", "LOAD-12", "LOAD-13", "LOAD-14", "LOAD-15",
)  # fmt: skip


def inflated(codec: int, data: bytes, limit: int) -> bytes:
    """Inflate gzip, the only codec of the histories."""
    assert codec == 1
    return zlib.decompress(data, 31, limit)


def _unused(*_: object) -> Any:
    raise AssertionError("no history compresses")


CODECS = Codecs(inflated, _unused, _unused)


def sha(data: bytes) -> str:
    """Return a short digest."""
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()[:12]


def text_of(outcome: object) -> str:
    """Return an answer as the histories have it."""
    if isinstance(outcome, Raised):
        return f"ERR {outcome.kind}"
    if isinstance(outcome, LogAppendInfo):
        return " ".join(map(str, outcome[:6]))
    if isinstance(outcome, FetchDataInfo):
        data = b"" if outcome.records is None else outcome.records.read()
        aborted = outcome.aborted_transactions
        listed = "".join(f"{one.producer_id}@{one.first_offset}," for one in aborted or ())
        place = " ".join(map(str, outcome.fetch_offset_metadata))
        is_cut = str(outcome.first_entry_incomplete).lower()
        return f"{place} {len(data)} {sha(data)} {is_cut} {'none' if aborted is None else listed}"
    if isinstance(outcome, TimestampAndOffset):
        epoch = "none" if outcome.leader_epoch is None else outcome.leader_epoch
        return f"{outcome.timestamp} {outcome.offset} {epoch}"
    if isinstance(outcome, tuple):
        return "".join(f"{base}," for base in outcome)
    return str(outcome).lower() if isinstance(outcome, bool) else str(outcome)


def state_of(log: PartitionLog) -> str:
    """Return the state of a log as the histories have it."""
    segments = "".join(f"{one.base_offset}/{one.size}," for one in log.log_segments)
    epochs = "".join(f"{e.epoch}@{e.start_offset}," for e in log.leader_epoch_cache.entries)
    producers = ""
    for _, entry in sorted(log.producer_state_manager.active_producers.items()):
        first = entry.current_txn_first_offset
        last = f"{entry.last_seq}:{entry.last_offset}:{-1 if first is None else first}"
        producers += f"{entry.producer_id}:{entry.producer_epoch}:{last},"
    return (
        f"start={log.log_start_offset} end={log.log_end_offset} hw={log.high_watermark} "
        f"lso={log.last_stable_offset} rp={log.recovery_point} segs={segments} epochs={epochs} "
        f"pids={producers} mapend={log.producer_state_manager.map_end_offset}"
    )


def files_of(files: Files) -> str:
    """Return a digest of the list of files."""
    rows = []
    for name in files:
        known = data = files.image(name)
        if ".snapshot" in name:
            is_corrupt = refusal(partial(read_snapshot, data)) is not None
            entries = [data[at : at + 46] for at in range(10, len(data), 46)]
            known = data if is_corrupt else data[6:10] + b"".join(sorted(entries))
        rows.append(f"{name.removeprefix('t-0/')}:{len(data)}:{sha(known)}")
    return f"{zlib.crc32(' '.join(rows).encode()):08x}"


def options_of(words: list[str]) -> LogConfig:
    """Return the options, which the histories have under Kafka's names."""
    options: dict[str, Any] = {}
    for word in words:
        name, _, value = word.removeprefix("internal.").partition("=")
        is_number = value.lstrip("-").isdigit()
        parsed = int(value) if is_number else {"true": True, "false": False}.get(value, value)
        options[name.replace(".", "_")] = parsed
    return LogConfig(**options)


def open_log(words: list[str], files: Files) -> Step[Any]:
    """Open the log."""
    start, recovery_point, is_clean = int(words[2]), int(words[3]), words[4] == "true"
    given = "t-0", options_of(words[5:]), start, recovery_point, is_clean
    return opened(KAFKA_4_3_1.kind(PartitionLog), files, *given, codecs=CODECS)


def number(words: list[str], at: int) -> int | None:
    """Return a number, or None where there is no such word."""
    return int(words[at]) if len(words) > at else None


COMMANDS: dict[str, Callable[[PartitionLog, list[str]], Any]] = {
    "leader": lambda log, w: log.append_as_leader(
        bytes.fromhex(w[2]), int(w[1]), cast(Any, w[3].lower()), int(w[4])
    ),
    "follower": lambda log, w: log.append_as_follower(bytes.fromhex(w[2]), int(w[1])),
    "read": lambda log, w: log.read(int(w[1]), int(w[2]), cast(Any, w[3].lower()), w[4] == "true"),
    "time": lambda log, w: log.fetch_offset_by_timestamp(int(w[1])),
    "truncate": lambda log, w: log.truncate_to(int(w[1])),
    "truncate_fully": lambda log, w: log.truncate_fully_and_start_at(int(w[1]), number(w, 2)),
    "roll": lambda log, w: log.roll(number(w, 1)),
    "delete_old": lambda log, w: log.delete_old_segments(),
    "start": lambda log, w: log.maybe_increment_log_start_offset(int(w[1])),
    "hw": lambda log, w: log.update_high_watermark(int(w[1])),
    "expire": lambda log, w: log.remove_expired_producers(),
    "flush": lambda log, w: log.flush(w[1] == "true"),
    "split": lambda log, w: log.split_overflowed_segment(int(w[1])),
    "close": lambda log, w: log.close(),
    "handlers": lambda log, w: log.close_handlers(),
}


def outside(state: PartitionLog | Files, words: list[str]) -> None:
    """Do what no log does: set the clock, by which files fall due, write a file or remove it."""
    files = state if isinstance(state, Files) else state.files
    if words[0] == "now":
        files.now_ms = int(words[1])
        if isinstance(state, PartitionLog):
            state.delete_pending_files()
    elif words[2] == "None":
        files.remove(f"t-0/{words[1]}")
    else:
        files.write(f"t-0/{words[1]}", bytes.fromhex(words[2]))


@pytest.mark.checks(*LAWS_OF_LOGS, *LAWS_OF_LOADING, "PROD-14")
@pytest.mark.parametrize("name", HISTORIES["histories"])
def test_history(name: str) -> None:
    """Every answer, state and list of files is that of the classes."""
    state: Any = Files()
    for line, answer, state_text, files in HISTORIES["histories"][name]:
        words = line.split(" ")
        if words[0] in ("now", "put"):
            state = apply(state, outside, words).after
            continue
        if words[0] == "open":
            left = state if isinstance(state, Files) else state.files
            step = open_log(words, left)
            told = "ok" if isinstance(step.after, PartitionLog) else text_of(step.outcome)
        else:
            step = apply(state, COMMANDS[words[0]], words)
            is_query = words[0] in ("time", "read")
            told = text_of(step.outcome)
            if step.outcome is None:
                told = "none" if is_query else "ok"
        state = step.after
        assert told == answer, line
        if isinstance(state, PartitionLog):
            state = apply(state, lambda log: log.leader_epoch_cache.run_scheduled_write()).after
            assert state_of(state) == state_text, line
        assert files_of(state if isinstance(state, Files) else state.files) == files, line
