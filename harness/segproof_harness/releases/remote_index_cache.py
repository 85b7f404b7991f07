# SPDX-License-Identifier: Apache-2.0
"""Starts of a broker's cache of remote indexes, which reads what lies in `remote-log-index-cache`.

Upstream: Kafka, RemoteIndexCache (since 3.6).
"""

import multiprocessing
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from segproof_harness.releases.jars import class_path, extra_folders
from segproof_harness.releases.pinned import Release

START_SECONDS = 120.0
CACHE = "org.apache.kafka.storage.internals.log.RemoteIndexCache"
SIZE_BYTES = 1 << 30
"""How much the cache may hold; a start evicts nothing then."""


def start_errors(release: Release, log_directories: Sequence[Path]) -> list[str | None]:
    """Start the cache of each log directory and close it; return the class of each start's error.

    None: it started. The start changes files as a broker's does. Raises: OSError without the jars.
    """
    jars = class_path(release)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        paths = [os.fspath(path) for path in log_directories]
        return pool.submit(_start_errors, release, jars, paths).result(START_SECONDS)


def _start_errors(
    release: Release, jars: Sequence[Path], log_directories: Sequence[str]
) -> list[str | None]:
    import jpype

    from segproof_harness.releases.jvm import Jvm

    cache = Jvm(release, jars, extra_folders(release)).java(CACHE)
    found: list[str | None] = []
    for path in log_directories:
        try:
            cache(jpype.JLong(SIZE_BYTES), None, path).close()
        except jpype.JException as error:
            found.append(str(error.getClass().getName()))
        else:
            found.append(None)
    return found
