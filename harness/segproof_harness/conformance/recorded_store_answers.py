# SPDX-License-Identifier: Apache-2.0
"""What a RocketMQ release recorded about its store, compared with our answers, one by one.

The store is copied into files in memory first, since opening an index maps it for writing.
"""

import gzip
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segproof.rocketmq.commit_log import CommitLog
from segproof.rocketmq.index_file import IndexFile
from segproof.rocketmq.index_service import IndexService
from segproof.rocketmq.message import dispatch_request_of
from segproof_harness.conformance.recorded_answers import Tally
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files as ModelFiles
from segproof_model.rocketmq.broker.index_service import IndexService as ModelService
from segproof_model.rocketmq.format.commit_log import CommitLog as ModelLog
from segproof_model.rocketmq.format.index_file import IndexFile as ModelIndexFile

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


def compare_store(scenario: Scenario, release: Release | None) -> Tally:
    """Ask everything that was recorded: of a release's model, of our own code for None."""
    tally = Tally()
    subject: Any = _Ours(scenario) if release is None else _Model(scenario, release)
    for recorded in scenario.expected["files"]:
        with subject.index_file(f"index/{recorded['name']}") as file:
            _compare_file(tally, file, recorded)
    windows = scenario.expected["service"]["windows"]
    for query in scenario.expected["service"]["queries"]:
        for (begin, end, limit), expected in zip(windows, query["results"], strict=True):
            asked = query["topic"], query["key"], limit, begin, end
            phy_offsets, *last = subject.service.query_offset(*asked)
            tally.compare("query", asked, expected, [list(phy_offsets), *last])
    for name, attribute in CHECKPOINT.items():
        found = getattr(subject.service.store_checkpoint, attribute)
        tally.compare("checkpoint", name, scenario.expected["checkpoint"][name], found)
    if "commitlog" in scenario.expected:
        recorded = scenario.expected["commitlog"]["messages"]
        found = [_shown(*each) for each in subject.messages()]
        tally.compare("message count", "", len(recorded), len(found))
        for one, other in zip(recorded, found, strict=False):
            for name, value in other.items():
                tally.compare("message", (one["phyOffset"], name), one[name], value)
    return tally


def _compare_file(tally: Tally, file: Any, expected: dict[str, Any]) -> None:
    name, full = expected["name"], file.is_write_full
    for recorded, attribute in HEADER.items():
        found = getattr(file, attribute)
        tally.compare("header", (name, recorded), expected["header"][recorded], found)
    tally.compare("full", name, expected["isWriteFull"], full() if callable(full) else full)
    for begin, end, answer in expected["isTimeMatched"]:
        tally.compare("time matched", (name, begin, end), answer, file.is_time_matched(begin, end))
    for each in expected["select"]:
        tally.compare("hash", each["key"], each["hash"], file.index_key_hash_method(each["key"]))
        for (begin, end, limit), answer in zip(expected["windows"], each["results"], strict=True):
            found = list(file.select_phy_offset([], each["key"], limit, begin, end))
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
        self._geometry = scenario.geometry
        self._files = memory_store(scenario.files)
        self.service = IndexService.open(ROOT, *self._geometry, create=True, files=self._files)
        self.service.load(True)

    def index_file(self, name: str) -> AbstractContextManager[IndexFile]:
        return IndexFile.open(f"{ROOT}/{name}", *self._geometry, create=True, files=self._files)

    def messages(self) -> Iterator[tuple[int, Any, Any]]:
        for offset, result in CommitLog.open(ROOT, files=self._files).scan():
            if result.message is not None:
                yield offset, result.message, dispatch_request_of(result.message)


class _Model:
    """The model of a release."""

    def __init__(self, scenario: Scenario, release: Release) -> None:
        self._geometry = scenario.geometry
        self._release = release
        self._files = ModelFiles(scenario.files)
        self.service = release.kind(ModelService)(self._files, "", *self._geometry)
        self.service.load(True)

    def index_file(self, name: str) -> AbstractContextManager[ModelIndexFile]:
        file = self._release.kind(ModelIndexFile)(self._files, name, *self._geometry)
        file.load()
        return nullcontext(file)

    def messages(self) -> Iterator[tuple[int, Any, Any]]:
        for offset, result in self._release.kind(ModelLog)(self._files, "").scan():
            if result.message is not None:
                yield offset, result.message, result.message.dispatch_request()


def memory_store(contents: dict[str, bytes], root: str = ROOT) -> MemoryFiles:
    """Return files in memory that hold a store at `root`."""
    files = MemoryFiles()
    for name, data in contents.items():
        write_file(files, f"{root}/{name}", data)
    return files
