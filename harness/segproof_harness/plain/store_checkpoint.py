# SPDX-License-Identifier: Apache-2.0
"""How the plain store checkpoint is driven."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.operations import Value
from segproof_harness.plain import Plain
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened
from segproof_model.rocketmq.broker.store_checkpoint import FIELDS, StoreCheckpoint


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Open a checkpoint."""
    return opened(release.kind(StoreCheckpoint), files, arguments["path"])


def close(checkpoint: StoreCheckpoint) -> None:
    """Close, by the name that upstream has for it."""
    checkpoint.shutdown()


def seen(checkpoint: Any) -> Any:
    """Return what a state holds beside the file."""
    return [getattr(checkpoint, name) for name in (*FIELDS, "name", "is_mapped")]


PLAIN = Plain(open_it, {"close": close}, seen=seen, seen_of_old=seen, kind=StoreCheckpoint)
