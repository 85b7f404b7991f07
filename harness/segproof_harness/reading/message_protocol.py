# SPDX-License-Identifier: Apache-2.0
"""A reader of messages in Kafka's own encoding, by their schemas.

A flexible version has compact lengths, as unsigned varints of one more than the length, and tagged
fields at the end of each struct. Every length is held against the bytes that are left.
"""

import base64
import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from segproof.counts import plural

NUMBERS = {
    "bool": ">?",
    "int8": ">b",
    "int16": ">h",
    "uint16": ">H",
    "int32": ">i",
    "uint32": ">I",
    "int64": ">q",
    "float64": ">d",
}
VARINT_BYTES = 5

ShowBytes = Callable[[bytes], Any]


class UndecodableError(ValueError):
    """Bytes are no message of the schema; the text says why."""


@cache
def version_range(text: str) -> range:
    """Return the versions that a schema names.

    >>> 3 in version_range("2+"), list(version_range("0-1")), list(version_range("none"))
    (True, [0, 1], [])
    """
    if text == "none":
        return range(0)
    first, _, last = text.removesuffix("+").partition("-")
    return range(int(first), 1 << 15 if text.endswith("+") else int(last or first) + 1)


class MessageReader:
    """Reads the parts of a message, one after the other; `rest` is what is left."""

    def __init__(self, data: bytes, show_bytes: ShowBytes) -> None:
        self._data = data
        self._at = 0
        self._show_bytes = show_bytes

    @property
    def rest(self) -> bytes:
        """The bytes that are not read yet."""
        return self._data[self._at :]

    def number(self, kind: str) -> Any:
        """Read a number of fixed size. Raises: UndecodableError."""
        layout = NUMBERS[kind]
        return struct.unpack(layout, self._take(struct.calcsize(layout)))[0]

    def varint(self) -> int:
        """Read an unsigned varint of 32 bits. Raises: UndecodableError."""
        value = 0
        for place in range(VARINT_BYTES):
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << 7 * place
            if byte < 0x80:
                return value & 0xFFFFFFFF
        raise UndecodableError(f"the varint at byte {self._at} is too long")

    def message(self, schema: dict[str, Any], version: int) -> dict[str, Any]:
        """Read the fields of a version. Raises: UndecodableError."""
        if version not in version_range(schema["versions"]):
            known = schema["versions"]
            raise UndecodableError(
                f"version {version} of {schema['name']} is unknown; known: {known}"
            )
        is_flexible = version in version_range(schema["flexible"])
        return self._struct(schema["fields"], version, is_flexible)

    def _take(self, size: int) -> bytes:
        if size > len(self._data) - self._at:
            raise UndecodableError(
                f"{plural(size, 'byte', 'is', 'are')} to follow at byte {self._at} of"
                f" {len(self._data)}"
            )
        self._at += size
        return self._data[self._at - size : self._at]

    def _struct(self, fields: Any, version: int, is_flexible: bool) -> dict[str, Any]:
        here = [field for field in fields if version in version_range(field["versions"])]
        tagged = {
            field["tag"]: field
            for field in here
            if "tag" in field and version in version_range(field["tagged"])
        }
        found = {
            field["name"]: self._value(field, version, is_flexible)
            for field in here
            if field not in tagged.values()
        }
        if is_flexible:
            for _ in range(self.varint()):
                tag, end = self.varint(), self.varint()
                end += self._at
                if tag in tagged:
                    found[tagged[tag]["name"]] = self._value(
                        tagged[tag], version, is_flexible, presence="varint"
                    )
                else:
                    found[f"tag_{tag}"] = self._show_bytes(self._take(end - self._at))
                if self._at != end:
                    raise UndecodableError(f"tag {tag} ends at byte {self._at}, not {end}")
        return found

    def _value(
        self, field: dict[str, Any], version: int, is_flexible: bool, presence: str = "int8"
    ) -> Any:
        """Read a value; `presence` is how a struct says whether it is null."""
        kind = field["type"]
        if kind in NUMBERS:
            return self.number(kind)
        if kind == "uuid":
            return base64.urlsafe_b64encode(self._take(16)).rstrip(b"=").decode()
        is_nullable = version in version_range(field.get("nullable", "none"))
        if kind == "struct":
            length = self._presence(presence) if is_nullable else 0
        else:
            length = self._length(kind, is_flexible)
        if length < 0:
            if not is_nullable:
                raise UndecodableError(f"{field['name']} is null, at byte {self._at}")
            return None
        if kind == "struct":
            return self._struct(field["fields"], version, is_flexible)
        if kind.startswith("[]"):
            if length > len(self._data) - self._at:
                raise UndecodableError(
                    f"{field['name']} is to have {length} elements at byte {self._at}"
                    f" of {len(self._data)}"
                )
            # What can be null is the array: its elements are not.
            element = {"name": field["name"], "type": kind[2:], "fields": field.get("fields")}
            return [self._value(element, version, is_flexible) for _ in range(length)]
        data = self._take(length)
        if kind == "string":
            return data.decode("utf-8", "backslashreplace")
        return self._show_bytes(data)

    def _presence(self, kind: str) -> int:
        """Read whether a struct follows; below 0 for null."""
        return self.varint() - 1 if kind == "varint" else int(self.number(kind))

    def _length(self, kind: str, is_flexible: bool) -> int:
        """Read how long a value is; below 0 for null."""
        if is_flexible:
            return self.varint() - 1
        return int(self.number("int16" if kind == "string" else "int32"))
