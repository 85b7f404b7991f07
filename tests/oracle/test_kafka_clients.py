# SPDX-License-Identifier: Apache-2.0
"""The child with the real clients: it ends, whatever its broker does."""

import time
from typing import Any

import pytest

from segproof_harness.releases import kafka_clients
from segproof_harness.releases.kafka_clients import ASK_SECONDS, Clients, Lot, Sent

pytestmark = pytest.mark.needs("java", "jpype")

NOWHERE = "127.0.0.1:1"
BLOCK_MS = 500


def test_a_producer_that_knows_no_broker_ends_with_its_first_record(clients: Any) -> None:
    """A broker that is killed may leave its producer so: each record would wait for metadata."""
    lot = Lot((Sent(0, None, b"value"),) * int(2 * ASK_SECONDS * 1000 / BLOCK_MS))
    sent = clients.ask(kafka_clients.produce_until_it_fails, NOWHERE, "t", lot, 1, BLOCK_MS)
    assert sent == []


@pytest.mark.usefixtures("_broker_jars")
def test_work_that_does_not_end_is_not_waited_for() -> None:
    """Neither is there a limit of time in this test: it would run for an hour."""
    with Clients() as clients:
        work = clients.begin(time.sleep, 3600)
        while not work.running():
            time.sleep(0.01)
    assert work.exception() is not None
