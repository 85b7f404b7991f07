# SPDX-License-Identifier: Apache-2.0
"""What the JVM of Spark's driver writes: a start that succeeds is silent, later lines are shown.

Java and Spark greet on both standard streams before a setting of their logging counts. Spark's
launcher adds `--add-modules=jdk.incubator.vector` to every call of Java, and Java then warns; no
setting of Spark or Java turns that off. So the streams of the JVM lead to this process.
"""

import contextlib
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from segproof_harness.reports.text import printable

LOGGED_ERROR = re.compile(r"\d\d:\d\d:\d\d (?:ERROR|FATAL) ")
"""How a line begins that `log4j2.properties` lets through."""
KEPT_LINES = 1000
"""How many lines of a start are kept, the last ones."""
END_SECONDS = 1.0
"""How long the last lines of a JVM that did not start are waited for."""


@contextlib.contextmanager
def started_quietly(settings: Mapping[str, str]) -> Iterator[None]:
    """Start the JVM of the driver with these settings, and hold its lines while the block runs.

    All lines of a JVM that does not start go to stderr. Of one that starts, the first line of each
    error goes there that Spark has logged, and every line that comes after the block. A JVM that
    this process already has keeps its streams.
    """
    from pyspark import SparkConf, SparkContext
    from pyspark.java_gateway import launch_gateway

    launch: Any = launch_gateway  # without types
    if SparkContext._gateway is not None:
        yield
        return
    output = _Output()
    conf = SparkConf(loadDefaults=False).setAll([*settings.items()])
    try:
        with output.write_end() as stream:
            gateway = launch(conf, {"stdout": stream, "stderr": stream})
    except BaseException:
        output.wait_for_end()
        output.pass_on(is_started=False)
        raise
    try:
        SparkContext._ensure_initialized(gateway=gateway)
        yield
    finally:
        output.pass_on(is_started=True)


class _Output:
    """A pipe, and the thread that reads its lines."""

    def __init__(self) -> None:
        read, self._write = os.pipe()
        self._kept: deque[str] | None = deque(maxlen=KEPT_LINES)
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, args=(read,), daemon=True)
        self._reader.start()

    @contextlib.contextmanager
    def write_end(self) -> Iterator[int]:
        """Lend the descriptor to write to; later only the JVM has it."""
        try:
            yield self._write
        finally:
            os.close(self._write)

    def wait_for_end(self) -> None:
        """Wait a moment for the last lines of a JVM that ends."""
        self._reader.join(END_SECONDS)

    def pass_on(self, *, is_started: bool) -> None:
        """Write what was kept, of a JVM that has started only logged errors, and keep no more."""
        with self._lock:
            kept, self._kept = self._kept or (), None
            for line in kept:
                if not is_started or LOGGED_ERROR.match(line):
                    _tell(line)

    def _read(self, descriptor: int) -> None:
        with open(descriptor, encoding="utf-8", errors="backslashreplace") as lines:
            for line in lines:
                with self._lock:
                    if self._kept is None:
                        _tell(line)
                    else:
                        self._kept.append(line)


def _tell(line: str) -> None:
    # The JVM would wait for ever for a reader that gives up because stderr is gone.
    with contextlib.suppress(BaseException):
        sys.stderr.write(printable(line.rstrip("\n").expandtabs(4)) + "\n")
        sys.stderr.flush()
