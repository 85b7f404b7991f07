# SPDX-License-Identifier: Apache-2.0
"""What tests of Spark share: real files, and one session, since starting one takes seconds."""

from collections.abc import Callable, Iterator
from importlib.resources import as_file, files
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from segproof_tests.real_copies import copy_of

FAST = {
    "spark.driver.defaultJavaOptions": (
        "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
    )
}
"""To verify the classes of Spark takes a sixth of its start."""

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(not_run: Callable[[str], NoReturn]) -> Iterator["SparkSession"]:
    """Return a session on two local cores, or end the test as not run."""
    from segproof_spark.session import SparkNotRunError, start_session

    try:
        session = start_session("local[2]", settings=FAST)
    except SparkNotRunError as reason:
        not_run(str(reason))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def real_files() -> Iterator[Path]:
    """Return the folder with the real files of the package."""
    with as_file(files("segproof_harness") / "data") as data:
        yield data


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Return a copy of a real partition of several segments, alone in its folder."""
    return copy_of("kafka/plain/plain-0", tmp_path / "data" / "plain-0")
