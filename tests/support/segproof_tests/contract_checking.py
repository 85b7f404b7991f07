# SPDX-License-Identifier: Apache-2.0
"""Let CrossHair judge one contract, its mutants and its vacuity twin.

`judge` is run in a process of its own, since CrossHair traces the whole interpreter, and nobody
else must see a mutated kernel.

- The contract is run as it stands. It counts as confirmed only if CrossHair says so itself, in
  words: `Confirmed over all paths.`
- A mutant is the module of the kernel with one text replaced. The contract, loaded again on top of
  it, must meet a counterexample; else its bound is too small to see the defect.
- Some input must meet the preconditions; else confirming says nothing. The counterexample of a
  mutant is such an input. Where none shows it, the vacuity twin is judged, which is the contract
  with `post: False`: it must fail.
"""

import ast
import contextlib
import importlib
import importlib.util
import sys
import tempfile
import time
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from segproof_tests.contracts import Contract, contract_named, load

CONFIRMED_MESSAGE = "Confirmed over all paths."
SECONDS_MAX = 120.0
"""Processor seconds for one verdict; a slow machine needs room, a good contract a few."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What CrossHair said about one variant of a contract."""

    variant: str
    """`contract`, `mutant N` or `vacuity`."""
    state: str
    """CrossHair's state: confirmed, cannot_confirm, post_fail, exec_err, ...; or `not planted`."""
    message: str
    """CrossHair's own words."""
    seconds: float

    @property
    def is_confirmed(self) -> bool:
        """Whether every path was explored and held."""
        return self.state == "confirmed" and self.message == CONFIRMED_MESSAGE

    @property
    def is_counterexample(self) -> bool:
        """Whether an input was found that breaks the contract.

        Reading outside the bytes breaks it too; any other error would only say that the mutant is
        no program.
        """
        crashed = self.state == "exec_err" and self.message.startswith("IndexError")
        return self.state == "post_fail" or crashed


def load_to_judge(path: Path, name: str) -> types.ModuleType:
    """Run a file of contracts as a module, and what it prepares in this process for CrossHair."""
    module = load(path, name)
    getattr(module, "prepare", lambda: None)()
    return module


def source_of(module_name: str) -> tuple[str, str]:
    """Return path and text of an importable module."""
    spec = importlib.util.find_spec(module_name)
    assert spec is not None
    assert spec.origin is not None
    return spec.origin, Path(spec.origin).read_text(encoding="utf-8")


def mutated(kernel: str, function: str, old: str, new: str) -> tuple[str, str]:
    """Return the path of the kernel's module, and its text with `old` replaced by `new`.

    Only the source of `function` is changed, in which `old` must stand exactly once.
    """
    path, text = source_of(kernel.partition(":")[0])
    start, end = _extent(text, function or kernel.partition(":")[2])
    found = text[start:end].count(old)
    if found != 1:
        raise ValueError(f"{kernel}: {old!r} stands {found} times in it, expected once")
    return path, text[:start] + text[start:end].replace(old, new) + text[end:]


def _extent(text: str, qualified_name: str) -> tuple[int, int]:
    """Return where the definition begins and ends; `*` is the whole module."""
    if qualified_name == "*":
        return 0, len(text)
    node: ast.AST = ast.parse(text)
    for name in qualified_name.split("."):
        children = [one for one in ast.iter_child_nodes(node) if getattr(one, "name", "") == name]
        (node,) = children
    assert isinstance(node, ast.FunctionDef)
    lines = text.splitlines(keepends=True)
    start = sum(map(len, lines[: node.lineno - 1]))
    return start, sum(map(len, lines[: node.end_lineno]))


@contextlib.contextmanager
def installed(module_name: str, path: str, text: str) -> Iterator[None]:
    """Let imports of `module_name` meet a module of this text, until the end of the block."""
    before = importlib.import_module(module_name)
    package, _, name = module_name.rpartition(".")
    module = types.ModuleType(module_name)
    module.__file__ = path
    sys.modules[module_name] = module
    setattr(sys.modules[package], name, module)
    try:
        exec(compile(text, f"{path} (mutant)", "exec"), module.__dict__)
        yield
    finally:
        sys.modules[module_name] = before
        setattr(sys.modules[package], name, before)


def analyse(function: Callable[..., Any], variant: str) -> Verdict:
    """Let CrossHair judge the one postcondition of a function."""
    from crosshair.core_and_libs import analyze_function, run_checkables
    from crosshair.options import AnalysisKind, AnalysisOptionSet

    options = AnalysisOptionSet(
        analysis_kind=[AnalysisKind.PEP316],
        per_condition_timeout=SECONDS_MAX,
        per_path_timeout=SECONDS_MAX,
        max_uninteresting_iterations=sys.maxsize,
        report_all=True,
    )
    began = time.process_time()
    messages = list(run_checkables(analyze_function(function, options)))
    seconds = time.process_time() - began
    if len(messages) != 1:
        return Verdict(variant, "none", f"{len(messages)} verdicts, expected one", seconds)
    return Verdict(variant, messages[0].state.value, messages[0].message, seconds)


def verdicts(contract: Contract) -> Iterator[Verdict]:
    """Judge the contract, each of its mutants, and whether any input meets the preconditions."""
    function = contract.function.__name__
    yield analyse(getattr(load_to_judge(contract.path, "contract"), function), "contract")
    module_name = contract.kernel.partition(":")[0]
    shown: Verdict | None = None
    for number, mutant in enumerate(contract.mutants, 1):
        try:
            path, text = mutated(contract.kernel, mutant.function, mutant.old, mutant.new)
        except ValueError as error:  # the kernel was changed; what is said of it counts still
            yield Verdict(f"mutant {number}", "not planted", str(error), 0.0)
            continue
        with installed(module_name, path, text):
            module = load_to_judge(contract.path, f"contract_on_mutant_{number}")
        found = analyse(getattr(module, function), f"mutant {number}")
        yield found
        shown = found if found.state == "post_fail" else shown
    if shown:
        yield Verdict("vacuity", shown.state, f"{shown.variant}: {shown.message}", 0.0)
        return
    with tempfile.TemporaryDirectory() as folder:
        twin = Path(folder) / "vacuity_twin.py"
        twin.write_text(vacuous(contract.path.read_text(encoding="utf-8")), encoding="utf-8")
        yield analyse(getattr(load_to_judge(twin, "vacuity_twin"), function), "vacuity")


def vacuous(text: str) -> str:
    """Return a file of contracts in which each postcondition is false."""
    return text.replace("post: _\n", "post: False\n")


def judge(name: str) -> list[Verdict]:
    """Return the verdicts on the contract with this id."""
    return list(verdicts(contract_named(name)))
