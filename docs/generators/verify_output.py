# SPDX-License-Identifier: Apache-2.0
"""The page of what `verify` writes, docs/reference/verify-output.md, with the JSON Schema."""

from importlib import resources

from segproof.findings import Verdict
from segproof_harness import reports
from segproof_harness.cli.verify import VerifyFormat
from segproof_harness.reports.causes import PLACES_MAX
from segproof_harness.reports.json_lines import SCHEMA_VERSION
from segproof_harness.reports.verdicts import words_of

MEANINGS = {
    Verdict.SOUND: "no error and no warning in what was read; the line counts the files that were "
    "recognised and not read: `sound, 2 files not looked into`",
    Verdict.INDEX_DAMAGE_ONLY: "every record can be read; only files are damaged that "
    "`segproof rebuild` or a broker makes new from the log",
    Verdict.READABLE_WITH_DEFECTS: "no record is known to be lost, and a law is broken outside the "
    "indexes; or an index points beyond the end of its log, and does not prove a loss; or an "
    "index of RocketMQ contradicts the header of a message, which no checksum covers",
    Verdict.NOT_CHECKED: "a layout or file that segproof recognises and does not read: nothing of "
    "it was read",
    Verdict.READABLE_WITH_GAPS: "some records can be read; others are damaged, out of reach or "
    "missing",
    Verdict.UNREADABLE: "no record can be read, or there is nothing of Kafka or RocketMQ",
}
FORMATS = {
    VerifyFormat.TEXT: "for people: the verdict on each partition, then its causes",
    VerifyFormat.JSONL: "for programs: one object a line, see below",
    VerifyFormat.SARIF: "SARIF 2.1.0: a result for each finding, and the summaries in the "
    "`properties` of the run; memory stays the same for any number of results",
    VerifyFormat.JUNIT: "JUnit XML: a suite for each partition, a failed case for each cause that "
    "`--fail-on` counts; a file that was not looked into is a skipped case, other causes are cases "
    "that pass",
}
PAGE = """\
# What verify writes

Who should read this: everyone who reads the output of `segproof verify`, or lets a program read it.

## Verdicts

For each partition, store or single file there is one verdict, by its errors and warnings:

| verdict | meaning |
| --- | --- |
{verdicts}

The line of a verdict says what was checked: segments, bytes, batches or messages, and where the log
begins and ends. Of a damaged log it says how many offsets are in no sound batch, where that is
known: behind the last sound batch of the last segment nothing tells it. It also says how many sound
batches lie behind damage: [save them](../howto/save-a-damaged-partition.md) before a broker
recovers the partition. With `--law`, `--position` or `--since` it names what alone was checked.
With `--law` or `--position` "sound" is not said: the words are "no finding of SEG-7", or "no
finding at byte 40". Any other verdict there is by these laws too: what they do not judge may be
worse. In JSON the verdict is `sound`, and the fields `laws` and `position` say the bound.
A verdict covers what was read. What is recognised and not read, such as a file that a broker was
writing, has a note each ({{law}}`DISK-45`, {{law}}`RMQDISK-41`) with the reason. The verdict counts
them, in JSON as `not_looked_into`. They leave the exit code at 0; with `--fail-on not-checked` it
is 1. A path is `not checked`, with exit code 1, if nothing of it was read.
It counts the findings that a [configuration file](../howto/keep-settings-in-a-file.md) says to
ignore; the verdict is that of all findings.

## Causes

Behind the verdict come the causes. A cause is all that is wrong with one file for one reason: a law
that is broken in many places, or several laws of an index that is not that of its log. It has the
number of places, the first {places} of them, the words of the first finding, what consumers see,
what to do, and commands that can be pasted: each on a line of its own, with the real path.

`--all` lists each finding as it is found, and the verdict last. `--summary` prints the verdicts
only. On a terminal severities and verdicts are coloured, and lines are wrapped between words;
commands stay whole. `NO_COLOR` and `--color never` leave out the colours. A pipe or file gets
neither, unless `--color always` is given.

## Formats

| `--format` | what it is |
| --- | --- |
{formats}

`--format jsonl` writes a finding as soon as it is found. Behind the last finding of a partition
come its causes and its summary. A finding has no field `type`; the others have it, with the
`schema_version` {version}. Fields may be added to any of the three. The version is raised if a
field goes or changes its meaning. In a shell, `jq 'select(.type == "summary")'` shows the
summaries, and `jq 'select(.type == null)'` the findings.

`expected` and `actual` are text, or null. Where they are a number, it is written in decimal.

The schema of each line, as JSON Schema (draft 2020-12), is a file of the package:
`segproof_harness/reports/output.schema.json`.

```json
{schema}```
"""


def pages() -> dict[str, str]:
    """Return the page by path."""
    verdicts = "\n".join(f"| {words_of(one)} | {MEANINGS[one]} |" for one in Verdict)
    formats = "\n".join(f"| `{one.value}` | {FORMATS[one]} |" for one in VerifyFormat)
    schema = resources.files(reports).joinpath("output.schema.json").read_text(encoding="ascii")
    page = PAGE.format(
        verdicts=verdicts, formats=formats, places=PLACES_MAX, version=SCHEMA_VERSION, schema=schema
    )
    return {"reference/verify-output.md": page}
