# SPDX-License-Identifier: Apache-2.0
"""Which Java there is, and what is wrong with it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

JAVA_OLDEST = 17
"""The oldest major version on which Spark 4 and the classes of Kafka 4 run."""
REMEDY = f"install Java {JAVA_OLDEST} or newer and put java on PATH, or set JAVA_HOME"


def java_home() -> str | None:
    """Return the home of the Java that JAVA_HOME or PATH names, or None where it can't be told."""
    named = os.environ.get("JAVA_HOME")
    if named:
        return named
    java = shutil.which("java")
    if not java:
        return None
    home = Path(java).resolve().parent.parent
    return str(home) if list(home.glob("lib/server/libjvm.*")) else None


def java_version() -> int | None:
    """Return the major version of the Java that JAVA_HOME or PATH names, or None without one."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.path.exists(java):
        return None
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', told.stderr + told.stdout)
    return int(found[1]) if found else None


def java_problem(version: int | None) -> str | None:
    """Return why this Java won't do, in words, or None if it will.

    >>> java_problem(None), java_problem(11), java_problem(17)
    ('no Java found', 'Java 11 is too old', None)
    """
    if version is None:
        return "no Java found"
    return f"Java {version} is too old" if version < JAVA_OLDEST else None
