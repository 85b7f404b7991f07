# SPDX-License-Identifier: Apache-2.0
"""Sequence numbers, and what control records say."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from segproof_model.kafka.format.record import (
    ControlRecordTypes,
    Record,
    decrement_sequence,
    end_transaction_marker,
    increment_sequence,
)
from segproof_model.language.integers import INT32_MAX
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.laws.kafka.format import record_batch as laws
from segproof_model.releases import RELEASES


@pytest.mark.checks("BATCH-5")
@given(st.integers(0, INT32_MAX), st.integers(0, INT32_MAX))
def test_sequences_wrap(sequence: int, count: int) -> None:
    """BATCH-5."""
    later = increment_sequence(sequence, count)
    assert laws.sequences_wrap_to_zero(sequence, count, later, decrement_sequence(later, count))
    assert not laws.sequences_wrap_to_zero(sequence, count, later + 1, sequence)


@pytest.mark.checks("BATCH-5")
def test_borders_of_sequences() -> None:
    """The next one is 0."""
    assert (0, INT32_MAX) == (increment_sequence(INT32_MAX, 1), increment_sequence(INT32_MAX, 0))
    assert INT32_MAX == decrement_sequence(0, 1)


@pytest.mark.checks("BATCH-19")
@given(st.binary(max_size=8) | st.sampled_from((b"\0\0\0\0", b"\0\0\0\1")), st.binary(max_size=8))
def test_control_records_are_checked(key: bytes, value: bytes) -> None:
    """BATCH-19 on any bytes, and on keys that end a transaction."""
    said = outcome_of(ControlRecordTypes().of_key, key)
    marker = outcome_of(end_transaction_marker, Record(0, 0, key, value))
    assert laws.control_records_are_checked(key, value, said, marker)
    assert not laws.control_records_are_checked(key, value, "COMMIT", None)


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("kafka-4.4.0", "ABORT COMMIT LEADER_CHANGE SNAPSHOT_HEADER SNAPSHOT_FOOTER KRAFT_VERSION"),
        ("kafka-3.7.2", "ABORT COMMIT LEADER_CHANGE SNAPSHOT_HEADER SNAPSHOT_FOOTER UNKNOWN"),
        ("kafka-2.8.2", "ABORT COMMIT QUORUM_REASSIGNMENT LEADER_CHANGE UNKNOWN UNKNOWN"),
        ("kafka-2.4.1", "ABORT COMMIT UNKNOWN UNKNOWN UNKNOWN UNKNOWN"),
    ],
)
def test_control_record_types_by_release(name: str, names: str) -> None:
    """Known numbers have names; a null key is no control record."""
    types = RELEASES[name].kind(ControlRecordTypes)()
    assert names.split() == [types.of_key(bytes([0, 0, 0, number])) for number in range(6)]
    assert "UNKNOWN" == types.of_key(bytes.fromhex("00000009"))
    assert Raised(ErrorKind.INVALID_RECORD) == outcome_of(types.of_key, None)
