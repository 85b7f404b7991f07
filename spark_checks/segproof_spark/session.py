# SPDX-License-Identifier: Apache-2.0
"""Start Spark, or say plainly why it was not run.

Used by: the verbs, the demo, the tests.
"""

import importlib.util
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from segproof_harness.java import REMEDY, java_problem, java_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGING = Path(__file__).with_name("log4j2.properties")


class SparkNotRunError(Exception):
    """Spark cannot run here; the text gives the reason and the remedy."""


def check_spark() -> None:
    """Raise SparkNotRunError if Spark cannot start here."""
    for package in ("pyspark", "pyarrow", "pandas"):
        if importlib.util.find_spec(package) is None:
            raise SparkNotRunError(
                f"{package} is not installed; install it with: pip install 'segproof[spark]'"
            )
    problem = java_problem(java_version())
    if problem is not None:
        raise SparkNotRunError(f"{problem}; {REMEDY}")


def start_session(master: str = "local[*]") -> "SparkSession":
    """Return a session with the settings the checks need; an existing one is taken as it is.

    Raises: SparkNotRunError.
    """
    check_spark()
    # Workers take `python3` from PATH otherwise, and may miss segproof there.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        # Without a name service for this host Spark would look for an address to bind to.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).appName("segproof")
    settings = {
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile=file:{LOGGING}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
        # Pushed filters are off by default for Python data sources.
        "spark.sql.python.filterPushdown.enabled": "true",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()
