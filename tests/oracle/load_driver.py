# SPDX-License-Identifier: Apache-2.0
"""Loads a log as after a crash with the real class of one release, and prints how that ends.

Started as `python load_driver.py RELEASE DIRECTORY`; loads once for each line of standard input.
It answers on the descriptor of standard output by a line: the log end offset, or the class of the
error. What the JVM prints goes to standard error. No log is closed, as in a killed process.
"""

import os
import sys
from typing import Any, TextIO

from segproof.files import REAL_FILES
from segproof_harness.releases.child import Runner
from segproof_harness.releases.jars import class_path, extra_folders
from segproof_harness.releases.jvm import Jvm
from segproof_harness.releases.pinned import release_named
from segproof_tests.memory_logs import CONFIG, START_MS


def loaded(log_class: Any, directory: str) -> str:
    """Load it once; return its end, or the error."""
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
        return str(log.log_end_offset)
    except Exception as error:  # one of Java's
        return type(error).__name__.rpartition(".")[2]


def main(answers: TextIO) -> None:
    """Load it as often as asked; what each load has open stays so."""
    name, directory = sys.argv[1:]
    release = release_named(name)
    runner = Runner(Jvm(release, class_path(release), extra_folders(release)))
    log_class: Any = runner.adapter("partition-log")
    for _ in sys.stdin:
        answers.write(f"{loaded(log_class, directory)}\n")
        answers.flush()
    os._exit(0)


if __name__ == "__main__":
    kept = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    main(kept)
