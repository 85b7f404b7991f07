# SPDX-License-Identifier: Apache-2.0
"""One JVM at a time for the tests of a release; a real broker and its clients for a module.

A test that names its release by the parameter `release` runs among the other tests of this release,
whichever module it lies in: a JVM takes seconds to start, and 28 of them much memory.
"""

import shutil
from collections import Counter
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from segproof_harness.releases.broker import Broker
from segproof_harness.releases.jars import class_path, problem_of
from segproof_harness.releases.pinned import BROKER, RELEASES, Release, release_named
from segproof_harness.releases.process import process_for

ORDER = {name: number for number, name in enumerate(RELEASES)}
ASKED: list[str] = []
"""The releases whose tests have begun."""
LOG_CHARACTERS_SHOWN = 6000
FREE_BYTES = 1 << 30
NOT_RUN = "not run: "


def _release_of(item: pytest.Item) -> str | None:
    """Return the name of the release that a test has as its parameter."""
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    found = parameters.get("release")
    return found.name if isinstance(found, Release) else found


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the tests of a release follow each other, behind all that name none."""
    items.sort(key=lambda item: ORDER.get(_release_of(item) or "", -1))


@pytest.fixture(autouse=True)
def _one_jvm(request: pytest.FixtureRequest) -> None:
    """End the JVM of the release before, once the next one begins."""
    name = _release_of(request.node)
    if name is not None and ASKED[-1:] != [name]:
        if ASKED:
            process_for(ASKED[-1]).end()
        ASKED.append(name)


@pytest.fixture
def ready(request: pytest.FixtureRequest, not_run: Any) -> None:
    """End the test as not run where its release can't be asked."""
    name = _release_of(request.node)
    assert name is not None
    problem = problem_of(release_named(name))
    if problem is not None:
        not_run(f"oracle {name}: {problem}")


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
