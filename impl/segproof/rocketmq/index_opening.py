# SPDX-License-Identifier: Apache-2.0
"""What is asked of an index file before it is opened, and how it is opened or made.

Upstream: RocketMQ IndexFile and DefaultMappedFile (5.5.1), which ask less: see the profile
    `segproof`.
Laws: RMQIDX-1, RMQIDX-9, RMQIDX-10.
"""

import os

from segproof.closing import undone_if_it_fails
from segproof.errors import CorruptIndexError, InvalidArgumentError, NumberFormatError
from segproof.files import File, Files
from segproof.hints import writes
from segproof.integers import INT32_MAX, parse_int
from segproof.rocketmq.index_header import IndexHeader


def index_file_size(hash_slot_num: int, index_num: int) -> int:
    """Return the size in bytes of a file with so many slots and entries (RMQIDX-1)."""
    return IndexHeader.SIZE + hash_slot_num * 4 + index_num * 20


def open_handle(
    files: Files, path: str, hash_slot_num: int, index_num: int, *, writable: bool, create: bool
) -> tuple[File, bool]:
    """Return the open file of its full length, and whether it is new.

    The directories above a new one are made. A writable one of no bytes, which a crash left before
    it got its length, counts as new.
    Raises, with no file created or changed: what `IndexFile.open` raises.
    """
    _check_name(path)
    _check_geometry(path, hash_slot_num, index_num)
    handle, is_new = _open_or_create(files, path, writable=writable, create=create)
    with undone_if_it_fails(handle.close, lambda: is_new and files.remove(path)):
        is_new = is_new or (writable and handle.size() == 0)
        if is_new:
            handle.truncate(index_file_size(hash_slot_num, index_num))
        else:
            _check_length(path, handle.size(), index_file_size(hash_slot_num, index_num))
    return handle, is_new


def _check_name(path: str) -> None:
    name = os.path.basename(path)
    try:
        parse_int(name, 64)
    except NumberFormatError:
        raise NumberFormatError(
            f"the name {name[:40]!r} is no number of 64 bits", law="RMQIDX-9", path=path
        ) from None


def is_sound_geometry(hash_slot_num: int, index_num: int) -> bool:
    """Return whether there is a slot, an entry to write, and a size that 31 bits hold."""
    if hash_slot_num < 1 or index_num < 2:
        return False
    return index_file_size(hash_slot_num, index_num) <= INT32_MAX


def _check_geometry(path: str, hash_slot_num: int, index_num: int) -> None:
    if is_sound_geometry(hash_slot_num, index_num):
        return
    if hash_slot_num < 1 or index_num < 2:
        raise InvalidArgumentError(
            f"{hash_slot_num} slots and {index_num} entries leave no entry to write",
            law="RMQIDX-1",
            path=path,
        )
    size = index_file_size(hash_slot_num, index_num)
    raise InvalidArgumentError(
        f"an index file has at most {INT32_MAX} bytes", law="RMQIDX-1", path=path, actual=size
    )


def _check_length(path: str, length: int, expected: int) -> None:
    if length != expected:
        raise CorruptIndexError(
            "the file has another length than its slots and entries take",
            law="RMQIDX-1",
            path=path,
            expected=expected,
            actual=length,
            hint=writes(
                "open it with the numbers it was made with, or rebuild it from the commit log"
            ),
        )


def _open_or_create(files: Files, path: str, *, writable: bool, create: bool) -> tuple[File, bool]:
    if create and files.status(path) is None:
        parent = os.path.dirname(path)
        if parent:
            files.make_directory(parent)
        created = files.create_new(path)
        if created is not None:
            return created, True
    return files.open(path, writable=writable), False
