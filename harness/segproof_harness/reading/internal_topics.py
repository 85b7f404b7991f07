# SPDX-License-Identifier: Apache-2.0
"""Keys and values of the records in Kafka's internal topics, as their fields."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any

import segproof_harness
from segproof_harness.reading.message_protocol import (
    MessageReader,
    ShowBytes,
    UndecodableError,
)

SCHEMAS = Path(segproof_harness.__file__).parent / "data" / "message_schemas.json"
FRAME_VERSION = 1
"""The version of the frame around a metadata record."""
CONTROL = "control"


class Decoder(StrEnum):
    """Whose records are decoded; `none` leaves keys and values as bytes."""

    CONSUMER_OFFSETS = "consumer-offsets"
    TRANSACTION_STATE = "transaction-state"
    CLUSTER_METADATA = "cluster-metadata"
    SHARE_GROUP_STATE = "share-group-state"
    NONE = "none"

    @property
    def topic(self) -> str:
        """The name of the topic."""
        return "__" + self.value.replace("-", "_")


def decoder_of(path: str) -> Decoder:
    """Return the decoder for a partition or a file in it, told by the names alone."""
    here = os.path.abspath(path)
    if os.path.basename(here) == "bootstrap.checkpoint":
        return Decoder.CLUSTER_METADATA
    names = (os.path.basename(here), os.path.basename(os.path.dirname(here)))
    topics = {match[1] for name in names if (match := re.fullmatch(r"(__\w+)-[0-9]+", name))}
    return next((each for each in Decoder if each.topic in topics), Decoder.NONE)


@cache
def _schemas() -> Any:
    return json.loads(SCHEMAS.read_text(encoding="ascii"))["topics"]


@dataclass(frozen=True, slots=True)
class RecordDecoder:
    """Decodes keys and values.

    Each is an object with its `type` and its fields, a value with its `message_version` too. One
    that can't be decoded is an object with `undecoded`, which is what `show_bytes` makes of it, and
    `note`, which says why. Bytes behind the last field are in `unread`. null stays None.
    """

    decoder: Decoder
    show_bytes: ShowBytes
    """Returns what stands for bytes, also for those within a message."""

    def __call__(self, key: bytes | None, value: bytes | None, is_control: bool) -> tuple[Any, Any]:
        """Return what stands for a key and its value."""
        if is_control:
            return self._shown(key, self._control_key), self._shown(
                value, lambda reader: self._control_value(key, reader)
            )
        if self.decoder is Decoder.CLUSTER_METADATA:
            return (None if key is None else self.show_bytes(key)), self._shown(value, _framed)
        return self._shown(key, self._key), self._shown(
            value, lambda reader: self._value(key, reader)
        )

    def _shown(self, data: bytes | None, decode: Callable[[MessageReader], dict[str, Any]]) -> Any:
        if data is None:
            return None
        reader = MessageReader(data, self.show_bytes)
        try:
            found = decode(reader)
        except UndecodableError as error:
            return {"undecoded": self.show_bytes(data), "note": str(error)}
        return found | ({"unread": self.show_bytes(reader.rest)} if reader.rest else {})

    def _pair(self, key: bytes | None) -> tuple[Any, Any]:
        """Return the schemas of a key and its value. Raises: UndecodableError."""
        if key is None:
            raise UndecodableError("the key, which tells the type, is null")
        number = MessageReader(key, self.show_bytes).number("int16")
        return _known(self.decoder.topic, number)

    def _key(self, reader: MessageReader) -> dict[str, Any]:
        schema, _ = _known(self.decoder.topic, reader.number("int16"))
        return {"type": schema["name"], **reader.message(schema, 0)}

    def _value(self, key: bytes | None, reader: MessageReader) -> dict[str, Any]:
        _, schema = self._pair(key)
        version = reader.number("int16")
        return _message(reader, schema, version)

    def _control_key(self, reader: MessageReader) -> dict[str, Any]:
        reader.number("int16")  # its version; all have the same layout
        _, schema = _known(CONTROL, number := reader.number("int16"))
        return {"type": ("ABORT", "COMMIT")[number] if number < 2 else schema["name"]}

    def _control_value(self, key: bytes | None, reader: MessageReader) -> dict[str, Any]:
        if key is None:
            raise UndecodableError("the key, which tells the type, is null")
        of_key = MessageReader(key, self.show_bytes)
        of_key.number("int16")
        _, schema = _known(CONTROL, of_key.number("int16"))
        version = MessageReader(reader.rest, self.show_bytes).number("int16")
        if schema["fields"][0]["name"] != "version":  # else the first field says it
            reader.number("int16")
        return _message(reader, schema, version)


def _framed(reader: MessageReader) -> dict[str, Any]:
    """Read a metadata record with the frame around it. Raises: UndecodableError."""
    if (frame := reader.varint()) != FRAME_VERSION:
        raise UndecodableError(f"frame version {frame} is unknown; known: {FRAME_VERSION}")
    _, schema = _known(Decoder.CLUSTER_METADATA.topic, reader.varint())
    version = reader.varint()
    return _message(reader, schema, version)


def _message(reader: MessageReader, schema: Any, version: int) -> dict[str, Any]:
    """Read the fields of a value, behind its name and version. Raises: UndecodableError."""
    fields = reader.message(schema, version)
    return {"type": schema["name"], "message_version": version, **fields}


def _known(topic: str, number: int) -> tuple[Any, Any]:
    """Return the schemas of a number: of the key and the value. Raises: UndecodableError."""
    found = _schemas()[topic].get(str(number))
    if found is None:
        raise UndecodableError(f"type {number} is unknown in {topic}")
    return found[0], found[1]
