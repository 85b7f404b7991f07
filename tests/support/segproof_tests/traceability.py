# SPDX-License-Identifier: Apache-2.0
"""Which layer of checking looks at which law, read from the code, so that no table can claim more.

A law that an operation of the model says is retired: there is nothing to judge, and it has no row.
A law counts as checked by
- the model, if the register has a predicate;
- stateful, if the machine of its structure judges it at each step, or a test that draws values
  (with `given`, or in a file `test_machine*.py`) carries the mark `checks` with its id;
- contracts, if the decorator of one in tests/contracts names it;
- proofs, if the claim of a kernel names it;
- verify, if `segproof verify` can report it;
- Spark, if the replay on Spark judges it, or the verification on Spark can report it;
- canaries, if a planted defect breaks it;
- golden or examples, if a test of tests/golden, or another one without drawn values, has the mark.
"""

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from segproof.verification import RULES
from segproof_harness.canaries.every_canary import CANARIES
from segproof_harness.claims.every_claim import CLAIMS
from segproof_harness.histories.workloads import make_history
from segproof_harness.laws.every_law import LAWS, RETIRED
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named
from segproof_harness.subjects.model import ModelSubject
from segproof_model.releases import SEGPROOF
from segproof_tests.contracts import every_contract

__all__ = ["LAYERS", "REASONS", "layers_of_laws", "page", "problems", "unknown_ids"]

LAYERS = (
    "model",
    "stateful",
    "contracts",
    "proofs",
    "verify",
    "Spark",
    "canaries",
    "golden",
    "examples",
)
REASONS: dict[str, str] = {
    "BATCH-13": "the golden bytes are what they are: there is nothing to draw",
    "DISK-2": "it speaks of a file that changes while it is read, not of files that can be drawn",
    "DISK-7": "files of 2 GiB are too large to be drawn; the check compares one number",
    "RMQHASH-6": "the texts and their hashes are what they are: there is nothing to draw",
    "RMQIDX-41": "the golden bytes are what they are: there is nothing to draw",
}
"""Laws that lack a stateful check or a further layer, each with the reason; and no others."""

IDS = json.loads(Path(__file__).with_name("law_ids.json").read_text(encoding="ascii"))
"""How many ids of laws each area has, retired ones included: a law that is lost is seen by it."""
MARK = "pytest.mark.checks"
SEARCHED = ("model", "impl", "harness", "spark_checks", "tests", "docs", "benchmarks", "changes")
Laws = frozenset[str]


def built_ids() -> tuple[str, ...]:
    """Return the ids of the laws that must be checked, area by area."""
    return tuple(sorted(set(LAWS) - set(RETIRED), key=_order))


def _order(law: str) -> tuple[str, int]:
    area, _, number = law.partition("-")
    return area, int(number)


def known_ids() -> Laws:
    """Return every id that may be named, retired ones included."""
    return frozenset({*LAWS, *RETIRED})


@cache
def _id_pattern() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(IDS)})-[0-9]+\b")


def unknown_ids(root: Path) -> list[str]:
    """Return `path:line: id` for each id in code, tests and pages that no law has."""
    known, found = known_ids(), []
    for top in SEARCHED:
        for path in sorted((root / top).rglob("*")):
            place = path.relative_to(root)
            if path.suffix not in (".py", ".md") or "_build" in place.parts:
                continue
            lines = path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines, 1):
                wrong = [law for law in _id_pattern().findall(line) if law not in known]
                found += [f"{place}:{number}: {law}" for law in wrong]
    return found


# --- reading the layers ------------------------------------------------------------------------


def _ids_in(node: ast.AST) -> Iterator[str]:
    """Yield the string constants that are an id."""
    for part in ast.walk(node):
        text = part.value if isinstance(part, ast.Constant) else None
        if isinstance(text, str) and _id_pattern().fullmatch(text):
            yield text


def _tables(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values that a module gives to names at its top."""
    tables: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            tables[node.targets[0].id] = node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
            tables[node.target.id] = node.value
    return tables


def _marked(decorator: ast.Call, tables: dict[str, ast.expr]) -> Iterator[str]:
    """Yield the ids that a mark names; `*TABLE` names the keys or items of a table."""
    for argument in decorator.args:
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
            yield argument.value
        elif isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Name):
            table = tables.get(argument.value.id)
            items = table.keys if isinstance(table, ast.Dict) else getattr(table, "elts", [])
            for item in items:
                if item is not None:
                    yield from _ids_in(item)


def _marks(path: Path, tests: Path) -> Iterator[tuple[str, bool]]:
    """Yield (id, whether values are drawn) for each mark of a test file below `tests`."""
    is_stateful = path.name.startswith("test_machine")
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tables = _tables(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        calls = [item for item in node.decorator_list if isinstance(item, ast.Call)]
        is_drawn = is_stateful or any(ast.unparse(c.func) == "given" for c in calls)
        for call in calls:
            if ast.unparse(call.func) == MARK:
                for law in _marked(call, tables):
                    yield law, is_drawn


def marked_laws(root: Path) -> dict[str, set[str]]:
    """Return the laws that tests say they check, by layer."""
    found: dict[str, set[str]] = {"stateful": set(), "golden": set(), "examples": set()}
    tests = root / "tests"
    for path in sorted(tests.rglob("test_*.py")):
        in_golden = "golden" in path.relative_to(tests).parts
        for law, is_drawn in _marks(path, tests):
            layer = "stateful" if is_drawn else "golden" if in_golden else "examples"
            found[layer].add(law)
    return found


@cache
def _kinds_within(structure: str) -> frozenset[type]:
    """Return the classes of what a structure's states hold of other structures, as a history shows,
    and its own."""
    description = structure_named(structure)
    trace = make_history(structure, SEGPROOF.name, 0, 40)
    model = ModelSubject(description, SEGPROOF)
    model.start(trace.setup)
    kinds: set[type] = set(description.model_class().__mro__)
    for operation in trace.operations:
        model.apply(operation)
        for part in () if model.state is None else description.parts(model.state):
            kinds |= set(type(part).__mro__)
    return frozenset(kinds)


def judged_laws(structure: str) -> set[str]:
    """Return the laws against which a machine or replay of the structure holds each step.

    Those of steps are of its own class; those of states are of what it holds, too.
    """
    kinds = {"step": structure_named(structure).model_class().__mro__}
    kinds["state"] = _kinds_within(structure)
    return {one.law_id for one in LAWS.values() if one.of in kinds.get(one.scope, ())}


def replayed_laws(root: Path) -> set[str]:
    """Return the laws judged at each step by the machines of the structures."""
    machines = {path.parent.name for path in (root / "tests" / "unit").rglob("test_machine.py")}
    found = set()
    for structure in STRUCTURE_IDS:
        if structure.replace("-", "_") in machines:
            found |= judged_laws(structure)
    return found


def laws_on_spark(root: Path) -> set[str]:
    """Return the laws judged in replays on Spark, where one test goes through every structure."""
    if not (root / "tests" / "spark" / "test_replay.py").is_file():
        return set()
    return set().union(*map(judged_laws, STRUCTURE_IDS))


def contract_laws(root: Path) -> set[str]:
    """Return the laws that a contract names."""
    return {law for one in every_contract() if root in one.path.parents for law in one.laws}


def layers_of_laws(root: Path) -> dict[str, tuple[str, ...]]:
    """Return the layers that check each law that is built; `root` holds the four packages."""
    marked = marked_laws(root)
    verified = {law for law in RULES if law in LAWS}
    on_spark = laws_on_spark(root)
    if (root / "tests" / "spark" / "test_verify.py").is_file():
        on_spark |= verified
    checked = {
        "model": set(LAWS),
        "stateful": replayed_laws(root) | marked["stateful"],
        "contracts": contract_laws(root),
        "proofs": {law for claim in CLAIMS.values() for law in claim.laws},
        "verify": verified,
        "Spark": on_spark,
        "canaries": {law for canary in CANARIES.values() for law in canary.laws},
        "golden": marked["golden"],
        "examples": marked["examples"],
    }
    return {law: tuple(layer for layer in LAYERS if law in checked[layer]) for law in built_ids()}


def problems(root: Path) -> list[str]:
    """Return what is missing, a line each; no line where every law is checked as it must be."""
    found = [f"unknown law: {place}" for place in unknown_ids(root)]
    counts = Counter(law.partition("-")[0] for law in known_ids())
    found += [
        f"{area}: {counts[area]} ids, and {IDS.get(area, 0)} in law_ids.json: count a new law there"
        for area in sorted({*counts, *IDS})
        if counts[area] != IDS.get(area, 0)
    ]
    layers = layers_of_laws(root)
    for law, seen in layers.items():
        lacks = []
        if not LAWS[law].sentence or not LAWS[law].source:
            lacks.append("no sentence, or no source upstream")
        if "stateful" not in seen and law not in REASONS:
            lacks.append("no stateful check")
        if not set(seen) - {"model", "stateful"} and law not in REASONS:
            lacks.append("no layer beside model and stateful")
        found += [f"{law}: {what}" for what in lacks]
    for law in REASONS:
        seen = layers.get(law, ())
        if "stateful" in seen and set(seen) - {"model", "stateful"}:
            found.append(f"{law}: the reason in REASONS is not needed any more")
    return found


# --- the page ----------------------------------------------------------------------------------

OPENING = """\
# Traceability

Who should read this: who wants to know what stands behind a law, or adds a check. The page is made
from the code: a mark in a column means that the layer names the law and would fail with it. It says
that a check exists, not how far it reaches; bounds and counts are in the output of each layer. A
law that only said what an operation of the model says is retired, and has no row.

| column | what it means |
| --- | --- |
| model | the law has a predicate |
| stateful | judged at each step of random histories, or on values that Hypothesis draws |
| contracts | part of a statement that CrossHair confirms up to a bound |
| proofs | a claim that is proved for every length says a part of it |
| verify | `segproof verify` can report it |
| Spark | judged in each replay on Spark, or reported by the verification on Spark |
| canaries | a planted defect breaks it and is caught |
| golden | stored bytes and answers |
| examples | worked examples, written by hand |
"""


def page(root: Path) -> str:
    """Return the matrix of laws and layers as a page."""
    layers = layers_of_laws(root)
    counts = [sum(layer in seen for seen in layers.values()) for layer in LAYERS]
    lines = [OPENING, f"{len(layers)} laws are judged, {len(RETIRED)} more are retired.", ""]
    lines += ["| | " + " | ".join(LAYERS) + " |", "| --- " * (len(LAYERS) + 1) + "|"]
    lines.append("| laws | " + " | ".join(map(str, counts)) + " |")
    for area in sorted({law.partition("-")[0] for law in layers}):
        lines += ["", f"## {area}", "", "| law | " + " | ".join(LAYERS) + " |"]
        lines.append("| --- " * (len(LAYERS) + 1) + "|")
        for law, seen in layers.items():
            if law.startswith(f"{area}-"):
                cells = ("x" if layer in seen else "" for layer in LAYERS)
                lines.append(f"| {{law}}`{law}` | " + " | ".join(cells) + " |")
    if REASONS:
        lines += ["", "## What is missing, and why", "", "| law | reason |", "| --- | --- |"]
        lines += [f"| {{law}}`{law}` | {reason} |" for law, reason in REASONS.items()]
    return "\n".join(lines) + "\n"
