# SPDX-License-Identifier: Apache-2.0
"""How the plain commit log is driven."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.descriptions.commit_log import dispatched
from segproof_harness.operations import Value
from segproof_harness.plain import Plain
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened
from segproof_model.rocketmq.format.commit_log import CommitLog


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Open a commit log."""
    return opened(release.kind(CommitLog), files, "", arguments["mapped_file_size"])


def check(log: CommitLog, phy_offset: int, check_crc: bool) -> Any:
    """Return what stands at an offset, and what is passed on for it."""
    result = log.check(phy_offset, check_crc)
    message = result.message
    return dispatched(result, None if message is None else message.dispatch_request())


def scan(log: CommitLog, phy_offset: int) -> Any:
    """Return where each record lies, and what it is."""
    return tuple((offset, found.success, found.size) for offset, found in log.scan(phy_offset))


def seen(log: CommitLog) -> Any:
    """Return what a log holds."""
    return log.mapped_file_size, [(start, log.mapped(start)) for start in log.starts()]


def seen_of_old(log: Any) -> Any:
    """Return the same of the older model."""
    return log.mapped_file_size, [tuple(file) for file in log.files]


CALLS: Mapping[str, Any] = {"check": check, "scan": scan, "close": lambda log: None}
PLAIN = Plain(open_it, CALLS, seen=seen, seen_of_old=seen_of_old, kind=CommitLog)
