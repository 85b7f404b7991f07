# SPDX-License-Identifier: Apache-2.0
"""Start Spark, or say plainly why it was not run.

Used by: the verbs, the demo, the tests.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA_OLDEST = 17
LOGGING = Path(__file__).with_name("log4j2.properties")


class SparkNotRunError(Exception):
    """Spark cannot run here; the text gives the reason and the remedy."""


def java_version() -> int | None:
    """Return the major version of the Java that Spark would take, or None without one."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        return None
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(found[1]) if found else None


def check_spark() -> None:
    """Raise SparkNotRunError if Spark cannot start here."""
    for package in ("pyspark", "pyarrow", "pandas"):
        if importlib.util.find_spec(package) is None:
            raise SparkNotRunError(
                f"{package} is not installed; install it with: pip install 'segproof[spark]'"
            )
    version = java_version()
    if version is None:
        raise SparkNotRunError(
            f"no Java found; install Java {JAVA_OLDEST} or newer and put java on PATH, "
            "or set JAVA_HOME"
        )
    if version < JAVA_OLDEST:
        raise SparkNotRunError(
            f"Java {version} is too old; install Java {JAVA_OLDEST} or newer and set JAVA_HOME"
        )


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
