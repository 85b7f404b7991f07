# SPDX-License-Identifier: Apache-2.0
"""Whether the files of another folder are copies of a commit log's own, or of another log.

A broker writes each message into one folder, and no log has two messages at one place. Where no
file is common, offsets and sizes may agree by chance: brokers whose messages have equal sizes. What
differs then is the address of the broker, which each message has. It may have changed meanwhile.

Upstream: RocketMQ 5.5.1: MessageExtBrokerInner.storeHost, MappedFileQueue.
Laws: RMQDISK-42.
"""

import ipaddress
from contextlib import suppress
from typing import Final

from segproof.files import Files, first_byte_of
from segproof.reading.log_file_shares import shares_a_message
from segproof.reading.log_rows import LogFolder, Surroundings, first_stored
from segproof.rocketmq.commit_log import LogFile, inferred_size

__all__ = ["doubt_of", "has_other_broker", "is_copy_of", "is_zeros", "lacked_by", "written"]

TOLD_HOSTS_MAX: Final = 3
"""Addresses of brokers that are told."""


def is_copy_of(one: LogFolder, own: LogFolder, around: Surroundings) -> bool | None:
    """Return whether a sound message of a folder's file is in the own file of that name; False if
    other sound messages lie at their places, None if neither is known.

    Cost: what `shares_a_message` reads of each file whose name is in both, once for all calls.
    """
    both = written(one, around), own
    if both not in around.copies:
        around.copies[both] = _is_copy_of(*both, around.files)
    return around.copies[both]


def _is_copy_of(one: LogFolder, own: LogFolder, files: Files) -> bool | None:
    there = {each.start: each.path for each in own.log_files}
    size = inferred_size(own.log_files)
    found = None
    for each in one.log_files:
        if each.start in there:
            shares = shares_a_message(each, there[each.start], size, files)
            if shares:
                return True
            found = found if shares is None else shares
    return found


def has_other_broker(one: LogFolder, own: LogFolder, files: Files) -> bool:
    """Return whether the first messages of the files of two folders were stored by brokers of
    different addresses.

    Cost: the begin of each file is read.
    """
    mine, its = _hosts(own, files), _hosts(one, files)
    return bool(mine and its) and not mine & its


def doubt_of(one: LogFolder, own: LogFolder, around: Surroundings) -> str:
    """Return in words what speaks against one log of two folders; empty if nothing does.

    Cost: as `is_copy_of` and `has_other_broker` together.
    """
    is_copy, files = is_copy_of(one, own, around), around.files
    if is_copy:
        return ""
    if has_other_broker(one, own, files):
        mine, its = _hosts(own, files), _hosts(one, files)
        return (
            f"the first messages of these files were stored by a broker at {_listed(its)}, those of"
            f" its own files by one at {_listed(mine)}: these files may be of another broker, if"
            " the address of this one has not changed"
        )
    if is_copy is False:
        return "files of one name have other messages at the same places: they may be of two logs"
    return ""


def written(folder: LogFolder, around: Surroundings) -> LogFolder:
    """Return a folder without the files of zeros that follow its written ones in a row: a broker
    makes the next file before it needs it. Cost: that of `is_zeros`.
    """
    kept = sorted(folder.log_files)
    size = inferred_size(kept)
    while len(kept) > 1 and kept[-1].start - kept[-2].start == size and is_zeros(kept[-1], around):
        kept.pop()
    return LogFolder(folder.path, tuple(kept))


def is_zeros(one: LogFile, around: Surroundings) -> bool:
    """Return whether a file has zeros alone; False if it can't be read.

    Cost: it is read up to its first other byte, once for all calls.
    """
    if one not in around.zeros:
        around.zeros[one] = False
        with suppress(OSError):
            around.zeros[one] = first_byte_of(around.files, one.path, 0, one.size_bytes) is None
    return around.zeros[one]


def lacked_by(own: LogFolder, folder: LogFolder) -> LogFolder:
    """Return a folder without the files whose names are in the own one too."""
    starts = {one.start for one in own.log_files}
    return LogFolder(folder.path, tuple(one for one in folder.log_files if one.start not in starts))


def _hosts(folder: LogFolder, files: Files) -> set[bytes]:
    stored = (first_stored(one, files) for one in folder.log_files)
    return {one.host for one in stored if one is not None}


def _listed(hosts: set[bytes]) -> str:
    told = [_address(host) for host in sorted(hosts)[:TOLD_HOSTS_MAX]]
    return ", ".join(told) + " and others" * (len(hosts) > TOLD_HOSTS_MAX)


def _address(host: bytes) -> str:
    address, port = ipaddress.ip_address(host[:-4]), int.from_bytes(host[-4:], "big")
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
