# SPDX-License-Identifier: Apache-2.0
"""The forms of kernels that the rules of the proofs have right; all others are refused.

What is refused here would be translated without a word, and wrongly.
"""

import ast
from collections.abc import Mapping
from types import ModuleType

from segproof_harness.claims.claim import Claim

INT64 = (-(2**63), 2**63 - 1)
FORMATS: Mapping[str, tuple[int, int] | None] = {
    "B": (0, 255), "H": (0, 65535), "i": (-(2**31), 2**31 - 1), "q": INT64, "int": None,
}  # fmt: skip
"""The limits of an item, by letter of the module `struct`; Python's integers have none."""
RAW = ("B", "H")
"""Items of these formats numba computes as uint64, where it knows no signed operand."""
KINDS = {
    "int": (0, "int"),
    "bool": (0, "int"),
    "Bytes": (1, "B"),
    "memoryview": (1, "q"),
    "Sequence[int]": (1, "int"),
    "Pairs": (2, "int"),
    "Iterable[tuple[int, int]]": (2, "int"),
}
"""How many numbers an item of a parameter has (0: it is no array), and their usual format."""


class RefusedError(Exception):
    """The source or the claim has something that the translation does not know, or has wrong."""


def refuse_if(found: object, why: str) -> None:
    """Refuse a kernel or a claim in which something is found."""
    if found:
        raise RefusedError(why)


def kind_of(parameter: ast.arg, claim: Claim) -> tuple[int, str]:
    """Return how many numbers an item of a parameter has, and their format."""
    text = ast.unparse(parameter.annotation or ast.Constant(None))
    refuse_if(text not in KINDS, f"{parameter.arg}: {text}")
    width, usual = KINDS[text]
    letter = claim.formats.get(parameter.arg, usual)
    refuse_if(letter not in FORMATS or (width != 1 and letter != usual), f"the format {letter}")
    return width, letter


def counted_by(loop: ast.For) -> str:
    """Return by which name claims speak of what a `for` loop counts."""
    return loop.target.id if isinstance(loop.target, ast.Name) else "item"


def refuse_forms(
    definition: ast.FunctionDef, module: ModuleType, is_compiled: bool, claim: Claim
) -> None:
    """Refuse a kernel whose text has a form that is translated wrongly."""
    nodes, given = list(ast.walk(definition)), definition.args
    decorators = [ast.unparse(one) for one in definition.decorator_list]
    refuse_if(decorators != ["kernel"] * is_compiled, "a decorator")
    others = (given.posonlyargs, given.kwonlyargs, given.defaults, given.vararg, given.kwarg)
    refuse_if(any(others), "parameters of another kind")
    _refuse_names(nodes, {one.arg for one in given.args}, module, claim)
    for parameter in given.args:
        width, letter = kind_of(parameter, claim)
        refuse_if(is_compiled and width and letter == "int", f"{parameter.arg} is not compiled")
        if "Iterable" in ast.unparse(parameter):
            uses = [one for one in nodes if isinstance(one, ast.Name) and one.id == parameter.arg]
            loops = [one.iter for one in definition.body if isinstance(one, ast.For)]
            refuse_if(len(uses) != 1 or uses[0] not in loops, "an iterable is used up by one loop")
    if is_compiled:
        raw = {one.arg for one in given.args if kind_of(one, claim)[1] in RAW}
        _refuse_raw(nodes, raw)


def _refuse_names(
    nodes: list[ast.AST], parameters: set[str], module: ModuleType, claim: Claim
) -> None:
    """Refuse names that mean two things."""
    names = [one for one in nodes if isinstance(one, ast.Name)]
    variables = parameters | {one.id for one in names if isinstance(one.ctx, ast.Store)}
    constants = {name for name, value in vars(module).items() if isinstance(value, int)}
    refuse_if(variables & constants, "a variable has the name of a constant")
    called = {ast.unparse(one.func) for one in nodes if isinstance(one, ast.Call)}
    refuse_if(variables & called, "a variable is called")
    refuse_if({"len", "max", "min", "range", "sum"} & set(vars(module)), "a builtin is replaced")
    refuse_if("result" in parameters, "a parameter is named `result`")
    counted: set[str] = set()
    for loop in nodes:
        if isinstance(loop, ast.For):
            own, *inner = [counted_by(one) for one in ast.walk(loop) if isinstance(one, ast.For)]
            refuse_if(own in inner, "loops inside each other count by one name")
            counted |= {f"next_{own}", f"end_{own}"}
    refuse_if(variables & counted, "a variable has the name of what a loop counts")
    ghosts = {ghost for loop in claim.loops for ghost in loop.ghosts}
    refuse_if(ghosts & (variables | counted | constants), "a ghost has a taken name")


def _refuse_raw(nodes: list[ast.AST], arrays: set[str]) -> None:
    """Refuse what numba may compute as uint64; `item + 0` is signed, and may stand anywhere."""
    items = set()
    for node in nodes:
        match node:
            case ast.For(target=ast.Name(id=name), iter=ast.Name(id=array)) if array in arrays:
                items.add(name)

    def is_raw(node: ast.AST) -> bool:
        match node:
            case ast.Subscript(value=ast.Name(id=name)):
                return name in arrays
            case ast.Name(id=name):
                return name in items
        return False

    for node in nodes:
        found = [is_raw(one) for one in ast.iter_child_nodes(node)]
        match node:
            case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if any(found):
                is_quotient = isinstance(operator, ast.FloorDiv | ast.Mod)
                is_sum = isinstance(operator, ast.Add | ast.Sub | ast.Mult)
                is_signed = not found[-1] if is_quotient else is_sum and found.count(True) == 1
                refuse_if(not is_signed, "an operator on unsigned items")
            case ast.Compare() | ast.Assign(targets=[ast.Subscript()]) | ast.For():
                pass
            case _:
                refuse_if(any(found), "an unsigned item that is no operand")
