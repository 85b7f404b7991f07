# SPDX-License-Identifier: Apache-2.0
"""Releases as fixtures: a test that asks for one runs on each of them.

`@pytest.mark.parametrize("kafka", [...], indirect=True)` names some of them instead.
"""

import pytest

from segproof_model.language.behaviours import Release
from segproof_model.releases import RELEASES

KAFKA = [name for name in RELEASES if name.startswith("kafka")]
ROCKETMQ = [name for name in RELEASES if name.startswith("rocketmq")]


@pytest.fixture(params=KAFKA)
def kafka(request: pytest.FixtureRequest) -> Release:
    """Return a release of Kafka."""
    return RELEASES[request.param]


@pytest.fixture(params=["segproof", *KAFKA])
def any_kafka(request: pytest.FixtureRequest) -> Release:
    """Return segproof or a release of Kafka."""
    return RELEASES[request.param]


@pytest.fixture(params=ROCKETMQ)
def rocketmq(request: pytest.FixtureRequest) -> Release:
    """Return a release of RocketMQ."""
    return RELEASES[request.param]


@pytest.fixture(params=["segproof", *ROCKETMQ])
def any_rocketmq(request: pytest.FixtureRequest) -> Release:
    """Return segproof or a release of RocketMQ."""
    return RELEASES[request.param]
