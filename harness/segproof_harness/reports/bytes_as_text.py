# SPDX-License-Identifier: Apache-2.0
"""Bytes of keys, values and bodies as text: UTF-8, JSON, hexadecimal digits, base64."""

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NoReturn

Encode = Callable[[bytes | None], Any]
"""Returns what stands for bytes in a row; None for null."""

Decode = Callable[[bytes | None, bytes | None, bool], tuple[Any, Any]]
"""Returns what stands for a key and its value in a row; the flag says that it is a control record.
"""


class BytesAs(StrEnum):
    """How bytes are shown."""

    AUTO = "auto"
    """Text if they are UTF-8 and printable, else `0x` and hexadecimal digits."""
    TEXT = "text"
    """UTF-8; a byte that is not is shown as `\\xNN`."""
    JSON = "json"
    """The value that they are as JSON; what is not JSON as `auto`."""
    HEX = "hex"
    BASE64 = "base64"


def as_base64(data: bytes | None) -> str | None:
    """Return bytes as base64."""
    return None if data is None else base64.b64encode(data).decode("ascii")


def bytes_as_they_are(data: bytes | None) -> bytes | None:
    """Return the bytes."""
    return data


def _as_auto(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    is_shown = text.isprintable() or all(one.isprintable() or one in "\t\n\r" for one in text)
    return text if is_shown else f"0x{data.hex()}"


def _as_text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _as_json(data: bytes) -> Any:
    def refuse(word: str) -> NoReturn:
        raise ValueError(f"{word} is no JSON")

    try:
        return json.loads(data.decode(), parse_constant=refuse)
    except (ValueError, RecursionError):
        return _as_auto(data)


_ENCODERS: dict[BytesAs, Callable[[bytes], Any]] = {
    BytesAs.AUTO: _as_auto,
    BytesAs.TEXT: _as_text,
    BytesAs.JSON: _as_json,
    BytesAs.HEX: bytes.hex,
    BytesAs.BASE64: lambda data: base64.b64encode(data).decode("ascii"),
}


def encoder(how: BytesAs, *, quoted: bool = False) -> Encode:
    """Return the function that shows bytes; quoted: text in double quotes, escaped as in JSON."""
    encode = _ENCODERS[how]

    def shown(data: bytes | None) -> Any:
        return None if data is None else encode(data)

    def in_quotes(data: bytes | None) -> Any:
        value = shown(data)
        is_hex = how is BytesAs.AUTO and data is not None and value == f"0x{data.hex()}"
        return value if value is None or is_hex else json.dumps(value, ensure_ascii=False)

    is_text = how not in (BytesAs.HEX, BytesAs.BASE64)
    return in_quotes if quoted and is_text else shown


@dataclass(frozen=True, slots=True)
class Encoders:
    """How the keys, values and header values of records are shown, and bodies of messages."""

    key: Encode = as_base64
    value: Encode = as_base64
    """Bodies of RocketMQ too."""
    header: Encode = as_base64
    decode: Decode | None = None
    """How key and value of a record of Kafka's are shown instead, where they are decoded."""


BASE64 = Encoders()
