# SPDX-License-Identifier: Apache-2.0
"""Loads a log as after a crash with the real class of one release, and prints how that ends.

Started as `python load_driver.py RELEASE DIRECTORY`; the last line is the log end offset, or the
class of the error. What the JVM prints comes before it.
"""

import os
import sys
from typing import Any

from segproof.files import REAL_FILES
from segproof_harness.releases.child import Runner
from segproof_harness.releases.jars import class_path, extra_folders
from segproof_harness.releases.jvm import Jvm
from segproof_harness.releases.pinned import release_named
from segproof_tests.memory_logs import CONFIG, START_MS


def main() -> None:
    """Load it once."""
    name, directory = sys.argv[1:]
    release = release_named(name)
    runner = Runner(Jvm(release, class_path(release), extra_folders(release)))
    log_class: Any = runner.adapter("partition-log")
    try:
        log = log_class.open(
            directory,
            CONFIG,
            0,
            0,
            False,
            files=REAL_FILES,
            time=lambda: START_MS,
            draw=lambda: 0,
        )
        answer = str(log.log_end_offset)
    except Exception as error:  # one of Java's
        answer = type(error).__name__.rpartition(".")[2]
    print(f"\n{answer}", flush=True)
    os._exit(0)  # with what is open: as the end of a killed process


if __name__ == "__main__":
    main()
