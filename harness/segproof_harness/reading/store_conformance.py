# SPDX-License-Identifier: Apache-2.0
"""What a RocketMQ release recorded about its store, compared with our answers, one by one.

The store is copied into files in memory first, since opening an index maps it for writing.

Used by: tests/golden/test_rocketmq_answers.py.
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from segproof.files import Files
from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.index_file import IndexFile
from segproof.rocketmq.index_service import IndexService
from segproof.rocketmq.message import dispatch_request_of
from segproof.rocketmq.store_checkpoint import StoreCheckpoint
from segproof_harness.memory_files import MemoryFiles
from segproof_model.directory import Directory
from segproof_model.profiles import Profile
from segproof_model.rocketmq import commit_log as model_log
from segproof_model.rocketmq import index_file as model_file
from segproof_model.rocketmq import index_service as model_service
from segproof_model.rocketmq import message as model_message
from segproof_model.rocketmq import store_checkpoint as model_checkpoint

HEADER = {
    "beginTimestamp": "begin_timestamp",
    "endTimestamp": "end_timestamp",
    "beginPhyOffset": "begin_phy_offset",
    "endPhyOffset": "end_phy_offset",
    "hashSlotCount": "hash_slot_count",
    "indexCount": "index_count",
}
CHECKPOINT = {
    "physicMsgTimestamp": "physic_msg_timestamp",
    "logicsMsgTimestamp": "logics_msg_timestamp",
    "indexMsgTimestamp": "index_msg_timestamp",
    "minTimestamp": "min_timestamp",
    "minTimestampIndex": "min_timestamp_index",
}
ROOT = "/store"


@dataclass(slots=True)
class StoreTally:
    """How many answers of each kind were compared, and which differ."""

    compared: Counter[str] = field(default_factory=Counter)
    mismatches: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """How many answers were compared."""
        return self.compared.total()

    def compare(self, kind: str, asked: object, expected: object, found: object) -> None:
        """Count one answer."""
        self.compared[kind] += 1
        if expected != found:
            self.mismatches.append(f"{kind} {asked}: expected {expected}, found {found}")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One recorded store."""

    folder: Path
    expected: dict[str, Any]

    @property
    def release(self) -> str:
        """The release that wrote it, such as 4.9.8."""
        return str(self.expected["release"])

    @property
    def geometry(self) -> tuple[int, int]:
        """Slots and entries of each index file."""
        config = self.expected["config"]
        return config["maxHashSlotNum"], config["maxIndexNum"]

    @property
    def files(self) -> dict[str, bytes]:
        """All files of the store, by their names in it."""
        store = self.folder / "store"
        paths = [path for path in store.rglob("*") if path.is_file()]
        return {path.relative_to(store).as_posix(): path.read_bytes() for path in sorted(paths)}


def load_scenario(folder: Path) -> Scenario:
    """Return a recorded store. Raises: FileNotFoundError."""
    plain = folder / "expected.json"
    text = (
        plain.read_bytes()
        if plain.exists()
        else gzip.decompress((folder / "expected.json.gz").read_bytes())
    )
    return Scenario(folder, json.loads(text))


def compare_store(scenario: Scenario, profile: Profile | None) -> StoreTally:
    """Ask everything that was recorded: of the model under a profile, of our own code for None."""
    tally = StoreTally()
    subject: Any = _Ours(scenario) if profile is None else _Model(scenario, profile)
    for name, file, expected in subject.index_files():
        _compare_file(tally, subject, name, file, expected)
    windows = scenario.expected["service"]["windows"]
    for query in scenario.expected["service"]["queries"]:
        for (begin, end, limit), expected in zip(windows, query["results"], strict=True):
            found = subject.query(query["topic"], query["key"], limit, begin, end)
            tally.compare("query", (query["topic"], query["key"], begin, end), expected, found)
    for name, attribute in CHECKPOINT.items():
        expected = scenario.expected["checkpoint"][name]
        tally.compare("checkpoint", name, expected, getattr(subject.checkpoint(), attribute))
    if "commitlog" in scenario.expected:
        recorded = scenario.expected["commitlog"]["messages"]
        found = [_shown(*each) for each in subject.messages()]
        tally.compare("message count", "", len(recorded), len(found))
        for one, other in zip(recorded, found, strict=False):
            for name, value in other.items():
                tally.compare("message", (one["phyOffset"], name), one[name], value)
    return tally


def _compare_file(
    tally: StoreTally, subject: Any, name: str, file: Any, expected: dict[str, Any]
) -> None:
    for recorded, attribute in HEADER.items():
        found = getattr(file, attribute)
        tally.compare("header", (name, recorded), expected["header"][recorded], found)
    tally.compare("full", name, expected["isWriteFull"], file.is_write_full())
    for begin, end, answer in expected["isTimeMatched"]:
        tally.compare("time matched", (name, begin, end), answer, file.is_time_matched(begin, end))
    for each in expected["select"]:
        tally.compare("hash", each["key"], each["hash"], file.index_key_hash_method(each["key"]))
        for (begin, end, limit), answer in zip(expected["windows"], each["results"], strict=True):
            found = subject.select(file, each["key"], limit, begin, end)
            tally.compare("select", (name, each["key"], begin, end, limit), answer, found)


def _shown(offset: int, message: Any, request: Any) -> dict[str, Any]:
    """Return what was recorded of a message and of what is passed on to the index."""
    return {
        "phyOffset": request.commit_log_offset,
        "scanOffset": offset,
        "size": request.msg_size,
        "topic": request.topic,
        "queueId": message.queue_id,
        "queueOffset": request.consume_queue_offset,
        "storeTimestamp": request.store_timestamp,
        "keys": request.keys,
        "uniqKey": request.uniq_key,
        "tags": dict(request.properties_map or ()).get("TAGS"),
        "tagsCode": request.tags_code,
        "sysFlag": request.sys_flag,
        "preparedTransactionOffset": request.prepared_transaction_offset,
    }


class _Ours:
    """Our own code, on files in memory."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self.files = memory_store(scenario.files)
        self._service = IndexService.open(ROOT, *scenario.geometry, files=self.files)
        self._service.load(True)

    def index_files(self) -> Iterator[tuple[str, IndexFile, dict[str, Any]]]:
        for expected in self._scenario.expected["files"]:
            path = f"{ROOT}/index/{expected['name']}"
            with IndexFile.open(path, *self._scenario.geometry, files=self.files) as file:
                yield expected["name"], file, expected

    def select(self, file: IndexFile, key: str, limit: int, begin: int, end: int) -> list[int]:
        return file.select_phy_offset([], key, limit, begin, end)

    def query(self, topic: str, key: str, limit: int, begin: int, end: int) -> list[Any]:
        found = self._service.query_offset(topic, key, limit, begin, end)
        return [list(found[0]), *found[1:]]

    def checkpoint(self) -> StoreCheckpoint:
        return self._service.store_checkpoint

    def messages(self) -> Iterator[tuple[int, Any, Any]]:
        log = CommitLog.open(ROOT, files=self.files)
        for offset, result in log.scan():
            if result.message is not None:
                yield offset, result.message, dispatch_request_of(result.message)


class _Model:
    """The model under a profile."""

    def __init__(self, scenario: Scenario, profile: Profile) -> None:
        self._scenario = scenario
        self._profile = profile
        self._directory = Directory(tuple(sorted(scenario.files.items())))
        opened = model_service.IndexService.open(
            "", *scenario.geometry, directory=self._directory, profile=profile
        )
        self._service = opened.after.load(True).after

    def index_files(self) -> Iterator[tuple[str, Any, dict[str, Any]]]:
        for expected in self._scenario.expected["files"]:
            opened = model_file.IndexFile.open(
                f"index/{expected['name']}",
                *self._scenario.geometry,
                directory=self._directory,
                profile=self._profile,
            )
            assert isinstance(opened.after, model_file.IndexFile)
            yield expected["name"], opened.after.load().after, expected

    def select(self, file: Any, key: str, limit: int, begin: int, end: int) -> Any:
        found = file.select_phy_offset((), key, limit, begin, end).outcome
        return list(found) if isinstance(found, tuple) else found

    def query(self, topic: str, key: str, limit: int, begin: int, end: int) -> Any:
        found = self._service.query_offset(topic, key, limit, begin, end).outcome
        if isinstance(found, model_service.QueryOffsetResult):
            return [list(found[0]), *found[1:]]
        return found

    def checkpoint(self) -> Any:
        return model_checkpoint.StoreCheckpoint.open(
            "checkpoint", directory=self._directory, profile=self._profile
        ).after

    def messages(self) -> Iterator[tuple[int, Any, Any]]:
        log = model_log.CommitLog.open("", directory=self._directory, profile=self._profile).after
        assert isinstance(log, model_log.CommitLog)
        for offset, result in log.scan():
            if result.message is not None:
                request = model_message.dispatch_request_of(result.message, profile=self._profile)
                yield offset, result.message, request


def memory_store(contents: dict[str, bytes], root: str = ROOT) -> MemoryFiles:
    """Return files in memory that hold a store at `root`."""
    files = MemoryFiles()
    for name, data in contents.items():
        write_file(files, f"{root}/{name}", data)
    return files


def write_file(files: Files, path: str, data: bytes) -> None:
    """Let a file hold exactly these bytes."""
    files.make_directory(path.rpartition("/")[0])
    file = files.open(path, writable=True, create=True)
    try:
        file.truncate(0)
        file.pwrite(data, 0)
    finally:
        file.close()
