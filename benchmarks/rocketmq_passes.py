# SPDX-License-Identifier: Apache-2.0
"""Our side of what is measured of RocketMQ's index files; see passes.py for how."""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import rocketmq
from benchmarks.modes import Pass, Prepared, mode

if TYPE_CHECKING:
    from segproof.rocketmq.index_file import IndexFile

MOST = 2**63 - 1


def _open(path: str | Path) -> "IndexFile":
    from segproof.rocketmq.index_file import IndexFile

    return IndexFile.open(path, rocketmq.HASH_SLOT_NUM, rocketmq.INDEX_NUM, create=True)


def _written(file: "IndexFile") -> Callable[[], int]:
    """Return what makes the checksum of what was written, and removes the file."""

    def checksum() -> int:
        end = file.file_size - (file.index_num - file.index_count) * file.ENTRY_SIZE
        path = Path(file.file_name)
        file.close()
        with path.open("rb") as handle:
            answer = zlib.crc32(handle.read(end))
        path.unlink()
        return answer

    return checksum


@mode
def index_put(folder: str, keys: str, form: str, part: str = "1") -> Prepared:
    """Put all keys into a new file; the checksum of its bytes."""
    asked: Any = rocketmq.read_keys(keys, int(part))
    numbers = np.arange(len(asked))
    offsets = numbers * rocketmq.MESSAGE_BYTES
    timestamps = numbers + rocketmq.FIRST_STORE_TIMESTAMP
    if form == "list":
        asked = [key.decode() for key in asked.tolist()]
    elif form == "arrow":
        import pyarrow

        asked = pyarrow.array(asked.tolist(), pyarrow.binary()).cast(pyarrow.string())

    def prepare() -> Pass:
        file = _open(Path(folder) / "20231114221320000")

        def one_pass() -> Callable[[], int]:
            assert file.put_keys(asked, offsets, timestamps) == len(numbers)
            return _written(file)

        return one_pass

    return Prepared(prepare)


@mode
def index_put_each(folder: str, keys: str, count: str) -> Prepared:
    """Put keys into a new file by calls from Python; the checksum of its bytes."""
    asked = [key.decode() for key in rocketmq.read_keys(keys)[: int(count)].tolist()]

    def prepare() -> Pass:
        file = _open(Path(folder) / "20231114221320000")

        def one_pass() -> Callable[[], int]:
            put_key = file.put_key
            for number, key in enumerate(asked):
                put_key(key, number, rocketmq.FIRST_STORE_TIMESTAMP + number)
            return _written(file)

        return one_pass

    return Prepared(prepare)


@mode
def index_select(path: str, keys: str, part: str = "1") -> Pass:
    """Look all keys up at once; the sum of the offsets."""
    file, asked = _open(path), rocketmq.read_keys(keys, int(part))

    def one_pass() -> Callable[[], int]:
        found = file.select_phy_offset_many(asked, 64, 0, MOST)[1]
        return lambda: int(found.sum())

    return one_pass


@mode
def index_select_each(path: str, keys: str, count: str) -> Pass:
    """Look each key up by a call from Python; the sum of the offsets."""
    file = _open(path)
    asked = [key.decode() for key in rocketmq.read_keys(keys)[: int(count)].tolist()]

    def one_pass() -> Callable[[], int]:
        select = file.select_phy_offset
        found = [select([], key, 64, 0, MOST) for key in asked]
        return lambda: sum(sum(one) for one in found)

    return one_pass


@mode
def index_open(path: str) -> Pass:
    """Open the file with its header; the index count."""

    def one_pass() -> Callable[[], int]:
        file = _open(path)

        def checksum() -> int:
            file.close()
            return file.index_count

        return checksum

    return one_pass
