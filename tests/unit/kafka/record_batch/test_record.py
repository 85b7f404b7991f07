# SPDX-License-Identifier: Apache-2.0
"""The control records that releases know."""

import pytest

from segproof_model.kafka.format.record import (
    ControlRecordTypes,
)
from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.language.states import outcome_of
from segproof_model.releases import RELEASES


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
