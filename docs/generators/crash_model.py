# SPDX-License-Identifier: Apache-2.0
"""The page of the crash model: the table of `segproof_harness.machine.fault_model`."""

from collections.abc import Iterator

from segproof_harness.machine.fault_model import MODES, NOT_COVERED, SECTOR_BYTES, TABLE

HEAD = """\
# What a crash may leave

Who should read this: everyone who relies on files after a crash, and who makes an engine of their
own crash in a test.

The checks of crashes run on a simulated machine: files in memory that record each change and each
sync. From this record they make the directories that a crash may leave, load them, and judge what
is found. The table below is what the simulation does; its last column is what real systems promise.
What was made durable stays in each mode. The rest depends on the mode:
"""


def pages() -> dict[str, str]:
    """Return the page by its path."""
    return {"explanation/crash-model.md": "\n".join(_lines()) + "\n"}


def _lines() -> Iterator[str]:
    yield HEAD
    for mode in MODES:
        yield f"- `{mode.name}`: {mode.meaning}"
    yield ""
    yield f"A sector has {SECTOR_BYTES} bytes, unless a check says another size."
    yield ""
    names = [f"`{mode.name}`" for mode in MODES]
    yield f"| change | {' | '.join(names)} | real systems |"
    yield "| --- " * (len(names) + 2) + "|"
    for row in TABLE:
        yield f"| {' | '.join(row)} |"
    yield ""
    yield "No mode does this:"
    yield ""
    for one in NOT_COVERED:
        yield f"- {one}"
