# SPDX-License-Identifier: Apache-2.0
"""The page of the conformance runs, docs/results/oracle.md, from the record that they keep."""

from collections.abc import Sequence
from pathlib import Path

from segproof_harness.conformance.release_histories import Conformance, added_left_out, read_record
from segproof_harness.releases.child_messages import reason_without
from segproof_harness.releases.pinned import RELEASES, Release
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named

RECORD = Path(__file__).resolve().parent.parent / "results" / "oracle.jsonl"
OPENING = """\
# The model against the real releases

Who should read this: everyone who asks how far to believe the model. This page is generated from
the record of the command

```sh
segproof oracle run --record docs/results/oracle.jsonl
```

## What is compared

The model runs each history under the profile of a release. The real classes of that release run
the same history in a JVM (Java 17). Every answer and every kind of error is compared; accessors
and the bytes of all files are compared at each tenth operation and at the end. A divergence is a
difference that no [profile](../reference/releases.md) states.

A dash in a table: the release is not asked about this structure, since it lacks the class or no
adapter serves it. `not run` means just that.

There are two kinds of runs:

- Seeds that were also used to mend the model. Their tables show that no mended defect has come
  back.
- **Fresh seeds**: nothing had been mended by them when they were run. Their tables show how much
  more there is to find. A fresh run stays in its table with what it found, even if that is mended
  since ([defects](defects.md)). The last run of a structure shows what is left.

Up to seed 799 999 no history varied `message.timestamp.after.max.ms`. Up to 1 199 999, for 4.4.0
and 4.3.1 up to 2 999 999, no history asked a closed log. The same seeds make other histories of
whole logs now. So 2 000 fresh ones each of 4.3.1, 3.9.2, 2.8.2 and 0.11.0.3 are in no table; they
showed 1, 1, 0 and 5 differences on 2026-11-23, which are mended too.

## What is not asked

A step is left out if the real class would never end, or if its answer depends on the computer's
time or on the order of a hash. It is left out too if a leader would compress records again, since
Java's codecs make other bytes. The tables at the end of each system count the steps left out, in
the runs that counted them.

- The cleaner is not drawn.
- In the runs of these tables no `compression.type` makes a leader compress: a batch would have
  other bytes, and so other positions, indexes and rolls behind it. A test of its own draws such
  leaders with 4.4.0, 4.3.1, 3.9.2, 2.8.2 and 0.11.0.3, for each codec that they know. It compares
  the answers that do not depend on positions, and the records when they are read again.
- Leaders of topics that want `uncompressed` batches are asked: they write again what comes
  compressed.
- A closed log is asked the same as an open one, and is closed once more too. From 4.4 on it
  refuses what would change it; before 4.4 its closed files and indexes decide. Two steps of 0.11
  and before are left out and counted: a truncation of a closed log that fails when no segment is
  left, and a roll that fails after it has removed the file of its own segment.
- To close a log as the end of a process does is part of the next opening after a crash.

Old releases lack more:

- Up to 2.2.2 the replica knows the high watermark, and the log does not. The oracle tells it to
  the log, and bounds reads by it, as the replica does. A leader there gets several batches in one
  call only if all are of magic 0 and 1, or of magic 2 and without a codec.
- 0.10.2.2 knows messages of magic 0 and 1. Its histories have no others, and no transaction
  index; what it makes of others is in no profile. Its log is told no high watermark, so its
  retention goes without one. It has no producers, leader epochs, aborted transactions or log
  start of its own, and splits no segment, so it is asked about none of them. No message is drawn
  that its leader would compress again. It takes files in the order of the directory, which the
  oracle keeps sorted by name, in memory on Linux.
"""
TABLE = """
## {system}: seeds that were also used to mend by

{histories} histories, {operations} operations, {answers} answers and {megabytes} MB of files
compared: **{divergences} divergences**.

| release | {heads} | histories | divergences | seeds | date |
| --- |{rule} --- | --- | --- | --- |
"""
FRESH = """
## {system}: fresh seeds

{histories} histories, {operations} operations, {answers} answers and {megabytes} MB of files
compared: **{divergences} divergences**, {last} of them in the last run of a structure.

| release | structure | histories | divergences | of these in the last run | seeds | dates |
| --- | --- | --- | --- | --- | --- | --- |
"""
LEFT_OUT = """
### {system}: steps that are left out

Of {histories} histories, in which {drawn} steps were drawn.

| structure | steps left out | of all | mostly these, in percent of the same operation |
| --- | --- | --- | --- |
"""
Rows = Sequence[Conformance]


def _cell(release: Release, structure: str, rows: Rows) -> str:
    found = [row for row in rows if (row.release, row.structure) == (release.name, structure)]
    if found:
        return _number(found[0].histories)
    return "-" if reason_without(structure, release) is not None else "not run"


def _number(number: int) -> str:
    return f"{number:,}".replace(",", " ")


def _row(release: Release, structures: list[str], record: Rows) -> str:
    rows = [row for row in record if row.release == release.name]
    cells = " | ".join(_cell(release, structure, rows) for structure in structures)
    if not rows:
        return f"| {release.version} | {cells} | 0 | not run | | |\n"
    histories = sum(row.histories for row in rows)
    found = sum(row.divergences for row in rows)
    return (
        f"| {release.version} | {cells} | {histories} | {found} | {_seeds(rows)} | "
        f"{max(row.date for row in rows)} |\n"
    )


def _seeds(rows: Rows) -> str:
    """Return the ranges of seeds of some runs, the shorter ones of one beginning left out."""
    ends: dict[int, int] = {}
    for row in rows:
        ends[row.first_seed] = max(ends.get(row.first_seed, 0), row.first_seed + row.histories - 1)
    return ", ".join(f"{first} to {end}" for first, end in sorted(ends.items()))


def _head(template: str, title: str, rows: Rows, **more: str) -> str:
    return template.format(
        system=title,
        histories=sum(row.histories for row in rows),
        operations=sum(row.operations for row in rows),
        answers=sum(row.answers_compared for row in rows),
        megabytes=sum(row.bytes_compared for row in rows) // 1_000_000,
        divergences=sum(row.divergences for row in rows),
        **more,
    )


def _fresh(title: str, rows: Rows, releases: list[Release], structures: list[str]) -> str:
    lines, in_last = "", 0
    for release in releases:
        for structure in structures:
            runs = [
                one for one in rows if (one.release, one.structure) == (release.name, structure)
            ]
            if not runs:
                continue
            dates = sorted({run.date for run in runs})
            last = max(runs, key=lambda run: run.first_seed)
            in_last += last.divergences
            lines += (
                f"| {release.version} | {structure} | {sum(run.histories for run in runs)} | "
                f"{sum(run.divergences for run in runs)} | {last.divergences} of"
                f" {last.histories} | {_seeds(runs)} | {', '.join(dates)} |\n"
            )
    return _head(FRESH, title, rows, last=str(in_last)) + lines


def _left_out(title: str, rows: Rows, structures: list[str]) -> str:
    """Return the table of the steps that fresh runs left out; each of them counts these."""
    lines, drawn = "", 0
    for structure in structures:
        runs = [row for row in rows if row.structure == structure]
        by_name = added_left_out(runs)
        left = sum(count for count, _ in by_name.values())
        total = sum(run.operations for run in runs) + left
        drawn += total
        most = sorted(by_name, key=lambda name: -by_name[name][0])[:3]
        told = ", ".join(f"`{name}` {_percent(*by_name[name])}" for name in most)
        if runs:
            lines += f"| {structure} | {left} | {_percent(left, total)} | {told} |\n"
    histories = sum(row.histories for row in rows)
    return LEFT_OUT.format(system=title, histories=histories, drawn=drawn) + lines


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if part else "none"


def _system(system: str, title: str, record: Rows) -> str:
    structures = [one for one in STRUCTURE_IDS if structure_named(one).system == system]
    releases = [release for release in RELEASES.values() if release.system == system]
    own = [row for row in record if row.release.startswith(f"{system}-")]
    used, fresh = ([row for row in own if row.is_fresh is kind] for kind in (False, True))
    heads, rule = " | ".join(structures), " --- |" * len(structures)
    text = _head(TABLE, title, used, heads=heads, rule=rule)
    text += "".join(_row(release, structures, used) for release in releases)
    if fresh:
        text += _fresh(title, fresh, releases, structures) + _left_out(title, fresh, structures)
    return text


def pages() -> dict[str, str]:
    """Return the page by path."""
    record = read_record(RECORD)
    tables = _system("kafka", "Kafka", record) + _system("rocketmq", "RocketMQ", record)
    return {"results/oracle.md": OPENING + tables}
