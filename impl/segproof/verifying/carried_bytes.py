# SPDX-License-Identifier: Apache-2.0
"""What one segment hands on to the check of its partition, as bytes: JSON, and arrays behind it.

It travels between machines and lies in files, so it is plain data: reading it runs nothing.
"""

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from segproof.verifying.epoch_checks import EpochRun
from segproof.verifying.producer_checks import ProducerTable, empty_table
from segproof.verifying.segment_checks import Cut, LogCarry
from segproof.verifying.segments import FileState
from segproof.verifying.transaction_checks import (
    Coordinators,
    LoneMarkers,
    MarkerTimes,
    TransactionCarry,
)

__all__ = ["carried_from_bytes", "carried_to_bytes"]

Seen = tuple[FileState, ...]


def carried_to_bytes(carry: LogCarry, seen: Seen) -> bytes:
    """Return a carry, and what the files of its segment were when it was made, as bytes."""
    runs = np.array([tuple(run) for run in carry.runs], np.int64).reshape(-1, 4)
    tables = [carry.producers, *(cut.producers for cut in carry.cuts)]
    told = {
        "producers": [len(table) for table in tables],
        "runs": len(runs),
        "transactions": _transactions_to_json(carry.transactions),
        "left_out": carry.left_out,
        "missing": carry.missing,
        "unread": carry.unread,
        "end_offset": carry.end_offset,
        "is_read": carry.is_read,
        "cuts": [
            [cut.offset, [*cut.opened.items()], sorted(cut.closed), cut.missing, cut.unread]
            for cut in carry.cuts
        ],
        "seen": [[*state.identity, state.size_bytes] for state in seen],
    }
    arrays = [table.tobytes() for table in (*tables, runs)]
    return b"".join([json.dumps(told).encode(), b"\n", *arrays])


def carried_from_bytes(data: bytes) -> tuple[LogCarry, Seen]:
    """Return what `carried_to_bytes` was given. Raises: ValueError, KeyError, TypeError."""
    at = data.index(b"\n") + 1
    told = json.loads(data[:at])

    def array(dtype: np.dtype[Any], count: int) -> NDArray[Any]:
        nonlocal at
        found = np.frombuffer(data, dtype, count, at).copy()
        at += found.nbytes
        return found

    tables: list[ProducerTable] = [array(empty_table().dtype, n) for n in told["producers"]]
    runs = array(np.dtype(np.int64), told["runs"] * 4).reshape(-1, 4)
    carry = LogCarry(
        _transactions_from_json(told["transactions"]),
        tables[0],
        told["left_out"],
        [EpochRun(*run) for run in runs.tolist()],
        told["missing"],
        told["unread"],
        told["end_offset"],
        told["is_read"],
        [
            Cut(offset, table, dict(opened), set(closed), missing, unread)
            for table, (offset, opened, closed, missing, unread) in zip(
                tables[1:], told["cuts"], strict=True
            )
        ],
    )
    seen = tuple(FileState((device, inode), size) for device, inode, size in told["seen"])
    return carry, seen


def _transactions_to_json(carry: TransactionCarry) -> list[Any]:
    return [
        [*carry.opened.items()],
        [*carry.ended.items()],
        sorted(carry.closed),
        carry.lone,
        carry.times,
        [*carry.since.items()],
        [*carry.coordinators.items()],
        carry.is_complete,
    ]


def _transactions_from_json(told: list[Any]) -> TransactionCarry:
    opened, ended, closed, lone, times, since, coordinators, is_complete = told
    return TransactionCarry(
        dict(opened),
        {producer_id: (offset, at, gone) for producer_id, (offset, at, gone) in ended},
        set(closed),
        LoneMarkers(*lone),
        MarkerTimes(*times),
        dict(since),
        {producer_id: Coordinators(*each) for producer_id, each in coordinators},
        is_complete,
    )
