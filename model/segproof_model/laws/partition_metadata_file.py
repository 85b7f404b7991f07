# SPDX-License-Identifier: Apache-2.0
"""The laws of `partition.metadata`.

Used by: the harness, the generated pages.
"""

import base64
import re

from segproof_model.language.outcomes import ErrorKind, Raised
from segproof_model.laws.checkpoint_file import text_lines
from segproof_model.laws.registry import law
from segproof_model.profiles import NEWEST_KAFKA, Profile

IO_ERROR = Raised(ErrorKind.IO_ERROR)
STRUCTURE = "partition-metadata-file"


@law("META-1", structure=STRUCTURE, scope="pure", source="Kafka PartitionMetadata.encode (2.8 on)")
def metadata_is_two_lines(topic_id: bytes, data: bytes) -> bool:
    """`partition.metadata` is `version: 0`, newline, `topic_id: ` and 22 base64 characters, without
    a trailing newline."""
    match = re.fullmatch(rb"version: 0\ntopic_id: ([A-Za-z0-9_-]{22})", data)
    return match is not None and base64.urlsafe_b64decode(match[1] + b"==") == topic_id


@law(
    "META-2", structure=STRUCTURE, scope="pure", source="Kafka PartitionMetadataReadBuffer (2.8 on)"
)
def zero_id_and_unknown_version_are_refused(
    data: bytes, outcome: object, profile: Profile = NEWEST_KAFKA
) -> bool:
    """A zero topic id raises an I/O error, as does a version other than 0 in <= 3.6 or a negative
    one in >= 3.7.

    It speaks of files that are two lines of the usual form.
    """
    lines = text_lines(data) or []
    matches = [re.fullmatch(r"\w+: ([\w+-]+)", line, re.ASCII) for line in lines[:2]]
    if len(matches) < 2 or matches[0] is None or matches[1] is None:
        return True
    version, topic_id = matches[0][1], matches[1][1]
    if re.fullmatch("[+-]?[0-9]{1,9}", version) is None:
        return outcome == IO_ERROR or len(version) > 9
    if int(version) < 0 or (profile.metadata_version_is_exact and int(version) > 0):
        return outcome == IO_ERROR
    if re.fullmatch("[A-Za-z0-9_-]{22}", topic_id) is None:
        return isinstance(outcome, Raised)
    known = base64.urlsafe_b64decode(topic_id + "==")
    return outcome == ((int(version), known) if any(known) else IO_ERROR)
