# SPDX-License-Identifier: Apache-2.0
"""What went wrong on Spark, in one line.

Spark reports an error with the stacks of the driver, of the executor and of the Python worker in
one text. This module finds the line with the cause, and the remedy if it is known.
"""

import re
from typing import NamedTuple

RAISED = re.compile(r"^(?:\w+\.)*(\w*(?:Error|Exception|NotFound)): (.*)")
"""The line of a Python traceback that names the exception."""
WRAPPERS = re.compile(r"^(?:PythonException|SparkException|Py4JJavaError)$")
"""Exceptions that only carry the error of another program."""
LINE_LENGTH_MAX = 400

REMEDIES = (
    (
        re.compile(r"No module named '(?:segproof|numpy|pyarrow|pandas|_?awscrt|cramjam)"),
        (
            "a Python worker lacks it: install segproof's dependencies there, and segproof itself "
            "or ship it with --py-files (segproof spark bundle)"
        ),
    ),
    (
        re.compile(r"PYTHON_VERSION_MISMATCH|[Pp]ython in worker has different"),
        "set PYSPARK_PYTHON to the driver's Python on the workers",
    ),
    (
        re.compile(r'Cannot run program "'),
        "set PYSPARK_PYTHON to a Python that the workers have",
    ),
    (
        re.compile(r"[Mm]aster.* unresponsive|SparkContext has not been fully constructed"),
        "the master must run the same release of Spark as this driver",
    ),
)
"""Errors of Spark's environment, and their remedies."""


class Failure(NamedTuple):
    """One error of Spark."""

    text: str
    is_usage: bool
    """Whether the call or Spark's environment is wrong, and not segproof."""


def failure_of(error: BaseException) -> Failure:
    """Return what an exception that left Spark says."""
    text = str(error)
    said = _line_of(text)
    for pattern, remedy in REMEDIES:
        if pattern.search(text):
            return Failure(f"{said}; {remedy}", True)
    return Failure(said, type(error).__name__ in ("AnalysisException", "IllegalArgumentException"))


def _line_of(text: str) -> str:
    """Return the first exception of Python in the text, or its first line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    for line in lines:
        raised = RAISED.match(line)
        if raised is not None and not WRAPPERS.match(raised[1]):
            return line[:LINE_LENGTH_MAX]
    causes = [line for line in lines if line.startswith("Caused by: ")]
    first = (lines or ["Spark told no reason"])[0]
    if "Py4J" in text[:200] or first.startswith("An error occurred while calling"):
        first = next((line for line in lines[1:] if line.startswith(": ")), first)
    if "failed" not in first and causes:
        first = causes[-1].removeprefix("Caused by: ")
    return first.removeprefix(": ")[:LINE_LENGTH_MAX]
