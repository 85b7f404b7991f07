# SPDX-License-Identifier: Apache-2.0
"""The scanner of records in memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_harness.files.codecs import CODECS
from segproof_harness.structures.kafka.batch_drawing import until_error
from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.record import Record
from segproof_model.language.behaviours import Release
from segproof_model.language.integers import INT32_MAX, int32_bytes
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.register import broken_state_laws
from segproof_model.releases import NEWEST_KAFKA, RELEASES

BATCH = write_batch([Record(0, 100, b"k", b"v")], base_offset=0)


def scanned(
    data: bytes, limit: int = INT32_MAX, release: Release = NEWEST_KAFKA
) -> tuple[int, str]:
    """Return how many batches are found, and the kind of error that ends the scan."""
    records = release.kind(MemoryRecords)(data, limit)
    assert [] == broken_state_laws(records)
    found, error = until_error(records.batches(), lambda batch: batch.position)
    return len(found), error


@pytest.mark.checks("SCAN-9")
@pytest.mark.parametrize(
    ("tail", "error"),
    [
        (bytes(11), None),
        (bytes(12), "corrupt-record"),
        (bytes(8) + int32_bytes(14), None),
        (bytes(8) + int32_bytes(14) + b"\0\0\0\0\3", "corrupt-record"),
        (bytes(8) + int32_bytes(14) + b"\0\0\0\0\2", None),
        (BATCH[:-1], None),
        (bytes(8) + int32_bytes(1001), "corrupt-record"),
    ],
)
def test_scan_tests_in_order(tail: bytes, error: str | None) -> None:
    """SCAN-9, with a limit of 1000 bytes."""
    assert (1, error) == scanned(BATCH + tail, 1000)


@pytest.mark.checks("SCAN-9")
@given(st.binary(max_size=60) | st.binary(max_size=30).map(lambda tail: BATCH + tail))
def test_any_bytes_are_scanned_by_the_law(data: bytes) -> None:
    """SCAN-9."""
    scanned(data, 10_000)


@pytest.mark.parametrize(
    ("name", "huge", "with_magic"),
    [
        ("kafka-4.4.0", "invalid-argument", "corrupt-record"),
        ("kafka-1.1.1", "invalid-argument", None),
        ("segproof", None, "corrupt-record"),
    ],
)
def test_huge_size_and_wrong_magic_by_release(
    name: str, huge: str | None, with_magic: str | None
) -> None:
    """A size near 2^31 wraps, but in segproof; up to 1.1 a batch that is not whole ends the scan
    before its magic is looked at."""
    tail = BATCH[:8] + int32_bytes(INT32_MAX) + BATCH[12:17]
    assert (1, huge) == scanned(BATCH + tail, release=RELEASES[name])
    tail = BATCH[:16] + b"\3" + BATCH[17:-1]
    assert (1, with_magic) == scanned(BATCH + tail, release=RELEASES[name])


@given(st.binary(max_size=90))
def test_any_first_batch_answers(data: bytes) -> None:
    """Any bytes are a batch, which answers everything, or a corrupt record."""
    batch = outcome_of(MemoryRecords(data, codecs=CODECS).first_batch)
    if isinstance(batch, Raised):
        assert batch.kind in (ErrorKind.CORRUPT_RECORD, ErrorKind.INVALID_ARGUMENT)
    else:
        assert data[: batch.size_bytes] == batch.data
        assert [] == broken_state_laws(batch)
        outcome_of(list, batch.records())
