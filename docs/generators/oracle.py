# SPDX-License-Identifier: Apache-2.0
"""The page of the conformance runs, docs/results/oracle.md, from the record that they keep.

Used by: docs/generate.py.
"""

from pathlib import Path

from segproof_harness.oracle.conformance import Conformance, read_record
from segproof_harness.oracle.messages import reason_without
from segproof_harness.oracle.releases import RELEASES, Release
from segproof_harness.structures import STRUCTURE_IDS, structure_named

RECORD = Path(__file__).resolve().parent.parent / "results" / "oracle.jsonl"
OPENING = """\
# The model against the real releases

Who should read this: whoever asks how far the model can be believed. This page is generated from
the record of the command

```sh
segproof oracle run --record docs/results/oracle.jsonl
```

Each history is run by the model under the profile of a release, and by the real classes of that
release in a JVM (Java 17): every answer and every kind of error is compared, and accessors and
the bytes of all files at each tenth operation and at the end. A divergence counts as unexplained:
what releases do differently is in their [profiles](../reference/releases.md), so that none is
left to explain here. A dash: the release is not asked about this structure, since it lacks the
class or no adapter serves it; `not run` means just that. What 0.10.2.2 knows is messages of magic
0 and 1: its histories have no others, and no transaction index; what it makes of them is in no
profile. Up to 2.2.2 the replica, not the log, knows the high watermark: it is told to the log, and
reads are bounded by it, as the replica does both. Leaders are not given several batches in one call
there, unless all are of magic 0 and 1, or of magic 2 and without a codec. The log of 0.10.2.2 is
told nothing, so that its retention goes by no high watermark; it has no producers, leader epochs,
aborted transactions or log start of its own, and splits no segment: nothing of these is asked, nor
are messages drawn that its leader would compress anew. It takes files as the directory lists them:
by name, as the oracle sees to it in a directory in memory on Linux.

These seeds were also used to mend by, so they find nothing more. From seeds that nothing had been
mended by, 200 to 400 histories of each structure on each release were run on 2026-11-22: record
files, batches and segments differed in about one of 1 000, whole logs up to 2.4.1 in one of 100 to
400, the others in none. What was found is mended ([defects](defects.md)); expect a few more in the
older releases.
"""
TABLE = """
## {system}

{histories} histories, {operations} operations, {answers} answers and {megabytes} MB of files
compared: **{divergences} divergences**.

| release | {heads} | histories | divergences | seeds | date |
| --- |{rule} --- | --- | --- | --- |
"""


def _cell(release: Release, structure: str, record: dict[tuple[str, str], Conformance]) -> str:
    reason = reason_without(structure, release)
    row = record.get((release.name, structure))
    if row is not None:
        return f"{row.histories:,}".replace(",", " ")
    return "-" if reason is not None else "not run"


def _row(
    release: Release, structures: list[str], record: dict[tuple[str, str], Conformance]
) -> str:
    rows = [record[key] for key in record if key[0] == release.name]
    cells = " | ".join(_cell(release, structure, record) for structure in structures)
    if not rows:
        return f"| {release.version} | {cells} | 0 | not run | | |\n"
    histories = sum(row.histories for row in rows)
    ends: dict[int, int] = {}
    for row in rows:
        end = row.first_seed + row.histories - 1
        ends[row.first_seed] = max(ends.get(row.first_seed, 0), end)
    seeds = ", ".join(f"{first} to {end}" for first, end in sorted(ends.items()))
    found = sum(row.divergences for row in rows)
    return (
        f"| {release.version} | {cells} | {histories} | {found} | {seeds} | "
        f"{max(row.date for row in rows)} |\n"
    )


def _system(system: str, title: str, record: dict[tuple[str, str], Conformance]) -> str:
    structures = [one for one in STRUCTURE_IDS if structure_named(one).system == system]
    own = [row for (release, _), row in record.items() if release.startswith(f"{system}-")]
    text = TABLE.format(
        system=title,
        histories=sum(row.histories for row in own),
        operations=sum(row.operations for row in own),
        answers=sum(row.answers_compared for row in own),
        megabytes=sum(row.bytes_compared for row in own) // 1_000_000,
        divergences=sum(row.divergences for row in own),
        heads=" | ".join(structures),
        rule=" --- |" * len(structures),
    )
    releases = [release for release in RELEASES.values() if release.system == system]
    return text + "".join(_row(release, structures, record) for release in releases)


def pages() -> dict[str, str]:
    """Return the page by path."""
    record = read_record(RECORD)
    tables = _system("kafka", "Kafka", record) + _system("rocketmq", "RocketMQ", record)
    return {"results/oracle.md": OPENING + tables}
