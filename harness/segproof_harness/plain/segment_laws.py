# SPDX-License-Identifier: Apache-2.0
"""Ask the laws of segments that no step of a segment is judged by: lazy indexes, names, rebuilding.

python -m segproof_harness.plain.segment_laws [--seeds 200] [--release NAME ...]
"""

import argparse
import sys
from collections import Counter
from random import Random
from typing import Any

from segproof_model.kafka.format.batch_writing import write_batch
from segproof_model.kafka.format.lazy_index import LazyIndex
from segproof_model.kafka.format.log_config import LogConfig
from segproof_model.kafka.format.log_segment import LogSegment
from segproof_model.kafka.format.log_segment_releases import Told, append_told
from segproof_model.kafka.format.memory_records import MemoryRecords
from segproof_model.kafka.format.offset_index import OffsetIndex
from segproof_model.kafka.format.record import Record
from segproof_model.kafka.format.segment_names import offset_of_name, segment_file_name
from segproof_model.kafka.format.time_index import TimeIndex
from segproof_model.language.behaviours import Release
from segproof_model.language.files import Files
from segproof_model.language.states import apply, outcome_of
from segproof_model.laws.kafka.format import (  # noqa: F401
    lazy_index,
    log_segment,
    segment_files,
    segment_names,
    segment_recovery,
)
from segproof_model.laws.register import LAWS, Transition, broken_step_laws
from segproof_model.releases import KAFKA, RELEASES, SEGPROOF

LAZY_CALLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("get", {}),
    ("rename_to", {"file": "b.index"}),
    ("delete_if_exists", {}),
    ("close", {}),
    ("close_handler", {}),
)
NAMES = (
    "",
    "0.log",
    "-7.index",
    "x.log",
    "9",
    "9223372036854775808.log",
    "+3.a.b",
    "-.log",
    " 1.log",
)


def lazy_history(release: Release, draw: Random) -> list[str]:
    """Return the laws that a random history of a lazy index breaks."""
    kind = release.kind(draw.choice((OffsetIndex, TimeIndex)))
    files = Files({"a.index": bytes(24)} if draw.random() < 0.5 else {})
    lazy = release.kind(LazyIndex)(files, kind, "a.index", 40, draw.choice((4, 8, 80)))
    broken: list[str] = []
    for _ in range(draw.randrange(8)):
        name, arguments = draw.choice(LAZY_CALLS)
        step = apply(lazy, name, **arguments) if name != "get" else apply(lazy, load)
        done = Transition(type(lazy), lazy, name, arguments, step.after, step.outcome)
        broken += broken_step_laws(done)
        lazy = step.after
    return broken


def load(lazy: Any) -> None:
    """Load the index; the answer, which is a State, is left out."""
    lazy.get()


def rebuilt(release: Release, draw: Random) -> list[str]:
    """Return which laws a recovery breaks after appends that told the truth."""
    config = LogConfig(index_interval_bytes=draw.choice((0, 100)), segment_index_bytes=240)
    live: Any = release.kind(LogSegment)(Files(), "", 40, config)
    is_single, offset = draw.random() < 0.5, 40
    for _ in range(draw.randrange(1, 6)):
        data = b""
        for _ in range(1 if is_single else draw.randrange(1, 4)):
            count = draw.randrange(1, 4)
            offset += draw.choice((0, 0, 1, 5))
            times = [draw.choice((-1, 0, 5, 90, 100, 110)) for _ in range(count)]
            records = [Record(offset + n, at, None, b"ab") for n, at in enumerate(times)]
            data += write_batch(records, base_offset=offset)
            offset += count
        given = release.kind(MemoryRecords)(data)
        live = apply(live, append_told, offset - 1, given, Told()).after
    first = apply(live, "recover", None, None)
    second = apply(first.after, "recover", None, None)
    found = {
        "SEG-21": (first.after, second.after, second.outcome),
        "SEG-26": (live, first.after),
        **({"SEG-25": (live, first.after)} if is_single else {}),
    }
    judged = {LAWS[law]: given for law, given in found.items() if LAWS[law].speaks_of(release)}
    return [law.law_id for law, given in judged.items() if not law.predicate(*given)]


def misnamed(draw: Random) -> list[str]:
    """Return which laws the names of files break."""
    offset = draw.choice((0, 7, -7, 2**63 - 1, -(2**63), draw.randrange(10**19)))
    name = draw.choice((*NAMES, segment_file_name(offset, ".log")))
    written = offset, ".index", segment_file_name(offset, ".index")
    is_read = LAWS["FILE-2"].predicate(name, outcome_of(offset_of_name, name))
    is_written = LAWS["FILE-1"].predicate(*written)
    return ["FILE-2"] * (not is_read) + ["FILE-1"] * (not is_written)


def main() -> None:
    """Ask them, and print which were broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--release", nargs="*", default=None)
    given = parser.parse_args()
    broken: Counter[tuple[str, str]] = Counter()
    for name in given.release or [SEGPROOF.name, *(f"kafka-{number}" for number in KAFKA)]:
        for seed in range(given.seeds):
            draw, release = Random(seed), RELEASES[name]
            laws = lazy_history(release, draw) + misnamed(draw) + rebuilt(release, draw)
            broken.update((name, law) for law in laws)
    print(dict(broken) or "no law is broken")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
