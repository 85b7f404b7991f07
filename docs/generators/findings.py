# SPDX-License-Identifier: Apache-2.0
"""The page of the findings, docs/reference/findings.md: each law that `verify` checks."""

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from generators.laws import name_of
from hint_tables import EFFECTS, hint_tables
from law_links import LAWS, RETIRED

from segproof.verification import RULES
from segproof_harness.cli.explain import known_laws
from segproof_harness.laws.broken_files import EXAMPLES, finding_of
from segproof_harness.reports.jsonl import FIELDS

OPENING = """\
# Findings

Who should read this: everyone who has a finding and wants to know what it means and what to do.

A finding is one broken law at one place. `segproof explain LAW-ID` shows what stands here. For each
law the first hundred places of a file are listed, and the others counted. `verify` shows the
findings of one file with one cause as one, unless `--all` is given: see [what verify
writes](verify-output.md), with the verdicts and the formats.

| severity | meaning | exit code |
| --- | --- | --- |
| error | a law is broken: reads may answer wrongly, or bytes are lost | 1 |
| warning | something is missing or changing, which costs time or may hide an error | 1 |
| note | worth knowing, and no defect | 0 |

`--fail-on error` lets warnings pass. The severity below is the usual one: a zero tail, for
instance, is an error in a closed segment and a note in the one that is still written.

The fields of a finding, in `--format jsonl` and everywhere else: {fields}. `expected` and `actual`
are text or null. In a finding, the commands of a hint have the real paths in the place of DIR and
STORE. [Each hint has a class](#what-following-a-hint-does): it reads, writes elsewhere, changes
files, or removes.
"""
SOURCES = """\
## Where the code is

Each heading names the file of `impl/segproof/verifying/` or `impl/segproof/wording/` that declares
the laws below it. The same file reports them, except DISK-6: `batch_checks.py` and
`index_file_checks.py` report that law. With `--deep`, `record_checks.py` reports some laws of
batches as well.

"""
ROOMS = ("verifying", "wording")
"""Whose modules declare rules."""
STRUCTURES = (
    ("partition-log", "Directories"),
    ("log-segment", "Segments"),
    ("offset-index", "Offset index"),
    ("time-index", "Time index"),
    ("transaction-index", "Transaction index"),
    ("record-file", "Log"),
    ("record-batch", "Record batches"),
    ("index-service", "RocketMQ stores"),
    ("index-file", "RocketMQ index files"),
)


def pages() -> dict[str, str]:
    """Return the page by path."""
    fields = ",\n".join(", ".join(f"`{each}`" for each in FIELDS[at : at + 5]) for at in (0, 5))
    laws = known_laws()
    parts = [OPENING.format(fields=fields)]
    for structure, title in STRUCTURES:
        own = [
            law_id for law_id in laws if law_id in RULES and RULES[law_id].structure == structure
        ]
        parts.append(f"## {title}\n")
        parts += [_finding(law_id, laws[law_id]) for law_id in own]
    parts.append(hint_tables(laws))
    parts.append(SOURCES + _source_table(laws))
    return {"reference/findings.md": "\n".join(parts)}


def _source_table(laws: Iterable[str]) -> str:
    """Return the files that report laws, and the laws of each in the order of their ids."""
    rows = ["| file | laws |", "| --- | --- |"]
    for file in sorted(set(sources().values())):
        own = [f"[{one}](#{one.lower()})" for one in laws if sources().get(one) == file]
        rows.append(f"| `{file}` | {', '.join(own)} |")
    return "\n".join([*rows, ""])


def _finding(law_id: str, facts: dict[str, str | None]) -> str:
    """Return what there is to say of one law."""
    lines = [
        f"({law_id.lower()})=\n### {law_id}: {name_of({**RETIRED, **LAWS}[law_id])}\n",
        f"{facts['sentence']}\n",
        _to_do(law_id, facts),
    ]
    example = EXAMPLES.get(law_id)
    found = None if example is None else finding_of(law_id, example)
    if example is not None and found is not None:
        place = found.path if found.position is None else f"{found.path}: byte {found.position}"
        lines.append(f"Example: {example.damage}.\n")
        lines.append(f"```text\n{found.severity} {law_id} {place}: {found.message}\n```\n")
    return "\n".join(lines)


def _to_do(law_id: str, facts: dict[str, str | None]) -> str:
    usual = f"{str(facts['severity']).capitalize()}{_depth(law_id)}. What to do: {facts['hint']}."
    return f"{usual} This {EFFECTS[RULES[law_id].hint.effect]}.\n"


@cache
def sources() -> dict[str, str]:
    """Return, by law, the file that declares its rule: it reports the law as well."""
    rooms = [Path(__file__).parents[2] / "impl" / "segproof" / room for room in ROOMS]
    return {
        law.value: path.relative_to(folder).as_posix()
        for folder in rooms
        for path in sorted(folder.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "declare"
        for law in node.args
        if isinstance(law, ast.Constant) and law.value in RULES
    }


def _depth(law_id: str) -> str:
    return ", with `--deep`" if RULES[law_id].is_deep else ""
