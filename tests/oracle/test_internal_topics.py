# SPDX-License-Identifier: Apache-2.0
"""The schemas of internal topics are those of the release, and Kafka's dump tool says the same."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

import segproof_tests
from segproof.reading.file_names import segment_file
from segproof_harness.reading.internal_topics import SCHEMAS, RecordDecoder, decoder_of
from segproof_harness.reading.log_file_rows import Shown
from segproof_harness.reading.segment_file_rows import rows_of
from segproof_harness.releases.dump_tool import dump_tool
from segproof_harness.releases.jars import class_path
from segproof_harness.releases.message_schemas import (
    message_schemas,
    schemas_text,
    snake_case,
)
from segproof_harness.releases.pinned import RELEASES
from segproof_harness.reports.bytes_as_text import Encoders, as_base64

TOPICS = Path(segproof_tests.__file__).parent / "internal_topics"
TOOL = RELEASES["kafka-4.2.1"]
LINE = re.compile(r"\| offset: (\d+) .*? headerKeys: \[\](?: key: (\{.*?\}\}))? payload: (.*)")
DECODED_FURTHER = {"subscription", "assignment"}
"""The tool decodes these bytes, which only clients understand."""


def test_the_schemas_are_those_of_the_release(not_run: Any) -> None:
    """`python -m segproof_harness.releases.message_schemas` writes the file that is kept."""
    try:
        schemas = message_schemas()
    except FileNotFoundError as error:
        not_run(str(error))
    assert schemas_text(schemas) == SCHEMAS.read_text(encoding="ascii")


@pytest.mark.needs("java")
@pytest.mark.parametrize(
    ("topic", "option", "count"),
    [
        ("__consumer_offsets", "--offsets-decoder", 15),
        ("__transaction_state", "--transaction-log-decoder", 8),
        ("__cluster_metadata", "--cluster-metadata-decoder", 43),
    ],
)
def test_the_dump_tool_of_kafka_says_the_same(
    topic: str, option: str, count: int, not_run: Any
) -> None:
    """Each field that the tool of 4.2.1 knows, in records of 4.4.0."""
    try:
        class_path(TOOL)
    except FileNotFoundError as error:
        not_run(str(error))
    log = TOPICS / f"{topic}-0" / "00000000000000000000.log"
    file = segment_file(str(log))
    assert file is not None
    encoders = Encoders(decode=RecordDecoder(decoder_of(str(log)), as_base64))
    rows = rows_of(file, Shown(with_records=True, encoders=encoders))
    ours = {row["offset"]: row for row in rows if "magic" not in row}
    compared = 0
    for line in dump_tool(TOOL, [log], option).stdout.splitlines():
        if (match := LINE.fullmatch(line)) is None or match[3].startswith("Error at"):
            continue  # of a control record, or of a version that is newer than the tool
        row = ours[int(match[1])]
        if match[2] is not None:
            check_same(json.loads(match[2])["data"], row["key"])
        if match[3] == "<DELETE>":
            assert row["value"] is None
        else:
            told = json.loads(match[3])
            assert int(told["version"]) == row["value"]["message_version"]
            check_same(told["data"], row["value"])
        compared += 1
    assert count == compared


def check_same(theirs: Any, ours: Any) -> None:
    """Check all that the tool says; a newer field is ours alone."""
    if isinstance(theirs, dict):
        for name, value in theirs.items():
            if name not in DECODED_FURTHER:
                check_same(value, ours[snake_case(name)])
    elif isinstance(theirs, list):
        assert len(theirs) == len(ours)
        for its, mine in zip(theirs, ours, strict=True):
            check_same(its, mine)
    else:
        assert theirs == ours
