# SPDX-License-Identifier: Apache-2.0
"""How the plain log of a partition is driven."""

from collections.abc import Mapping
from typing import Any

from segproof_harness.codecs import CODECS
from segproof_harness.descriptions.log_arguments import logs_among
from segproof_harness.operations import Value
from segproof_harness.plain import Plain
from segproof_model.kafka.broker.partition_log import PartitionLog
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.outcomes import Step
from segproof_model.language.states import opened


def open_it(arguments: Mapping[str, Value], files: Files, release: Release) -> Step[Any]:
    """Load a log from the files, at the time that the arguments say."""
    given: dict[str, Any] = dict(arguments)
    kind: Any = release.kind(PartitionLog)
    return opened(
        kind,
        Files(files.images, given["now_ms"]),
        "",
        LogConfig(**dict(given["options"])),
        given["log_start_offset"],
        given["recovery_point"],
        given["last_shutdown_clean"],
        codecs=CODECS,
        draw=given["draw"],
        modified_ms=dict.fromkeys(logs_among(files), given["modified_ms"]),
    )


PLAIN = Plain(open_it)
