# SPDX-License-Identifier: Apache-2.0
"""The borders of the laws about where the batches of a log begin and end."""

from segproof.findings import Severity
from segproof.kafka import write_empty_batch
from segproof_harness.laws.borders.border import Border, Due, Files
from segproof_harness.laws.borders.log_files import (
    BASE,
    batch,
    followed,
    message,
    name,
    patched,
    segment,
    with_byte,
)
from segproof_harness.laws.file_damages import int32

LOG_NAME = name(BASE, ".log")
FIRST = batch(BASE)
SIZE = len(FIRST)
EMPTY = write_empty_batch(BASE, BASE, 1)
"""The smallest batch of magic 2: its header of 61 bytes."""
SMALLEST = message(BASE, None, magic=0)
"""The smallest message: its size field is 14, and it takes 26 bytes."""
HEADER = "a batch header"


def _log(*parts: bytes) -> Files:
    return segment(b"".join(parts))


def _sized(data: bytes, size: int) -> bytes:
    """Return bytes with another size field."""
    return data[:8] + int32(size) + data[12:]


def _bad(position: int, data: bytes) -> Due:
    return Due(LOG_NAME, position, HEADER, data[:17].hex())


def _short(size: int) -> bytes:
    """Return a batch of magic 2 of that many bytes, as its size field says."""
    return _sized(EMPTY, size - 12)[:size]


THIRTEEN = _sized(SMALLEST, 13)
ZEROS_THEN_ONE = bytes(16) + b"\1"
TORN = Severity.WARNING

BORDERS = (
    # sizes
    Border(
        "SCAN-2", "the size field is 14, or 13",
        _log(SMALLEST), _log(THIRTEEN), _bad(0, THIRTEEN),
    ),
    Border(
        "SCAN-2", "the size field of the second batch is 14, or 13",
        _log(FIRST, SMALLEST), _log(FIRST, THIRTEEN), _bad(SIZE, THIRTEEN),
    ),
    Border(
        "SCAN-2", "17 bytes are left, or 18",
        _log(FIRST, THIRTEEN[:17]), _log(FIRST, THIRTEEN[:18]), _bad(SIZE, THIRTEEN),
    ),
    Border(
        "SCAN-2", "the size field is 14, or negative",
        _log(SMALLEST), _log(_sized(SMALLEST, -1)), _bad(0, _sized(SMALLEST, -1)),
    ),
    # magic
    Border(
        "DISK-23", "the magic is 2, or 3",
        _log(FIRST), _log(with_byte(FIRST, 16, 3)), _bad(0, with_byte(FIRST, 16, 3)),
    ),
    Border(
        "DISK-23", "the magic is 0, or -1",
        _log(FIRST, SMALLEST), _log(FIRST, with_byte(SMALLEST, 16, 255)),
        _bad(SIZE, with_byte(SMALLEST, 16, 255)),
    ),
    Border(
        "DISK-23", "the magic is 0, or -128",
        _log(SMALLEST), _log(with_byte(SMALLEST, 16, 128)),
        _bad(0, with_byte(SMALLEST, 16, 128)),
    ),
    # headers
    Border(
        "SCAN-10", "a header ends with the log, or one byte after",
        _log(EMPTY), _log(_short(60)), _bad(0, _short(60)),
    ),
    Border(
        "SCAN-10", "61 bytes are left for the header of a shorter batch, or 60",
        _log(_short(32), FIRST[:29]), _log(_short(32), FIRST[:28]), _bad(0, _short(32)),
    ),
    Border(
        "SCAN-10", "the header of the second batch ends with the log, or one byte after",
        _log(FIRST, patched(EMPTY, base_offset=BASE + 1)), _log(FIRST, _short(60)),
        _bad(SIZE, _short(60)),
    ),
    # the end
    Border(
        "DUMP-6", "the log ends with its batch, or one byte before",
        _log(FIRST), _log(FIRST[:-1]), Due(LOG_NAME, 0, 0, SIZE - 1, TORN),
    ),
    Border(
        "DUMP-6", "the log ends with its second batch, or one byte before",
        _log(FIRST, batch(BASE + 1)), _log(FIRST, batch(BASE + 1)[:-1]),
        Due(LOG_NAME, SIZE, SIZE, 2 * SIZE - 1, TORN),
    ),
    Border(
        "DUMP-6", "the log ends with its batch, or one byte after",
        _log(FIRST), _log(FIRST, b"\1"), Due(LOG_NAME, SIZE, SIZE, SIZE + 1, TORN),
    ),
    Border(
        "DUMP-6", "17 bytes after the last batch are zero, or all but the last",
        _log(FIRST, bytes(17)), _log(FIRST, ZEROS_THEN_ONE),
        Due(LOG_NAME, SIZE, SIZE, SIZE + 17, TORN),
    ),
    Border(
        "DUMP-6", "the size field fits into the log, or is one more",
        _log(_sized(FIRST, SIZE - 12)), _log(_sized(FIRST, SIZE - 11)),
        Due(LOG_NAME, 0, 0, SIZE, Severity.ERROR),
    ),
    Border(
        "DUMP-6", "the torn segment is the last one, or another follows",
        _log(FIRST[:-1]), followed(_log(FIRST[:-1]), BASE + 1),
        Due(LOG_NAME, 0, 0, SIZE - 1), still=Due(LOG_NAME, 0, 0, SIZE - 1, TORN),
    ),
)  # fmt: skip
