# SPDX-License-Identifier: Apache-2.0
"""The register of contracts: each enters itself by a decorator on its function.

A contract is a function of `tests/contracts/kafka/` or `tests/contracts/rocketmq/`, whose docstring
says in the lines `pre:` what is assumed of its arguments and in `post:` that it returns true.
CrossHair runs it on symbolic arguments. Where kernel and model disagree on one input, it is false.

The decorator says the bound in words; the lines `pre:` say it exactly. What they do not bound is
any value of its type: `bytes` raw, `int` without limit.
"""

import importlib.util
import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeVar

__all__ = ["Contract", "Mutant", "contract", "contract_named", "every_contract", "load"]

Statement = TypeVar("Statement", bound=Callable[..., bool])
FOLDER = Path(__file__).resolve().parents[2] / "contracts"


@dataclass(frozen=True, slots=True)
class Mutant:
    """A defect to plant: in the source of `function`, replace `old`, which stands there once."""

    old: str
    new: str
    function: str = ""
    """The function or method that is changed; empty: the kernel itself; `*`: its whole module."""


@dataclass(frozen=True, slots=True)
class Contract:
    """A statement about a kernel, confirmed for every input within its bound."""

    function: Callable[..., bool]
    kernel: str
    """Module and name of what is confirmed."""
    laws: tuple[str, ...]
    """The laws of which it confirms a part."""
    bound: str
    """The inputs, in words."""
    mutants: tuple[Mutant, ...]
    """Each must give a counterexample within the bound."""

    @property
    def id(self) -> str:
        """File and function: `offset_index.append_rule`."""
        return f"{self.path.stem.removesuffix('_contracts')}.{self.function.__name__}"

    @property
    def path(self) -> Path:
        """The file of the contract."""
        return Path(self.function.__code__.co_filename)

    @property
    def docstring(self) -> str:
        """The docstring of the function."""
        return inspect.getdoc(self.function) or ""

    @property
    def statement(self) -> str:
        """What is confirmed, in one sentence."""
        return self.docstring.splitlines()[0]

    @property
    def preconditions(self) -> tuple[str, ...]:
        """What is assumed of the arguments, as expressions."""
        lines = [line.strip() for line in self.docstring.splitlines()]
        return tuple(line.removeprefix("pre: ") for line in lines if line.startswith("pre: "))


CONTRACTS: dict[str, Contract] = {}
"""The contracts of the files that were loaded, by id."""


def contract(
    kernel: str, laws: str, bound: str, *mutants: Mutant
) -> Callable[[Statement], Statement]:
    """Enter the decorated function into `CONTRACTS`; `laws` are ids with a space between them."""

    def enter(function: Statement) -> Statement:
        entered = Contract(function, kernel, tuple(laws.split()), bound, mutants)
        CONTRACTS[entered.id] = entered
        return function

    return enter


def load(path: Path, name: str) -> ModuleType:
    """Run a source file as the module `name`."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def contract_named(name: str) -> Contract:
    """Return the contract with this id; only its file is loaded."""
    (path,) = FOLDER.glob(f"*/{name.partition('.')[0]}_contracts.py")
    load(path, path.stem)
    return CONTRACTS[name]


@cache
def every_contract() -> tuple[Contract, ...]:
    """Return all contracts, file by file."""
    for path in sorted(FOLDER.glob("*/*_contracts.py")):
        load(path, path.stem)
    return tuple(CONTRACTS.values())
