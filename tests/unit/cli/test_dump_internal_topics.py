# SPDX-License-Identifier: Apache-2.0
"""`dump` decodes the internal topics, in files that a broker of Kafka 4.4.0 wrote."""

import csv
import json
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import segproof_tests
from segproof_harness import cli
from segproof_harness.reading.internal_topics import (
    SCHEMAS,
    Decoder,
    RecordDecoder,
    decoder_of,
)
from segproof_tests.printed_rows import jsonl

TOPICS = Path(segproof_tests.__file__).parent / "internal_topics"
LOG = "00000000000000000000.log"
OFFSETS = TOPICS / "__consumer_offsets-0" / LOG
TRANSACTIONS = TOPICS / "__transaction_state-0" / LOG
METADATA = TOPICS / "__cluster_metadata-0" / LOG
COMMIT_KEY = bytes.fromhex("0001 0007") + b"billing" + b"\0\6orders" + bytes(4)


def records(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> list[Any]:
    """Return the records that `dump --records` shows of a log."""
    rows = jsonl(capsys, "dump", path, "--records", *options)
    return [row for row in rows if "magic" not in row]


def decode(decoder: Decoder, key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
    """Return what stands for a key and a value that are no control record."""
    return RecordDecoder(decoder, bytes.hex)(key, value, False)


def test_committed_offsets_and_groups_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """The classic group's commit and members, and the records of the new protocol."""
    shown = records(capsys, OFFSETS)
    commit = shown[2]
    key = {"type": "OffsetCommitKey", "group": "billing", "topic": "orders", "partition": 0}
    assert key == commit["key"]
    assert (4, 5) == (commit["value"]["message_version"], commit["value"]["offset"])
    assert commit["value"]["topic_id"] == "rOIKALumQLqEz9LUvlDLhw"
    (member,) = shown[1]["value"]["members"]
    assert ("till", "/127.0.0.1") == (member["client_id"], member["client_host"])
    joined = shown[4]["value"]
    assert "ConsumerGroupMemberMetadataValue" == joined["type"]
    assert (["orders"], None) == (
        joined["subscribed_topic_names"],
        joined["classic_member_metadata"],
    )
    assert shown[10]["value"] is None
    assert not any("undecoded" in str(row) or "unread" in str(row) for row in shown)


def test_transactions_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Each state of a commit and of an abort, with the partitions of the transaction."""
    values = [row["value"] for row in records(capsys, TRANSACTIONS)]
    assert [0, 1, 2, 4, 0, 1, 3, 5] == [value["transaction_status"] for value in values]
    partitions = [{"topic": "orders", "partition_ids": [0]}]
    assert partitions == values[1]["transaction_partitions"]


def test_metadata_and_its_control_records_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """Records of the log and of its snapshot, found by the directory."""
    shown = records(capsys, METADATA)
    assert {"voter_id": 1} in shown[0]["value"]["voters"]
    topics = [row["value"]["name"] for row in shown if row["value"]["type"] == "TopicRecord"]
    assert ["orders", "__transaction_state", "__consumer_offsets"] == topics
    (broker,) = [row["value"] for row in shown if row["value"]["type"] == "RegisterBrokerRecord"]
    assert "127.0.0.1" == broker["end_points"][0]["host"]
    snapshot = records(capsys, METADATA.parent / "00000000000000000000-0000000000.checkpoint")
    types = [row["value"]["type"] for row in snapshot]
    expected = ["SnapshotHeaderRecord", *["FeatureLevelRecord"] * 6, "SnapshotFooterRecord"]
    assert expected == types


def test_a_decoder_is_chosen_by_the_directory_or_by_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bytes are shown where they are asked for, and where the directory says nothing."""
    elsewhere = Path(shutil.copy(OFFSETS, tmp_path / LOG))
    as_bytes = records(capsys, elsewhere)
    assert isinstance(as_bytes[2]["key"], str)
    assert as_bytes == records(capsys, OFFSETS, "--decoder", "none")
    assert as_bytes == records(capsys, OFFSETS, "--values", "base64")
    decoded = records(capsys, OFFSETS)
    assert decoded == records(capsys, elsewhere, "--decoder", "consumer-offsets")
    assert decoded == records(capsys, OFFSETS, "--profile", "kafka-4.4.0")
    assert Decoder.CLUSTER_METADATA == decoder_of("data/bootstrap.checkpoint")
    assert Decoder.NONE == decoder_of("my__consumer_offsets-0/" + LOG)


def test_decoded_records_are_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    """CSV has the fields of a key or value as JSON in its column."""
    assert cli.run(["dump", str(OFFSETS), "--records", "--format", "csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    assert "billing" == json.loads(rows[0]["key"])["group"]


@pytest.mark.parametrize(
    ("version", "layout", "fields"),
    [
        (0, "qhq", {"offset": 77, "metadata": "", "commit_timestamp": 5}),
        (1, "qhqq", {"offset": 77, "metadata": "", "commit_timestamp": 5, "expire_timestamp": 6}),
        (3, "qihq", {"offset": 77, "leader_epoch": 2, "metadata": "", "commit_timestamp": 5}),
    ],
)
def test_older_versions_are_read(version: int, layout: str, fields: dict[str, Any]) -> None:
    """A commit has the fields of its version."""
    numbers = [value or 0 for value in fields.values()]  # the length of the text is 0
    value = struct.pack(f">h{layout}", version, *numbers)
    expected = {"type": "OffsetCommitValue", "message_version": version, **fields}
    assert expected == decode(Decoder.CONSUMER_OFFSETS, COMMIT_KEY, value)[1]


@pytest.mark.parametrize(
    ("decoder", "key", "value", "note"),
    [
        ("consumer-offsets", "7fff", "00", "type 32767 is unknown in __consumer_offsets"),
        ("consumer-offsets", None, "0000", "the key, which tells the type, is null"),
        ("consumer-offsets", "0002 0001 61", "0063", "version 99 of GroupMetadataValue is unknown"),
        ("consumer-offsets", "0002 0001 61", "0003 7fff 61", "32767 bytes are to follow"),
        (
            "consumer-offsets",
            "0002 0001 61",
            "0000 0000 00000000 0000 0000 7fffffff",
            "members is to have 2147483647 elements",
        ),
        ("consumer-offsets", "0002 0001 61", "0000 ffff", "protocol_type is null"),
        ("cluster-metadata", None, "02 00 00", "frame version 2 is unknown; known: 1"),
        ("cluster-metadata", None, "01 ffffffffff01", "the varint at byte 6 is too long"),
        ("cluster-metadata", None, "01 02 00 01 01", "16 bytes are to follow"),
        ("cluster-metadata", None, "01 14 00 01 05 7f", "127 bytes are to follow"),
        ("cluster-metadata", None, "01 14 00 ffffffff0f", "1 byte is to follow"),
    ],
)
def test_what_can_not_be_decoded_is_shown_with_the_reason(
    decoder: str, key: str | None, value: str, note: str
) -> None:
    """The bytes stay as they are, and a length is held against the bytes that are there."""
    data = bytes.fromhex(value)
    shown = decode(Decoder(decoder), None if key is None else bytes.fromhex(key), data)[1]
    assert data.hex() == shown["undecoded"]
    assert note in shown["note"]


def test_unknown_tags_and_bytes_behind_the_end_are_shown() -> None:
    """Nothing of a newer release's record is lost silently."""
    no_op = {"type": "NoOpRecord", "message_version": 0}
    shown = decode(Decoder.CLUSTER_METADATA, None, bytes.fromhex("01 14 00 01 05 02 abcd ef"))[1]
    assert no_op | {"tag_5": "abcd", "unread": "ef"} == shown


@given(
    decoder=st.sampled_from([each for each in Decoder if each is not Decoder.NONE]),
    number=st.integers(0, 30),
    key=st.binary(max_size=40),
    value=st.binary(max_size=80),
    is_control=st.booleans(),
)
def test_any_bytes_have_an_answer(
    decoder: Decoder, number: int, key: bytes, value: bytes, is_control: bool
) -> None:
    """No bytes raise, and what is shown is JSON."""
    in_frame = bytes((1, number, 0)) if decoder is Decoder.CLUSTER_METADATA else bytes(2)
    for shown in (
        RecordDecoder(decoder, bytes.hex)(struct.pack(">h", number) + key, each, is_control)
        for each in (value, in_frame + value)
    ):
        assert len(json.dumps(shown)) > 0


def test_no_field_hides_what_is_told_of_a_record() -> None:
    """The names beside the fields are names of no field."""
    topics = json.loads(SCHEMAS.read_text(encoding="ascii"))["topics"]
    names = {
        (schema["name"], field["name"])
        for numbers in topics.values()
        for pair in numbers.values()
        for schema in pair
        if schema is not None
        for field in schema["fields"]
    }
    taken = {"type", "message_version", "undecoded", "note", "unread"}
    assert set() == {(schema, name) for schema, name in names if name in taken}
