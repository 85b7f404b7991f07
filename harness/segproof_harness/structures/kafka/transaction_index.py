# SPDX-License-Identifier: Apache-2.0
"""The transaction index, described for the harness.

Mirrors: segproof_model/kafka/format/transaction_index.py, segproof/kafka/transaction_index.py.
"""

from segproof_harness.structures.choices import INT64_MAX, INT64_MIN, Choose
from segproof_harness.structures.kafka.abstract_index import (
    BASE_OFFSETS,
    clamp64,
    names,
    open_impl,
    open_model,
    present_name,
    some_name,
)
from segproof_harness.structures.kinds import FLAG, INT16, INT64, NAME, Record
from segproof_harness.structures.operations import Value
from segproof_harness.structures.steps import Event, Setup, Situation
from segproof_harness.structures.structure import Parameter, Structure, operation
from segproof_model.kafka.format.index_deviations import ClosedIndexIsClosed
from segproof_model.kafka.format.transaction_index import (
    AbortedTxn,
    TransactionIndex,
    read_aborted_txns,
)
from segproof_model.laws.register import has

SUFFIX, ENTRY_SIZE = ".txnindex", 34
FAR = (0, -1, INT64_MAX, INT64_MIN, 2**31, 2**32)


def _start(situation: Situation) -> int:
    return int(situation.opened["start_offset"])  # type: ignore[arg-type]  # checked by the trace


def _entries(situation: Situation) -> list[AbortedTxn]:
    state = situation.state
    return [] if state is None else read_aborted_txns(state.image)


def _some_offset(choose: Choose, situation: Situation) -> int:
    entries = _entries(situation)
    kind = choose.weighted((12, 3, 1))
    if kind == 0 and entries:
        entry = choose.one_of(entries)
        return clamp64(choose.beside(choose.one_of(entry[2:])))
    if kind <= 1:
        return clamp64(_start(situation) + choose.integer(-2, 100))
    return choose.one_of(FAR)


def _new_txn(choose: Choose, situation: Situation) -> Value:
    entries = _entries(situation)
    last = entries[-1].last_offset if entries else _start(situation)
    kind = choose.weighted((16, 4, 1))
    if kind == 0:
        last_offset = last + choose.integer(1, 40)
    elif kind == 1:
        last_offset = choose.beside(last)
    else:
        last_offset = choose.one_of(FAR)
    version = choose.one_of((0,) * 20 + (1, -1, 0x0100, 0x00FF))
    first_offset = last_offset - choose.integer(-2, 30)
    last_stable_offset = last_offset + choose.integer(-30, 2)
    numbers = (choose.integer(0, 9), first_offset, last_offset, last_stable_offset)
    return (version, *map(clamp64, numbers))


ABORTED_TXN = Record(
    version=INT16,
    producer_id=INT64,
    first_offset=INT64,
    last_offset=INT64,
    last_stable_offset=INT64,
)


def _draw_setup(choose: Choose) -> Setup:
    start = choose.one_of(BASE_OFFSETS)
    name = names(SUFFIX)[0]
    arguments: dict[str, Value] = {
        "start_offset": start,
        "file": name,
        "writable": not choose.one_in(12),
    }
    kind = choose.weighted((6, 3, 2, 1, 1))
    if kind == 0:
        return Setup(arguments)
    good = b"".join(
        AbortedTxn(
            0, number, start + number * 10, start + number * 10 + 9, start + number
        ).to_bytes()
        for number in range(choose.integer(0, 8))
    )
    image = {
        1: good,
        2: good + choose.data(choose.integer(0, ENTRY_SIZE)),
        3: choose.data(ENTRY_SIZE * choose.integer(1, 4)),
        4: good + choose.one_of((b"\x00\x01", b"\x01\x00", b"\xff\x00", b"\x00\xff")) + bytes(32),
    }[kind]
    return Setup(arguments, {name: image})


def _count(event: Event) -> int:
    return 0 if event.after is None else len(event.after.entries_list())


TRANSACTION_INDEX = Structure(
    structure_id="transaction-index",
    model="segproof_model.kafka.format.transaction_index:TransactionIndex",
    opening=(
        Parameter("start_offset", INT64),
        Parameter("file", NAME, present_name(SUFFIX)),
        Parameter("writable", FLAG, lambda choose, situation: not choose.one_in(6)),
    ),
    draw_setup=_draw_setup,
    operations=(
        operation(
            "append",
            40,
            "TXNIDX-7 TXNIDX-6 TXNIDX-3",
            Parameter("aborted_txn", ABORTED_TXN, _new_txn),
            errors={"invalid-argument": "TXNIDX-5", "corrupt-index": "TXNIDX-16"},
        ),
        operation(
            "all_aborted_txns",
            8,
            "TXNIDX-8 TXNIDX-7",
            errors={"kafka-error": "TXNIDX-2", "unmapped": "TXNIDX-9"},
        ),
        operation(
            "collect_aborted_txns",
            16,
            "TXNIDX-10 TXNIDX-11",
            Parameter("fetch_offset", INT64, _some_offset),
            Parameter("upper_bound_offset", INT64, _some_offset),
        ),
        operation(
            "truncate_to", 6, "TXNIDX-12 TXNIDX-13", Parameter("offset", INT64, _some_offset)
        ),
        operation("reset", 2, "TXNIDX-14"),
        operation("sanity_check", 4, "TXNIDX-15"),
        operation("flush", 2, "TXNIDX-7"),
        operation("rename_to", 3, "TXNIDX-18", Parameter("file", NAME, some_name(SUFFIX))),
        operation("close", 2, "TXNIDX-9", ends=True),
        operation("delete_if_exists", 2, "TXNIDX-17", ends=True),
    ),
    observed=("is_empty",),
    sometimes={
        "empty": lambda event: event.after is not None and event.after.is_empty,
        "no-file": lambda event: (
            event.after is not None and event.after.name not in event.after.files
        ),
        "many": lambda event: _count(event) >= 5,
        "created-by-append": lambda event: (
            event.done("append") and event.before.name not in event.before.files
        ),
        "append-refused": lambda event: event.refused("invalid-argument", "append"),
        "partial-tail-refused": lambda event: event.refused("corrupt-index", "append"),
        "unknown-version": lambda event: event.outcome.error == "kafka-error",
        "complete": lambda event: event.done("collect_aborted_txns") and event.outcome.value[1],
        "incomplete-found": lambda event: (
            event.done("collect_aborted_txns")
            and not event.outcome.value[1]
            and len(event.outcome.value[0]) > 0
        ),
        "truncated": lambda event: (
            event.does("truncate_to") and 0 < _count(event) < len(event.before.entries_list())
        ),
        "corrupt-found": lambda event: event.refused("corrupt-index", "sanity_check"),
        "read-only-refused": lambda event: event.outcome.error == "read-only",
        "closed-refused": lambda event: event.outcome.error == "unmapped",
        "renamed-without-file": lambda event: (
            event.does("rename_to") and event.before.name not in event.before.files
        ),
        "deleted": lambda event: event.does("delete_if_exists") and event.outcome.value is True,
    },
    is_usable=lambda state: not (has(state, ClosedIndexIsClosed) and state.is_closed),
    open_model=open_model(TransactionIndex),
    open_impl=open_impl,
    laws=("TXNIDX-3", "TXNIDX-4"),
)
