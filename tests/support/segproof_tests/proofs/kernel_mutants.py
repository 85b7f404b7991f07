# SPDX-License-Identifier: Apache-2.0
"""Kernels with one operator or number changed, which their proofs must notice."""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

CHANGED: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip


@dataclass(frozen=True)
class KernelMutant:
    """A kernel with one change."""

    definition: ast.FunctionDef
    change: str
    """Line, counted from the `def`, and the text before and after: `12: a < b -> a <= b`."""


def mutants(definition: ast.FunctionDef) -> Iterator[KernelMutant]:
    """Yield a kernel with each of its operators and numbers changed, one at a time."""
    for place, node in enumerate(ast.walk(definition)):
        for number in range(_changes(node)):
            copied = copy.deepcopy(definition)
            changed = list(ast.walk(copied))[place]
            _change(changed, number)
            before, after = ast.unparse(node), ast.unparse(changed)
            line = getattr(node, "lineno", 0)
            yield KernelMutant(copied, f"{line}: {before} -> {after}")


def _changes(node: ast.AST) -> int:
    """Return how many changes a node allows."""
    match node:
        case ast.Compare(ops=operators):
            return len(operators)
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) | ast.BoolOp(op=operator):
            return int(type(operator) in CHANGED)
        case ast.Constant(value=value):
            return int(type(value) is int)
    return 0


def _change(node: ast.AST, number: int) -> None:
    match node:
        case ast.Compare():
            node.ops[number] = CHANGED[type(node.ops[number])]()  # type: ignore[call-overload]
        case ast.BinOp() | ast.AugAssign() | ast.BoolOp():
            node.op = CHANGED[type(node.op)]()  # type: ignore[assignment]
        case ast.Constant(value=int() as value):
            node.value = value + 1
