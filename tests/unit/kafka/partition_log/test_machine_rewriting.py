# SPDX-License-Identifier: Apache-2.0
"""What a leader makes of a client's batch, by log and model: every codec, format and damage.

Codecs of two libraries write different bytes, so what is compared are the answers and the records
as they are read again. The histories of logs draw what needs no codec; here it is the codec that
matters, and messages that no writer of ours would make.
"""

import struct
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof.checksums import crc32, crc32c
from segproof.compression import COMPRESSION_NAMES, compress
from segproof.kafka.record import encode_varint, encode_varlong
from segproof.kafka.record_file import scan_memory
from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.outcomes import Outcome, of_model, outcome_of
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import apply, opened
from segproof_model.releases import SEGPROOF, release_named
from segproof_tests.memory_logs import CONFIG, START_MS, Place, bytes_of

EPOCH = 7
LEGACY_CODECS = ("none", "gzip", "snappy", "lz4")


# --- batches that a client may send ---------------------------------------------------------------


def batch_of(
    offset_deltas: Sequence[int],
    compression: str = "none",
    *,
    timestamp_deltas: Sequence[int] = (0, 1, 2, 3),
    is_last_keyless: bool = False,
    attributes: int = 0,
    base_timestamp: int = START_MS,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    """Return a batch of magic 2 whose header counts its records as a client does."""
    body = b""
    for row, (offset, time) in enumerate(zip(offset_deltas, timestamp_deltas, strict=False)):
        key = b"\x01" if is_last_keyless and row == len(offset_deltas) - 1 else b"\x02k"
        record = b"\0" + encode_varlong(time) + encode_varint(offset) + key + b"\x02v\x02\x02h\x01"
        body += encode_varint(len(record)) + record
    count = len(offset_deltas)
    checked = struct.pack(
        ">hiqqqhii",
        COMPRESSION_NAMES.index(compression) | attributes,
        count - 1,
        base_timestamp,
        base_timestamp + max(timestamp_deltas[:count]),
        *producer,
        count,
    ) + compress(compression, body)
    return struct.pack(">qiibI", 0, len(checked) + 9, -1, 2, crc32c(checked)) + checked


def message(
    magic: int,
    offset: int,
    value: bytes | None,
    *,
    key: bytes | None = b"k",
    timestamp: int = START_MS,
    attributes: int = 0,
    is_damaged: bool = False,
) -> bytes:
    """Return a message of magic 0 or 1, with another checksum than its own where it is damaged."""
    body = bytes((magic, attributes)) + (struct.pack(">q", timestamp) if magic else b"")
    for field in (key, value):
        body += struct.pack(">i", -1 if field is None else len(field)) + (field or b"")
    return struct.pack(">qiI", offset, len(body) + 4, crc32(body) ^ is_damaged) + body


def wrapper(magic: int, compression: str, inner: bytes | None, offset: int) -> bytes:
    """Return a message that holds others, or has no value where `inner` is None."""
    value = None if inner is None else compress(compression, inner, magic=magic)
    code = COMPRESSION_NAMES.index(compression)
    return message(magic, offset, value, key=None, attributes=code)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """Draw a batch of magic 2, most of them in order."""
    count = draw(st.integers(1, 3))
    counted = list(range(count))
    deltas = draw(
        st.sampled_from((counted, counted, counted[::-1], [0] * count, [n + 1 for n in counted]))
    )
    return batch_of(
        deltas,
        draw(st.sampled_from(COMPRESSION_NAMES)),
        timestamp_deltas=draw(
            st.lists(st.sampled_from((0, 0, 5, -3, -START_MS - 1, 10**8)), min_size=3, max_size=3)
        ),
        is_last_keyless=draw(st.integers(0, 5)) == 0,
        attributes=draw(st.sampled_from((0, 0, 0, 0, 8, 16))),
        base_timestamp=draw(st.sampled_from((START_MS, START_MS, START_MS - 4, -1))),
        producer=draw(st.sampled_from(((-1, -1, -1), (5, 0, 0), (-2, 0, -1), (5, 0, -1)))),
    )


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Draw messages of magic 0 or 1, in a wrapper mostly; some are not what they should be."""
    magic, compression = draw(st.integers(0, 1)), draw(st.sampled_from(LEGACY_CODECS))
    count = draw(st.integers(1, 3))
    inner = b"".join(
        message(
            magic if draw(st.integers(0, 9)) else 1 - magic,
            draw(st.sampled_from((row, row, row, 0, row + 4))),
            draw(st.sampled_from((b"v", b"", None))),
            key=draw(st.sampled_from((b"k", b"k", None))),
            timestamp=draw(st.sampled_from((START_MS, START_MS + 2, -1, 10**9, -7))),
            attributes=draw(st.sampled_from((0, 0, 0, 0, 0, 0, 8, 1))) if compression != "none"
            else 0,
            is_damaged=compression != "none" and draw(st.integers(0, 9)) == 0,
        )
        for row in range(count)
    )  # fmt: skip
    if compression == "none":
        return inner
    return wrapper(magic, compression, inner, draw(st.sampled_from((count - 1, 0, 9))))


OPTIONS = st.fixed_dictionaries(
    {
        "compression_type": st.sampled_from(("producer", "uncompressed", *COMPRESSION_NAMES[1:])),
        "message_timestamp_type": st.sampled_from(("CreateTime", "CreateTime", "LogAppendTime")),
        "cleanup_policy": st.sampled_from(("delete", "delete", "compact")),
        "message_timestamp_before_max_ms": st.sampled_from((2**63 - 1, 3)),
    }
)


# --- what both make of them -----------------------------------------------------------------------


def read_again(data: bytes) -> list[Any]:
    """Return all that the batches say, but not their sizes and checksums."""
    return [
        (
            *(one.base_offset, one.last_offset, one.magic, one.attributes, one.max_timestamp),
            *(one.producer_id, one.producer_epoch, one.base_sequence, one.partition_leader_epoch),
            *(one.record_count, one.is_valid(), list(one.records())),
        )
        for one in scan_memory(data)
    ]


def by_log(records: bytes, options: dict[str, Any]) -> tuple[Outcome, list[Any]]:
    """Return what a log answers, and what it holds then."""
    log = Place().open(**options)
    outcome = outcome_of(lambda: log.append_as_leader(records, EPOCH))
    return outcome, read_again(bytes_of(log))


def by_model(records: bytes, options: dict[str, Any], release: Release) -> tuple[object, list[Any]]:
    """Return what a release's model answers, and what its log holds then."""
    config = LogConfig(segment_bytes=CONFIG.segment_bytes, **options)
    files = Files(now_ms=START_MS)
    log: Any = opened(release.kind(PartitionLog), files, "", config, codecs=CODECS).after
    step = apply(log, "append_as_leader", records, EPOCH)
    return step.outcome, read_again(step.after.files.image("00000000000000000000.log"))


@given(st.one_of(batches(), messages()), OPTIONS)
def test_the_log_writes_what_the_model_writes(records: bytes, options: dict[str, Any]) -> None:
    """The same answer or refusal, and the same records, with the same header, are read again."""
    outcome, found = by_log(records, options)
    expected, held = by_model(records, options, SEGPROOF)
    assert of_model(expected) == outcome
    assert held == found


FIRST, DAMAGED = message(1, 0, b"v"), message(1, 1, b"v", is_damaged=True)
KEYLESS, OLD_DAMAGED = message(0, 0, b"v", key=None), message(0, 1, b"v", is_damaged=True)
LATE = message(1, 0, b"v", timestamp=10**9)
REFUSED = {
    "damage": (ErrorKind.CORRUPT_RECORD, wrapper(1, "gzip", FIRST + DAMAGED, 1)),
    "damage behind a fault": (
        ErrorKind.CORRUPT_RECORD,
        wrapper(0, "lz4", KEYLESS + OLD_DAMAGED, 1),
    ),
    "an older one": (ErrorKind.INVALID_RECORD, wrapper(1, "snappy", FIRST + KEYLESS, 1)),
    "a newer one": (ErrorKind.INVALID_RECORD, wrapper(0, "gzip", FIRST, 0)),
    "a late one first": (ErrorKind.INVALID_TIMESTAMP, wrapper(1, "gzip", LATE + KEYLESS, 1)),
    "no value": (ErrorKind.INVALID_RECORD, wrapper(1, "gzip", None, 0)),
    "nothing": (ErrorKind.INVALID_RECORD, wrapper(0, "lz4", b"", 0)),
    "damage before another wrapper": (
        ErrorKind.CORRUPT_RECORD,
        wrapper(1, "gzip", DAMAGED + message(1, 2, b"v", attributes=1), 2),
    ),
    "a size below 14": (ErrorKind.CORRUPT_RECORD, wrapper(1, "gzip", FIRST + bytes(40), 0)),
    "a negative time": (
        ErrorKind.INVALID_ARGUMENT,
        wrapper(1, "gzip", message(1, 0, b"v", timestamp=-7), 0),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("release", ["segproof", "kafka-4.3.1"])
def test_messages_inside_others_are_checked(name: str, release: str) -> None:
    """The error is that of the class UnifiedLog of Kafka 4.3.1, and nothing is appended."""
    kind, records = REFUSED[name]
    options = {"cleanup_policy": "compact"}
    assert by_model(records, options, release_named(release)) == (Raised(kind), [])
    outcome, found = by_log(records, options)
    assert (outcome.error, found) == (str(kind), [])


@pytest.mark.parametrize("target", ["producer", "lz4", "zstd", "uncompressed"])
@pytest.mark.parametrize("deltas", [[0, 0, 0], [1, 2, 3], [2, 1, 0], [0, 2, 4]])
def test_compressed_records_that_do_not_count_from_0(deltas: list[int], target: str) -> None:
    """Their offsets are made new; releases since 2.4 do so only where the codec changes too."""
    records, options = batch_of(deltas, "lz4"), {"compression_type": target}
    _, held = by_log(records, options)
    assert [record.offset for record in held[0][-1]] == [0, 1, 2]
    assert by_model(records, options, SEGPROOF)[1] == held
    assert by_model(records, options, release_named("kafka-1.1.1"))[1] == held
    newest = by_model(records, options, release_named("kafka-4.3.1"))
    assert newest[1] == ([] if target in ("producer", "lz4") else held)
