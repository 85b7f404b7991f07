# SPDX-License-Identifier: Apache-2.0
"""What `verify` says, and what every finding must keep: words, and a command that shows it again.

No file is touched: their bytes are told here too.
"""

import shlex
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from segproof.findings import Finding, Summary
from segproof.verification import partition_places, verify

__all__ = ["check_shown_again", "contents", "judged", "state_of", "verified"]


def verified(path: Path | str, **options: Any) -> tuple[list[Finding], list[Summary]]:
    """Return the findings at a path, and the summaries."""
    summaries: list[Summary] = []
    return list(verify(path, on_summary=summaries.append, **options)), summaries


def judged(path: Path | str, **options: Any) -> tuple[list[Finding], Summary]:
    """Return the findings at a path, and its one summary."""
    found, (summary,) = verified(path, **options)
    return found, summary


def contents(folder: Path) -> dict[str, bytes]:
    """Return the bytes of each file below a folder, by its path there."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def state_of(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """Return bytes, modification time and inode of each file below a folder."""
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _run_again(finding: Finding) -> list[Finding]:
    """Do what the finding's command line would do."""
    words = shlex.split(finding.reproduce)
    assert ["segproof", "verify"] == words[:2]
    paths = list(takewhile(lambda word: not word.startswith("--"), words[2:]))
    options = [word for word in words[2 + len(paths) :] if word != "--deep"]
    values = dict(zip(options[::2], options[1::2], strict=True))
    position = values.get("--position")
    beside = partition_places(paths) if len(paths) > 1 else ()
    return [
        found
        for path in paths
        for found in verify(
            path,
            deep="--deep" in words,
            laws=[values["--law"]],
            position=None if position is None else int(position),
            beside=beside,
        )
    ]


def check_shown_again(findings: Sequence[Finding]) -> None:
    """Hold the first few of some findings: each has words and a hint, and its command shows it."""
    for finding in findings[:3]:
        assert finding.message
        assert finding.hint
        again = _run_again(finding)
        assert finding in again
        assert {finding.law} == {other.law for other in again}
