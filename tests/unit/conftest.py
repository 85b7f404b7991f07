# SPDX-License-Identifier: Apache-2.0
"""Releases as fixtures: a test that asks for one runs on each of them.

With every law in the register, so that whoever asks which are broken asks all.
"""

import pytest

import segproof_harness.laws.every_law  # noqa: F401
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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark machines as slow: with few examples they do not reach the states that they must."""
    for item in items:
        if item.path.name.startswith("test_machine"):
            item.add_marker(pytest.mark.slow)
