# SPDX-License-Identifier: Apache-2.0
"""What all tests share: Hypothesis profiles, and one way to say that a test was not run.

A test that needs what is missing here (Java, numba, a second user) reads `not run: REASON`. It says
so through the fixture `not_run` or the marker `needs`, never through a bare skip. The closing lines
list each such test, and with SEGPROOF_REQUIRE_ALL=1 each is a failure.
"""

import gc
import importlib.util
import os
import re
import shutil
import time
from collections.abc import Callable, Generator, Iterator
from importlib import metadata
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.database import DirectoryBasedExampleDatabase
from packaging.requirements import Requirement

PROGRAMS = frozenset({"java", "javac", "mvn", "go"})
RELEASES = ("kafka-", "rocketmq-")
"""How the name of a real release begins; a test needs it as it needs a program."""
PREFIX = "not run: "
ROOT = Path(__file__).resolve().parent.parent

# A process that a test starts finds `segproof_tests` too.
_PATHS = [str(ROOT / "tests" / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
os.environ["PYTHONPATH"] = os.pathsep.join(_PATHS)

# Machines build large states: generation may be slow, and time says nothing about being right.
_SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example)

# Random where CI is set too, where Hypothesis would not be.
settings.register_profile("dev", derandomize=False, deadline=None, suppress_health_check=_SLOW)
# The same cases in each run: a red build is the doing of the change under test. New ones, and many
# more, are drawn by `tox -m explore`.
settings.register_profile(
    "ci",
    max_examples=15,
    stateful_step_count=50,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=_SLOW,
)
settings.register_profile("quick", settings.get_profile("ci"), max_examples=8)
settings.register_profile(
    "explore",
    max_examples=20_000,
    stateful_step_count=200,
    derandomize=False,
    database=DirectoryBasedExampleDatabase(ROOT / ".hypothesis" / "examples"),
    deadline=None,
    print_blob=True,
    suppress_health_check=list(HealthCheck),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))

if os.environ.get("SEGPROOF_CHECK_CLAIMS") == "1":
    from segproof_tests.proofs.preconditions import watch

    watch()


def pytest_collection_finish() -> None:
    """Keep what was collected out of the garbage collector, which walks through all of it again
    and again: a fifth of the time of a run with all tests."""
    gc.collect()
    gc.freeze()


_NUMBERS = count()


@pytest.fixture
def tmp_path(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """Give a new folder that lies alone in the test's own, and remove both if the test passes.

    segproof looks around a store for other folders of its log: two levels above the store would
    lie the folders of all other tests. The test's own has a number of this run. The number that
    pytest gives is one more than it finds there, and it reads the names of all other tests for it.
    """
    words = re.sub(r"\W", "_", request.node.name)[:26]
    own = tmp_path_factory.mktemp(f"{words}_{next(_NUMBERS)}", numbered=False)
    alone = own / "alone"
    alone.mkdir()
    failed_before = request.session.testsfailed
    yield alone
    if request.session.testsfailed == failed_before:
        shutil.rmtree(own, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def _short_pauses(request: pytest.FixtureRequest) -> Iterator[None]:
    """Wait hardly at all for a writer in the middle of a step, where none is at work.

    What a test has just written counts as recent, so each finding would be waited for otherwise;
    it does so for a minute, not a second, which a busy machine may take from writing to looking.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not request.path.resolve().is_relative_to(ROOT / "tests" / "schedules"):
            name = "segproof.reading.live_writer.sleep"
            patch.setattr(name, lambda seconds: time.sleep(seconds / 1000))
            patch.setattr("segproof.reading.live_writer.RECENT_NS", 60 * 10**9)
        yield


@pytest.fixture(scope="module", autouse=True)
def _no_waits_for_the_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let no test wait until its files are on the device: none loses power.

    What is synced, and when, is told by files in memory that lose what was not. Tests of the
    operating system sync as they are.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not request.path.resolve().is_relative_to(ROOT / "tests" / "unit" / "operating_system"):
            fsync = os.fsync
            patch.setattr(os, "fsync", lambda number: fsync(number) if number < 0 else None)
            patch.setattr("segproof.files._RealMapping.flush", lambda mapping: None)
        yield


@pytest.fixture
def processes_for_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `jobs` processes do what one does sooner, the files of a test being small."""
    monkeypatch.setattr("segproof.processes.BYTES_OF_A_PROCESS", 1)


def left_out() -> set[str]:
    """What this run leaves out on purpose, which SEGPROOF_REQUIRE_ALL does not forbid."""
    return set(os.environ.get("SEGPROOF_WITHOUT", "").split(","))


def require_all() -> bool:
    """Whether this run forbids that anything is left out."""
    return os.environ.get("SEGPROOF_REQUIRE_ALL") == "1"


def say_not_run(reason: str) -> NoReturn:
    """End the present test: loudly skipped, or failed where everything is required."""
    if require_all():
        pytest.fail(f"{PREFIX}{reason} (SEGPROOF_REQUIRE_ALL=1 forbids it)", pytrace=False)
    pytest.skip(f"{PREFIX}{reason}")


def missing(thing: str) -> str | None:
    """Return why `thing` can't be used; None if it can.

    It is a program, a module, one with its least version (`pyspark>=4.1`), or a real release.
    """
    if thing.startswith(RELEASES):
        return missing_release(thing)
    if thing in PROGRAMS:
        return None if shutil.which(thing) else f"{thing} is not on PATH"
    needed = Requirement(thing)
    if not importlib.util.find_spec(needed.name):
        return f"{needed.name} is not installed"
    if needed.specifier and not needed.specifier.contains(metadata.version(needed.name)):
        return f"{needed.name} {metadata.version(needed.name)} is not {needed.specifier}"
    return None


def missing_release(name: str) -> str | None:
    """Return why the real classes of a release can't be asked; None if they can."""
    from segproof_harness.releases.pinned import PINNED
    from segproof_harness.releases.readiness import readiness

    found = readiness(PINNED[name])
    return None if found.is_ready else f"oracle: {name}: {found.why}"


@pytest.fixture(scope="session")
def not_run() -> Callable[[str], NoReturn]:
    """Return the function that ends a test or a fixture as `not run: REASON`."""
    return say_not_run


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Honour the marker `needs`."""
    for marker in item.iter_markers("needs"):
        for thing in marker.args:
            if thing in left_out():
                pytest.skip(f"{PREFIX}{thing} is left out of this environment")
            if reason := missing(thing):
                say_not_run(reason)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test that is skipped without the words `not run`, where that is forbidden."""
    report = yield
    is_bare = report.skipped and not hasattr(report, "wasxfail") and PREFIX not in _reason(report)
    if is_bare and require_all():
        report.outcome = "failed"
        report.longrepr = f"SEGPROOF_REQUIRE_ALL=1 forbids a bare skip: {_reason(report)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let a whole module be `not run` (`pytest.importorskip`), and fail if that is forbidden."""
    report = yield
    if report.skipped and require_all():
        report.outcome = "failed"
        report.longrepr = f"{collector.nodeid}: SEGPROOF_REQUIRE_ALL=1 forbids: {_reason(report)}"
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """List every test that was not run, with its reason; say which claims calls were held to."""
    if os.environ.get("SEGPROOF_CHECK_CLAIMS") == "1":
        from segproof_harness.claims.every_claim import CLAIMS
        from segproof_tests.proofs.preconditions import CHECKED

        calls = f"{sum(CHECKED.values())} calls of {len(CHECKED)} kernels were held to their claims"
        missed = ", ".join(sorted(CLAIMS.keys() - CHECKED.keys())) or "none"
        terminalreporter.write_line(f"{calls}; not called were: {missed}")
    reports = terminalreporter.stats.get("skipped", [])
    lines = sorted({f"{report.nodeid}: {_reason(report)}" for report in reports})
    lines = [line for line in lines if PREFIX in line]
    if not lines:
        return
    terminalreporter.section(f"{len(lines)} not run", yellow=True, bold=True)
    for line in lines:
        terminalreporter.write_line(line, yellow=True)


def _reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    """Return the words of a skip; pytest puts them last in a tuple, behind `Skipped: `."""
    longrepr = report.longrepr
    words = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return words.removeprefix("Skipped: ")
