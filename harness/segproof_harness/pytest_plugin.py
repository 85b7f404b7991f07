# SPDX-License-Identifier: Apache-2.0
"""The plugin for pytest: the fixture `assert_sound`, for tests of programs that write such files.

pytest loads this file in each of its runs, wherever segproof is installed. So it imports nothing
that costs time; the verb is loaded by the first call.
"""

import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import Protocol

import pytest


class AssertSound(Protocol):
    """What the fixture `assert_sound` gives, for tests that are annotated."""

    def __call__(self, path: str | os.PathLike[str], *options: str) -> None:
        """Fail the test unless `segproof verify` ends with 0 for the path, with what it prints.

        `path` is a file, a partition directory, a data directory or a store. `options` are those
        of the verb, such as `"--deep"`. Notes are left out, and one process does the work, unless
        the options say otherwise. The findings that a `segproof.toml` says to ignore are ignored,
        as on the command line, which looks for it from the working directory upwards. Options that
        it sets are not taken, unless the call names the file: `"--config", "segproof.toml"`.

        A verdict covers what was read: with `"--fail-on", "not-checked"` the test fails too where a
        file was recognised and not looked into.

        A path that can't be read fails the test. So does one without a file of Kafka or RocketMQ
        (DISK-20).
        """


@pytest.fixture(scope="session")
def assert_sound() -> AssertSound:
    """Fail a test unless files are sound: `assert_sound(path, "--deep")`.

    It takes the options of `segproof verify`, and fails with the words of this verb.
    """
    return _assert_sound


def _assert_sound(path: str | os.PathLike[str], *options: str) -> None:
    __tracebackhide__ = True
    from segproof_harness import cli
    from segproof_harness.cli.configuration import IGNORE_ONLY

    fixed = ("--format", "text", "--no-notes", "--jobs", "1")
    words, closing = StringIO(), StringIO()
    token = IGNORE_ONLY.set(True)  # an option there could make a test pass, or never end
    try:
        with redirect_stdout(words), redirect_stderr(closing):
            code = cli.run(["verify", *fixed, *options, "--", os.fspath(path)])
    finally:
        IGNORE_ONLY.reset(token)
    if code == cli.EXIT_INTERRUPTED:
        raise KeyboardInterrupt
    told = "\n".join(filter(None, (words.getvalue().strip(), closing.getvalue().strip())))
    if code:
        pytest.fail(told)
    sys.stdout.write(f"{told}\n")  # shown if the test fails later
