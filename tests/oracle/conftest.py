# SPDX-License-Identifier: Apache-2.0
"""A real broker and its clients for a module of tests; a failed test shows the broker's log."""

import shutil
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from segproof_harness.releases.broker import Broker
from segproof_harness.releases.jars import class_path
from segproof_harness.releases.pinned import BROKER

LOG_CHARACTERS_SHOWN = 6000
FREE_BYTES = 1 << 30
NOT_RUN = "not run: "


@pytest.fixture(scope="session")
def _broker_jars(not_run: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """End every test that asks a broker where its jars are not at hand."""
    try:
        class_path(BROKER)
    except FileNotFoundError as error:
        not_run(str(error))
    if shutil.disk_usage(tmp_path_factory.getbasetemp()).free < FREE_BYTES:
        not_run("a broker needs 1 GiB of disk for its logs")


@pytest.fixture(scope="module")
def broker(_broker_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A formatted broker that has not been started."""
    with Broker(tmp_path_factory.mktemp("broker")) as one:
        yield one


@pytest.fixture(scope="session")
def clients(_broker_jars: None) -> Iterator[Any]:
    """The real clients, in one child for all modules."""
    from segproof_harness.releases.kafka_clients import Clients

    with Clients() as one:
        yield one


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Show what the broker said beside a failed test."""
    report = yield
    one = getattr(item, "funcargs", {}).get("broker")
    if report.failed and isinstance(one, Broker):
        report.sections.append(("broker", one.said[-LOG_CHARACTERS_SHOWN:]))
    return report


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Repeat in the last lines, in one for each reason, that a part of the oracle was not run."""
    reports = terminalreporter.stats.get("skipped", [])
    words = [report.longrepr[2] for report in reports if isinstance(report.longrepr, tuple)]
    reasons = Counter(each.partition(NOT_RUN)[2] for each in words if NOT_RUN in each)
    for reason, count in sorted(reasons.items()):
        tests = "1 test" if count == 1 else f"{count} tests"
        line = f"oracle: not run: {tests}: {reason.removeprefix('oracle: ')}"
        terminalreporter.write_line(line, red=True, bold=True)
