# SPDX-License-Identifier: Apache-2.0
"""The laws of `partition.metadata`."""

import base64
import re

from segproof_model.kafka.broker.checkpoint_releases import MetadataVersionIsExact
from segproof_model.kafka.broker.partition_metadata_file import PartitionMetadataFile
from segproof_model.language.outcomes import ErrorKind
from segproof_model.laws.kafka.broker.checkpoint_file import text_lines
from segproof_model.laws.register import Transition, has, law


@law("META-1", PartitionMetadataFile, "Kafka PartitionMetadata.encode, since 2.8", on="write")
def metadata_is_two_lines(step: Transition) -> bool:
    """`partition.metadata` is `version: 0`, newline, `topic_id: ` and 22 base64 characters, without
    a trailing newline.
    """
    data = step.after.files.image(step.after.name)
    found = re.fullmatch(rb"version: 0\ntopic_id: ([A-Za-z0-9_-]{22})", data)
    topic_id = base64.urlsafe_b64decode(found[1] + b"==") if found else None
    return topic_id == step.arguments["topic_id"] or not step.succeeded


@law("META-2", PartitionMetadataFile, "Kafka PartitionMetadataReadBuffer, since 2.8", on="read")
def zero_id_and_unknown_version_are_refused(step: Transition) -> bool:
    """A zero topic id raises an I/O error, as does a version other than 0 in <= 3.6 or a negative
    one in >= 3.7.

    It speaks of files that are two lines of the usual form.
    """
    lines = text_lines(step.before.files.image(step.before.name)) or []
    found = re.fullmatch(r"\w+: ([\w+-]+)\n\w+: ([\w+-]+)", "\n".join(lines[:2]), re.ASCII)
    if found is None:
        return True
    version, topic_id = found.groups()
    if re.fullmatch("[+-]?[0-9]{1,9}", version) is None:
        return step.raised(ErrorKind.IO_ERROR) or len(version) > 9
    if int(version) < 0 or (has(step.before, MetadataVersionIsExact) and int(version) > 0):
        return step.raised(ErrorKind.IO_ERROR)
    if re.fullmatch("[A-Za-z0-9_-]{22}", topic_id) is None:
        return not step.succeeded
    known = base64.urlsafe_b64decode(topic_id + "==")
    return step.outcome == (int(version), known) if any(known) else step.raised(ErrorKind.IO_ERROR)
