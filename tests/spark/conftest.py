# SPDX-License-Identifier: Apache-2.0
"""One Spark session for all tests of this folder: starting one takes seconds."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(not_run: Callable[[str], NoReturn]) -> Iterator["SparkSession"]:
    """Return a session on two local cores, or end the test as not run."""
    from segproof_spark.session import SparkNotRunError, start_session

    try:
        session = start_session("local[2]")
    except SparkNotRunError as reason:
        not_run(str(reason))
    yield session
    session.stop()
