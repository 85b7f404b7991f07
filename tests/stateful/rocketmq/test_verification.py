# SPDX-License-Identifier: Apache-2.0
"""The verifier's checks of RocketMQ stores against the model's laws, on small stores with damage.

A store is written as a broker writes it: a commit log, its index, one consume queue. Then bytes
are changed, files cut, lengthened and removed. A law that the verifier reports is broken by the
model's predicate; and where it reports no defect, every predicate holds.

Used by: the tox environments `py311` to `py313`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

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
from segproof_harness.judge_rocketmq import NOT_JUDGED, StoreJudge
from segproof_harness.memory_files import MemoryFiles
from segproof_harness.reading.store_conformance import memory_store
from segproof_model.laws import rocketmq_disk

SLOTS, ENTRIES = 3, 7
LOG_BYTES = 700
TOPIC, QUEUE_ID = "T", 0
QUEUE_FILE_BYTES = 20 * 8
STEP_MS = 700

JUDGED = (
    "RMQDISK-1", "RMQDISK-4", "RMQDISK-5", "RMQDISK-6", "RMQDISK-7", "RMQDISK-8", "RMQDISK-9",
    "RMQDISK-10", "RMQDISK-11", "RMQDISK-12", "RMQDISK-13", "RMQDISK-14", "RMQDISK-15",
    "RMQDISK-16", "RMQDISK-17", "RMQDISK-18", "RMQDISK-19", "RMQDISK-20", "RMQDISK-21",
    "RMQDISK-22", "RMQDISK-23", "RMQDISK-24", "RMQDISK-25", "RMQDISK-26", "RMQDISK-27",
    "RMQDISK-28", "RMQDISK-29", "RMQDISK-30", "RMQDISK-31", "RMQDISK-32", "RMQDISK-33",
    "RMQDISK-34", "RMQDISK-35", "RMQDISK-36", "RMQDISK-37", "RMQDISK-38",
)  # fmt: skip

SURE_NOTES = {"RMQDISK-14", "RMQDISK-22", "RMQDISK-34"}
"""Notes that say that a law is broken."""


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
    with IndexService.open("/store", SLOTS, ENTRIES, files=files, time=clock) as service:
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
                queue += len(record).to_bytes(4, "big") + bytes(8)
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


def judge(files: Mapping[str, bytes]) -> set[str]:
    """Hold what verify says of a store against the model; return the laws of defects."""
    memory = memory_store(dict(files))
    findings = list(verify("/store", files=memory, hash_slots=SLOTS))
    assert files == {name: _read(memory, f"/store/{name}") for name in files}
    judged = StoreJudge(files, SLOTS)
    defects = {one.law for one in findings if one.is_defect}
    for law in defects - NOT_JUDGED:
        assert judged.breaks(law), (law, [str(one) for one in findings if one.law == law])
    for law in {one.law for one in findings} & SURE_NOTES:
        assert judged.breaks(law), law
    if not defects:
        assert [] == judged.broken()
    return defects


def _read(files: MemoryFiles, path: str) -> bytes:
    file = files.open(path)
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


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
    for _ in range(data.draw(st.integers(1, 3))):
        damage(data, files)
    for law in judge(files):
        event(law)


def damage(data: st.DataObject, files: dict[str, bytes]) -> None:
    """Change bytes of a file, mostly; or cut, lengthen or remove it."""
    names = [name for name in sorted(files) if files[name]]
    kinds = sorted({name.partition("/")[0] for name in names})
    kind = data.draw(st.sampled_from([*kinds, *["index"] * 3, *["commitlog"]]))
    within = [name for name in names if name.startswith(kind)]
    if not within:
        return
    name = data.draw(st.sampled_from(within))
    content = bytearray(files[name])
    what = data.draw(
        st.sampled_from(["byte"] * 6 + ["word"] * 4 + ["zeros", "cut", "more", "gone"])
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
    elif what == "cut":
        del content[at:]
    elif what == "more":
        content += bytes(data.draw(st.sampled_from([1, 4, 20])))
    if what == "gone" and len(within) > 1:
        del files[name]
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
        if name.startswith("index/") and not rocketmq_disk.is_empty(files[name]):
            answer = find_geometry(f"/store/{name}", files=memory)
            told = {one.hash_slot_num for one in (*answer.candidates, answer.geometry) if one}
            assert SLOTS in told
            if rocketmq_disk.slots_can_be_told(files[name]):
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
    assert rocketmq_disk.name_is_a_time(name) == is_time_name(name)
