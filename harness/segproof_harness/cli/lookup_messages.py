# SPDX-License-Identifier: Apache-2.0
"""How the verb `lookup` shows the messages that it found: times, properties and body."""

import base64
from collections.abc import Iterable, Iterator
from typing import Any

Row = dict[str, Any]

SHOWN_CHARACTERS = 4096
SHOWN_BYTES = 1024
"""So much of a body is shown as text, or of other bytes as hexadecimal digits."""


def message_rows(reader: Any, phy_offsets: Iterable[int]) -> Iterator[Row]:
    """Yield a row for each message, once: the fields of `dump`, and its times as text.

    Raises: as `StoreReader.look_message`.
    """
    from segproof.findings import time_text
    from segproof_harness.reading.store_file_rows import record_row

    for offset in dict.fromkeys(phy_offsets):
        message = reader.look_message(offset)
        if message is not None:
            row = record_row(message, offset, True)
            row["store_time"] = time_text(message.store_timestamp)
            row["born_time"] = time_text(message.born_timestamp)
            yield row


def lines_of_message(row: Row) -> Iterator[str]:
    """Yield a message in words, a line for each property."""
    yield (
        f"  message at offset {row['phy_offset']}: {row['size']} bytes, topic {row['topic']}, queue"
        f" {row['queue_id']}, number {row['queue_offset']}"
    )
    yield f"    stored: {row['store_time']}"
    yield f"    born: {row['born_time']}"
    for name, value in row["properties"].items():
        yield f"    property {name}: {value}"
    checked = "" if row["crc_valid"] else ", its checksum is wrong"
    yield f"    body: {row['body_size']} bytes{checked}{_shown(row['body'])}"


def _shown(encoded: str) -> str:
    body = base64.b64decode(encoded)
    if not body:
        return ""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        more = "" if len(body) <= SHOWN_BYTES else f" and {len(body) - SHOWN_BYTES} bytes more"
        return f", no UTF-8: {body[:SHOWN_BYTES].hex(' ', -4)}{more}"
    rest = len(text) - SHOWN_CHARACTERS
    return f": {text[:SHOWN_CHARACTERS]}{f' and {rest} characters more' if rest > 0 else ''}"
