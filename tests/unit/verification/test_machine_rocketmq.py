# SPDX-License-Identifier: Apache-2.0
"""The verifier's checks of RocketMQ stores against the model's laws, on small stores with damage.

A store is written as a broker writes it: a commit log, its index, one consume queue; stopped, or
beside the marker of a broker that runs or was killed. Then bytes are changed; files are cut,
lengthened, removed, copied to names far away, or become something that is no file. A law that the
verifier reports is broken by the model's predicate; where it reports no defect, every predicate
holds; and whatever is no file is named.
"""

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from segproof.files import File, FileStatus
from segproof.rocketmq.geometry import find_geometry
from segproof.rocketmq.index_service import IndexService
from segproof.rocketmq.message import (
    MAGIC_V1,
    MAGIC_V2,
    Message,
    blank_tail,
    dispatch_request_of,
    encode_message,
)
from segproof.verification import verify
from segproof.verifying.rocketmq.store_checks import is_time_name
from segproof_harness.conformance.recorded_store_answers import memory_store
from segproof_harness.files.memory_files import MemoryFiles, write_file
from segproof_harness.laws.judged_store import StoreJudge
from segproof_model.laws.rocketmq.format.index_entries import IndexBytes
from segproof_model.laws.rocketmq.format.index_file_on_disk import (
    length_fits,
    name_is_a_time,
    seconds_behind_the_end,
    slots_can_be_told,
)

SLOTS, ENTRIES = 3, 7
LOG_BYTES = 700
TOPIC, QUEUE_ID = "T", 0
QUEUE_FILE_BYTES = 20 * 8
STEP_MS = 700
CLOCK_SECONDS = 20 * 366 * 86_400

JUDGED = (
    "RMQDISK-1", "RMQDISK-4", "RMQDISK-5", "RMQDISK-6", "RMQDISK-7", "RMQDISK-8", "RMQDISK-9",
    "RMQDISK-10", "RMQDISK-11", "RMQDISK-12", "RMQDISK-13", "RMQDISK-14", "RMQDISK-15",
    "RMQDISK-16", "RMQDISK-17", "RMQDISK-18", "RMQDISK-19", "RMQDISK-20", "RMQDISK-21",
    "RMQDISK-22", "RMQDISK-23", "RMQDISK-24", "RMQDISK-25", "RMQDISK-26", "RMQDISK-27",
    "RMQDISK-28", "RMQDISK-29", "RMQDISK-30", "RMQDISK-31", "RMQDISK-32", "RMQDISK-33",
    "RMQDISK-34", "RMQDISK-35", "RMQDISK-36", "RMQDISK-37", "RMQDISK-38", "RMQDISK-39",
    "RMQDISK-40", "RMQDISK-41", "RMQDISK-42", "RMQDISK-43", "RMQDISK-44", "RMQDISK-45",
    "RMQDISK-50", "RMQDISK-51", "RMQDISK-52",
    "RMQDISK-53", "RMQDISK-54", "RMQDISK-55", "RMQDISK-56", "RMQDISK-57",
)  # fmt: skip

SURE_NOTES = {"RMQDISK-14", "RMQDISK-22", "RMQDISK-34"}
"""Notes that say that a law is broken."""

FAR_NAMES = (
    "00000000000000099999", "00000000004000000000", "00010000000000000000",
    "09223372034707292160", "09223372034707292161", "09223372036854775807",
    "99999999999999999999", "-0000000000000000001", "20991231235959999",
)  # fmt: skip
"""Names that are far from the others: no count of anything may come from them."""
KINDS = ("folder", "pipe", "loop", "dangling")
"""What can stand where a file should be."""


class OddFiles(MemoryFiles):
    """Files in memory, and names that are something else: pipes, and links that lead nowhere."""

    odd: Mapping[str, str] = {}

    def _refuse(self, path: str) -> None:
        kind = self.odd.get(path)
        if kind == "pipe":
            raise IsADirectoryError(f"{path}: not a regular file")
        if kind is not None:
            number = errno.ELOOP if kind == "loop" else errno.ENOENT
            raise OSError(number, os.strerror(number), path)

    def open(self, path: str, *, writable: bool = False, create: bool = False) -> File:
        """Open a file; what is none is refused."""
        self._refuse(path)
        return super().open(path, writable=writable, create=create)

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path; asking for a link to itself fails."""
        if self.odd.get(path) == "loop":
            self._refuse(path)
        is_pipe = self.odd.get(path) == "pipe"
        return FileStatus(0, False, False, 0, (0, -2)) if is_pipe else super().status(path)

    def list_directory(self, path: str) -> list[str]:
        """Return the names in a directory, these too."""
        inside = [os.path.basename(one) for one in self.odd if os.path.dirname(one) == path]
        return sorted({*super().list_directory(path), *inside})


@dataclass(frozen=True)
class Sent:
    """What a producer sends."""

    keys: str
    uniq_key: str
    tags: str
    is_rolled_back: bool
    is_new: bool
    """Whether the record has the second magic."""

    @property
    def properties(self) -> str:
        """The properties as they are stored."""
        named = {"KEYS": self.keys, "UNIQ_KEY": self.uniq_key, "TAGS": self.tags}
        return "".join(f"{name}\x01{value}\x02" for name, value in named.items() if value)


SENT = st.builds(
    Sent,
    keys=st.sampled_from(["", "a", "a b", "Aa BB", "a a", "key-1 key-2 key-3"]),
    uniq_key=st.sampled_from(["", "u1", "u2", "AaAa", "BBBB"]),
    tags=st.sampled_from(["", "", "t"]),
    is_rolled_back=st.just(False) | st.booleans(),
    is_new=st.booleans(),
)


def write_store(messages: list[Sent], with_abort: bool) -> dict[str, bytes]:
    """Return the files of a store to which these messages were sent.

    Where the broker was not stopped the next file of the log is there, all zeros.
    """
    files = MemoryFiles(clock_ms=lambda: 0)
    now = [1_700_000_000_000]

    def clock() -> int:
        now[0] += 1
        return now[0]

    log: dict[str, bytes] = {}
    queue = b""
    current, start, store_time = b"", 0, 1_700_000_000_000
    with IndexService.open(
        "/store", SLOTS, ENTRIES, create=True, files=files, time=clock
    ) as service:
        service.load(True)
        for sent in messages:
            store_time += STEP_MS
            record = encode_message(_message(sent, start + len(current), len(queue), store_time))
            if len(current) + len(record) + 8 > LOG_BYTES:
                log[f"commitlog/{start:020d}"] = current + blank_tail(LOG_BYTES - len(current))
                current, start = b"", start + LOG_BYTES
                record = encode_message(_message(sent, start, len(queue), store_time))
            message = _message(sent, start + len(current), len(queue), store_time)
            if not sent.is_rolled_back:
                queue += (start + len(current)).to_bytes(8, "big")
                queue += len(record).to_bytes(4, "big")
                queue += dispatch_request_of(message).tags_code.to_bytes(8, "big", signed=True)
            service.build_index(dispatch_request_of(message))
            current += record
    log[f"commitlog/{start:020d}"] = current.ljust(LOG_BYTES, b"\0")
    found = {f"index/{name}": data for name, data in files.images("/store/index").items()} | log
    found["checkpoint"] = files.images("/store")["checkpoint"]
    for number, at in enumerate(range(0, max(1, len(queue)), QUEUE_FILE_BYTES)):
        name = f"consumequeue/{TOPIC}/{QUEUE_ID}/{number * QUEUE_FILE_BYTES:020d}"
        found[name] = queue[at : at + QUEUE_FILE_BYTES].ljust(QUEUE_FILE_BYTES, b"\0")
    ahead = {f"commitlog/{start + LOG_BYTES:020d}": bytes(LOG_BYTES), "abort": b""}
    return {**found, **ahead} if with_abort else found


def _message(sent: Sent, offset: int, queue_bytes: int, store_time: int) -> Message:
    return Message(
        0, MAGIC_V2 if sent.is_new else MAGIC_V1, 0, QUEUE_ID, 0, queue_bytes // 20, offset,
        12 if sent.is_rolled_back else 0, store_time, bytes(8), store_time, bytes(8), 0, 0,
        b"body", TOPIC, sent.properties,
    )  # fmt: skip


def odd_store(files: Mapping[str, bytes], odd: Mapping[str, str]) -> OddFiles:
    """Return the store; a name that ends in a slash is a folder without files."""
    memory = OddFiles()
    for name, data in files.items():
        if name.endswith("/"):
            memory.make_directory(f"/store/{name}")
        else:
            write_file(memory, f"/store/{name}", data)
    for name, kind in odd.items():
        memory.make_directory(f"/store/{os.path.dirname(name)}")
        if kind == "folder":
            memory.make_directory(f"/store/{name}")
    memory.odd = {f"/store/{name}": kind for name, kind in odd.items() if kind != "folder"}
    return memory


def judge(files: Mapping[str, bytes], odd: Mapping[str, str] | None = None) -> set[str]:
    """Hold what verify says of a store against the model; return the laws of defects.

    `odd` are names that are no files, and what they are; the model does not know them.
    """
    odd = odd or {}
    memory = odd_store(files, odd)
    findings = list(verify("/store", files=memory, hash_slots=SLOTS))
    assert memory.images("/store", with_folders=True) == {
        name: data for name, data in files.items() if not name.endswith("/")
    }
    unreadable = {one.path for one in findings if one.law == "DISK-1" and one.is_defect}
    assert {f"/store/{name}" for name in odd} <= unreadable
    judged = StoreJudge(files, SLOTS)
    defects = {one.law for one in findings if one.is_defect}
    for law in filter(judged.judges, defects):
        assert judged.breaks(law), (law, [str(one) for one in findings if one.law == law])
    sized = [one for one in judged.store.index if length_fits(one)]
    late = max(map(seconds_behind_the_end, sized), default=0)
    assert ("RMQDISK-14" in defects) is (late > CLOCK_SECONDS)
    for law in {one.law for one in findings} & SURE_NOTES:
        assert judged.breaks(law), law
    if not defects:
        notes = {one.law for one in findings} & {*SURE_NOTES, "RMQDISK-38", "RMQDISK-41"}
        assert set(judged.broken()) <= notes
    return defects


@pytest.mark.checks(*JUDGED)
@settings(max_examples=40, deadline=None)
@given(messages=st.lists(SENT, min_size=1, max_size=14), with_abort=st.booleans())
def test_what_a_broker_writes_is_clean(messages: list[Sent], with_abort: bool) -> None:
    """No finding but the marker of a broker that runs; and every law of the model holds."""
    assert set() == judge(write_store(messages, with_abort))


@pytest.mark.checks(*JUDGED)
@settings(max_examples=150, deadline=None)
@given(data=st.data(), messages=st.lists(SENT, min_size=2, max_size=14), abort=st.booleans())
def test_verify_and_the_laws_agree(data: st.DataObject, messages: list[Sent], abort: bool) -> None:
    """After any damage both say the same."""
    files = write_store(messages, abort)
    odd: dict[str, str] = {}
    for _ in range(data.draw(st.integers(1, 3))):
        damage(data, files, odd)
    for law in judge(files, odd):
        event(law)


@pytest.mark.checks("RMQDISK-23", "RMQDISK-24", "RMQDISK-32")
def test_a_log_file_that_is_too_long_ends_where_the_next_one_begins() -> None:
    """Its blank end takes the rest up to there: entries of the next message are judged."""
    sent = Sent("a", "u1", "", is_rolled_back=False, is_new=False)
    files = write_store([sent] * 7, with_abort=False)
    files[f"commitlog/{0:020d}"] += b"\0"
    for name in [name for name in files if name.startswith("index/")]:
        damaged = files | {name: bytes([1]) + files[name][1:]}
        assert {"RMQDISK-23", "RMQDISK-32"} <= judge(damaged)


@pytest.mark.checks(
    "DISK-1", "RMQDISK-20", "RMQDISK-21", "RMQDISK-23", "RMQDISK-35", "RMQDISK-37", "RMQDISK-39"
)
@settings(max_examples=80, deadline=None)
@given(data=st.data(), messages=st.lists(SENT, min_size=2, max_size=14), abort=st.booleans())
def test_files_that_are_missing_or_none(
    data: st.DataObject, messages: list[Sent], abort: bool
) -> None:
    """What is no file is named; no file of log or queue, nor all, can be missing unnoticed."""
    files = write_store(messages, abort)
    odd: dict[str, str] = {}
    for _ in range(data.draw(st.integers(1, 2))):
        misplace(data, files, odd)
    for law in judge(files, odd):
        event(law)


@pytest.mark.checks("RMQDISK-54")
@settings(max_examples=40, deadline=None)
@given(
    messages=st.lists(SENT, min_size=1, max_size=5),
    offsets=st.lists(
        st.tuples(st.sampled_from(("T@g", "T@h", "U@g", "%LMQ%T@g", "T")),
                  st.sampled_from(("0", "'0'", "1", "-1", "x")), st.integers(-1, 7)),
        max_size=4,
    ),
    name=st.sampled_from(("consumerOffset.json", "consumerOffset.json.bak", "delayOffset.json")),
    units_end=st.integers(0, 8), is_static=st.booleans(),
)  # fmt: skip
def test_offsets_of_consumers(
    messages: list[Sent], offsets: list[tuple[str, str, int]], name: str, units_end: int,
    is_static: bool,
) -> None:  # fmt: skip
    """Both say the same of offsets around the end of a queue, whose last units may be missing."""
    files = write_store(messages, with_abort=False)
    queue = f"consumequeue/{TOPIC}/{QUEUE_ID}/{0:020d}"
    files[queue] = files[queue][: 20 * units_end].ljust(QUEUE_FILE_BYTES, b"\0")
    rows = ",".join(f'"{key}":{{{queue_id}:{offset}}}' for key, queue_id, offset in offsets)
    files[f"config/{name}"] = f'{{"offsetTable":{{{rows}}}}}'.encode()
    if is_static:
        files["config/topicQueueMapping.json"] = b'{"topicQueueMappingTable":{"U":{"T":1}}}'
    for law in judge(files):
        event(law)


STATES = {
    "topics.json": (
        b'{"topicConfigTable":{"T":{"readQueueNums":1}}}', b'{"topicConfigTable":{"U":{}}}',
        b'{"topicConfigTable":{"T":{"readQueueNums":0}}}', b"{}", b"{",
    ),
    "consumerOffset.json": (
        b'{"offsetTable":{"T@g":{0:0}}}', b'{"offsetTable":{}}', b"null", b"{",
        b'{"offsetTable":{"T@g":{}}}',
    ),
    "subscriptionGroup.json": (b"{}",),
    "delayOffset.json": (b"{}",),
}  # fmt: skip
"""What files of `config` may say."""
STATE_FILES = st.sampled_from(
    [
        (f"config/{name}{end}", data)
        for name, texts in STATES.items()
        for end in ("", ".bak", ".tmp")
        for data in texts
    ]
)


@pytest.mark.checks("RMQDISK-57")
@settings(max_examples=60, deadline=None)
@given(st.lists(STATE_FILES, max_size=5))
def test_config_that_lacks_what_queues_show(config: list[tuple[str, bytes]]) -> None:
    """Both say the same of topics and offsets that are there, missing, or in another file."""
    files = write_store([Sent("a", "u1", "", is_rolled_back=False, is_new=False)], with_abort=False)
    files |= dict(config)
    found = {one.law for one in verify("/store", files=odd_store(files, {}), hash_slots=SLOTS)}
    assert ("RMQDISK-57" in found) is StoreJudge(files, SLOTS).breaks("RMQDISK-57")


@pytest.mark.checks("RMQDISK-41")
@given(
    st.dictionaries(
        st.sampled_from(
            (
                *("lock", "config/topics.json", "config/notes", "timerlog/00000000000000000000"),
                *("timerwheel", "notes"),
            )
        ),
        st.sampled_from((b"", b"lock", b"locked")),
    )
)
def test_what_is_not_read_is_named(beside: dict[str, bytes]) -> None:
    """A note names each file and folder of a store that no check reads; a lock file is read."""
    sent = Sent("a", "u1", "", is_rolled_back=False, is_new=False)
    files = write_store([sent], with_abort=False) | beside
    found = verify("/store", files=odd_store(files, {}), hash_slots=SLOTS)
    told = {one.path for one in found if one.law == "RMQDISK-41"}
    assert bool(told) is StoreJudge(files, SLOTS).breaks("RMQDISK-41")
    names = beside.keys() - {"config/topics.json", "timerlog/00000000000000000000"}
    names -= {"lock"} if beside.get("lock") in (b"", b"lock") else set()
    assert {f"/store/{name}" for name in names} == told


def misplace(data: st.DataObject, files: dict[str, bytes], odd: dict[str, str]) -> None:
    """Remove a file or all of a part, put something else in its place, or copy it far away."""
    names = [name for name in sorted(files) if files[name]]
    if not names:
        return
    name = data.draw(st.sampled_from(names))
    folder = name.rpartition("/")[0]
    what = data.draw(st.sampled_from(["gone", "odd", "far", "all", "guess"]))
    if what == "guess":
        files["segproof-index.guessed"] = b"3 slots and 7 entries in each index file"
        return
    if what == "far" and folder:
        far = f"{folder}/{data.draw(st.sampled_from(FAR_NAMES))}"
        files[far] = files[name]
        return
    if what == "all" and folder:
        part = folder.partition("/")[0]
        for one in [one for one in files if one.startswith(f"{part}/")]:
            del files[one]
        left = data.draw(st.sampled_from(["", f"{part}/", f"{folder}/"]))
        files |= {left: b""} if left else {}
        return
    del files[name]
    if what == "odd" and os.path.basename(name) not in FAR_NAMES:
        odd[name] = data.draw(st.sampled_from(KINDS))
    elif folder and not any(one.startswith(f"{folder}/") for one in (*files, *odd)):
        files[f"{folder}/"] = b""


def damage(data: st.DataObject, files: dict[str, bytes], odd: dict[str, str]) -> None:
    """Change bytes of a file, mostly; or cut, lengthen or misplace it."""
    names = [name for name in sorted(files) if files[name]]
    kinds = sorted({name.partition("/")[0] for name in names})
    kind = data.draw(st.sampled_from([*kinds, *["index"] * 3, *["commitlog"]]))
    within = [name for name in names if name.startswith(kind)]
    if not within:
        return
    name = data.draw(st.sampled_from(within))
    content = bytearray(files[name])
    what = data.draw(
        st.sampled_from(["byte"] * 6 + ["word"] * 4 + ["zeros", "cut", "more", "misplace", "blank"])
    )
    used = max(1, len(content.rstrip(b"\0")))
    at = data.draw(st.integers(0, min(len(content), used + 8) - 1))
    if what == "byte":
        content[at] ^= 1 << data.draw(st.integers(0, 7))
    elif what == "word":
        at -= at % 4
        value = data.draw(st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 8, 2**31 - 1, -1]))
        content[at : at + 4] = value.to_bytes(4, "big", signed=True)[: len(content) - at]
    elif what == "zeros":
        content[at : at + 40] = bytes(len(content[at : at + 40]))
    elif what == "blank":
        # Where a message begins, if one does so nearby.
        at = max(0, content.rfind(b"\xda\xa3\x20", 0, at + 8) - 4)
        content[at : at + 8] = blank_tail(max(8, len(content) - at))[:8]
    elif what == "cut":
        del content[at:]
    elif what == "more":
        content += bytes(data.draw(st.sampled_from([1, 4, 20])))
    if what == "misplace":
        misplace(data, files, odd)
    else:
        files[name] = bytes(content)


@pytest.mark.checks("RMQDISK-2")
@settings(max_examples=40, deadline=None)
@given(messages=st.lists(SENT, min_size=1, max_size=14))
def test_one_geometry_is_found_where_one_fits(messages: list[Sent]) -> None:
    """Inference finds the true number of slots; and no other where the law says that one fits."""
    files = write_store(messages, False)
    memory = memory_store(files)
    for name in sorted(files):
        if name.startswith("index/") and not IndexBytes(files[name], SLOTS).is_empty:
            answer = find_geometry(f"/store/{name}", files=memory)
            told = {one.hash_slot_num for one in (*answer.candidates, answer.geometry) if one}
            assert SLOTS in told
            if slots_can_be_told(files[name]):
                assert {SLOTS} == told
                event("told")


@pytest.mark.checks("RMQDISK-3")
@given(
    name=st.from_regex(r"[0-9]{17}", fullmatch=True)
    | st.sampled_from(
        [
            "20261121011525910",
            "20260229000000000",
            "20260230000000000",
            "20261301000000000",
            "20260101240000000",
            "20260101235960999",
            "00000101000000000",
        ]
    )
)
def test_names_are_times(name: str) -> None:
    """The verifier and the law take the same names for times."""
    assert name_is_a_time(name) == is_time_name(name)
