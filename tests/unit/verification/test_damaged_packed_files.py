# SPDX-License-Identifier: Apache-2.0
"""Packed files of a commit log with damage: what lies behind it is neither compared nor let go."""

import bz2
import gzip
import lzma
import random
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from segproof.files import REAL_FILES
from segproof.reading.packed_log_files import with_one_unpacked
from segproof.verification import verify
from segproof_tests.store_files import LOG_BYTES, long_store

PACK: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress
}  # fmt: skip
CHECKSUM = -8
HALF = LOG_BYTES // 2


def packed_beside(store: Path, end: str, packed: bytes, lost: int) -> tuple[str, str]:
    """Put a packed file beside its file of the log, which then loses its bytes from `lost` on.

    Return the message and the hint of the finding about the packed one.
    """
    path = store / "commitlog" / f"{LOG_BYTES:020d}"
    path.with_name(path.name + end).write_bytes(packed)
    data = path.read_bytes()
    path.write_bytes(data[:lost] + bytes(len(data) - lost))
    (only,) = [one for one in verify(store) if one.law == "RMQDISK-39"]
    return only.message, only.hint


def with_wrong_checksum(store: Path) -> bytes:
    """Return the second log file of a store, packed by gzip with a wrong checksum."""
    packed = bytearray(gzip.compress((store / "commitlog" / f"{LOG_BYTES:020d}").read_bytes()))
    packed[CHECKSUM] ^= 1
    return bytes(packed)


@pytest.mark.checks("RMQDISK-39")
@pytest.mark.parametrize("end", PACK)
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("lost", [HALF, LOG_BYTES])
def test_what_lies_behind_damage_was_not_compared(
    end: str, place: int, lost: int, tmp_path: Path
) -> None:
    """Each sound message of it was said to be in the log, as just compared: move it out."""
    store = long_store(tmp_path / "store")
    data = (store / "commitlog" / f"{LOG_BYTES:020d}").read_bytes()
    streams = [bytearray(PACK[end](part)) for part in (data[:HALF], data[HALF:])]
    damaged = streams[place]
    damaged[len(damaged) // 2] ^= 0x55
    message, hint = packed_beside(store, end, b"".join(streams), lost)
    assert "is damaged from unpacked byte " in message
    assert "what lies behind was not compared" in message
    assert "each sound message of this one" not in message
    assert hint.startswith("keep it")
    assert "Only if" not in hint, "this is of hints that change files"
    assert "bzip2recover" in hint


@pytest.mark.checks("RMQDISK-39")
def test_a_wrong_checksum_of_gzip_takes_no_message(tmp_path: Path) -> None:
    """The last 64 KiB before it were not compared, which `gzip -dc` prints."""
    store = long_store(tmp_path / "store")
    message, hint = packed_beside(store, ".gz", with_wrong_checksum(store), HALF)
    assert "sound messages of it are not there" in message
    assert f"is damaged from unpacked byte {LOG_BYTES} on" in message
    assert hint.startswith("keep it")
    assert "Only if" not in hint


@pytest.mark.checks("RMQDISK-39")
def test_the_same_bytes_before_a_wrong_checksum_let_nothing_go(tmp_path: Path) -> None:
    """Behind the checksum another stream may follow."""
    store = long_store(tmp_path / "store")
    message, hint = packed_beside(store, ".gz", with_wrong_checksum(store), LOG_BYTES)
    assert "with each sound message that was compared" in message
    assert hint.startswith("keep it")


@pytest.mark.parametrize("end", PACK)
@pytest.mark.parametrize("zeros", [4, 512, 65_536, 200_000])
def test_zeros_behind_a_packed_file_are_no_damage(end: str, zeros: int, tmp_path: Path) -> None:
    """It was "damaged", and what lies behind "not compared": unpackers pass over zeros."""
    path = tmp_path / f"{0:020d}{end}"
    packed = PACK[end](b"one") + PACK[end](b"two") + bytes(zeros)
    path.write_bytes(packed)
    assert with_one_unpacked(str(path), end, 99, REAL_FILES)[1:] == (6, False)
    path.write_bytes(packed + b"x")
    assert with_one_unpacked(str(path), end, 99, REAL_FILES)[1:] == (6, True)
    path.write_bytes(packed + PACK[end](b"three"))
    # Only `xz` unpacks what follows zeros.
    told = (11, False) if end == ".xz" else (6, True)
    assert with_one_unpacked(str(path), end, 99, REAL_FILES)[1:] == told


@pytest.mark.parametrize("zeros", [1, 3, 65_537])
@pytest.mark.parametrize("behind", [b"", lzma.compress(b"two")])
def test_zeros_of_xz_go_in_fours(zeros: int, behind: bytes, tmp_path: Path) -> None:
    """Others are damage: `xz` says so."""
    path = tmp_path / f"{0:020d}.xz"
    path.write_bytes(lzma.compress(b"one") + bytes(zeros) + behind)
    assert with_one_unpacked(str(path), ".xz", 99, REAL_FILES)[1:] == (3, True)


@pytest.mark.checks("RMQDISK-39")
def test_of_a_packed_file_with_zeros_behind_it_all_was_compared(tmp_path: Path) -> None:
    """As a tape pads it."""
    store = long_store(tmp_path / "store")
    data = (store / "commitlog" / f"{LOG_BYTES:020d}").read_bytes()
    message, _ = packed_beside(store, ".gz", gzip.compress(data) + bytes(512), LOG_BYTES)
    assert message.endswith("the log has a file of the same name, with the same bytes")


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 65_537, 200_000])
@pytest.mark.parametrize("is_cut", [True, False])
def test_all_before_a_wrong_checksum_is_unpacked(size: int, is_cut: bool, tmp_path: Path) -> None:
    """Of bytes that pack well and badly, with the checksum wrong or cut off."""
    path = tmp_path / f"{0:020d}.gz"
    for plain in (random.Random(size).randbytes(size), bytes(size)):
        packed = bytearray(gzip.compress(plain))
        packed[CHECKSUM] ^= 1
        path.write_bytes(packed[:CHECKSUM] if is_cut else packed)
        files, length, is_damaged = with_one_unpacked(str(path), ".gz", size + 9, REAL_FILES)
        assert (size, True) == (length, is_damaged)
        with closing(files.open(str(path))) as file:
            assert plain == file.pread(size + 9, 0)
