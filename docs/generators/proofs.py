# SPDX-License-Identifier: Apache-2.0
"""The page of the proofs, docs/reference/proofs.md: what is claimed of each kernel."""

import ast
from importlib import import_module

from law_links import law_links

from segproof_harness.claims.claim import KERNELS, WORDS, Claim, Word, expressions_of
from segproof_harness.claims.every_claim import CLAIMS, NOT_PROVED
from segproof_harness.claims.words import FAR

OPENING = """\
# Proofs

Who should read this: everyone who wants to know what a kernel does on input of any length.

Each claim below is proved for every length and every content: `tox -e proofs`, or one alone by
`python -m pytest tests/proofs -k lower_slot`. What that is worth, and what is assumed, is told in
[what "proved" means](../explanation/what-proved-means.md). Beside what is written here each proof
shows that the kernel ends, that it reads and writes in range, and that it stays within 64 bits if
it is compiled.

*Requires* is what callers owe. *Ensures* is what the result obeys. `old(x)` is `x` at the call;
`each(low, high, ...)` speaks of each number from `low` to `high`, exclusive, `some` of one, and
`pairs` of each two, `forall` of each number. `implies(a, b)` says that `b` holds wherever `a` does,
`iff(a, b)` that both hold or neither. [The words](#words) and [the constants](#constants) of the
claims are below.
"""


def block(title: str, text: str) -> str:
    """Return a part of a claim as a block of code, or nothing."""
    shown = "\n".join(expressions_of(text)).replace(str(FAR), "2**61")
    return f"{title}:\n\n```text\n{shown}\n```\n\n" if shown else ""


def section(claim: Claim) -> str:
    """Return what is claimed of one kernel."""
    laws = f"Laws: {law_links(claim.laws)}.\n\n" if claim.laws else ""
    ensures = "\n".join(text for text in (claim.ensures, claim.proves) if text)
    parts = laws + block("Requires", claim.requires) + block("Ensures", ensures)
    return f"## {claim.kernel}\n\n{parts or 'It ends, in range.'}"


def word(name: str, meaning: Word) -> str:
    """Return what a word stands for."""
    return f"{name}({', '.join(meaning.parameters)}):\n    {meaning.meaning}"


def constants() -> str:
    """Return the constants of kernels that claims name, with their values."""
    found = set()
    for claim in CLAIMS.values():
        module = import_module(KERNELS + claim.kernel.partition(":")[0])
        for line in expressions_of(f"{claim.requires}\n{claim.ensures}\n{claim.proves}"):
            names = {node.id for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Name)}
            values = {name: getattr(module, name, None) for name in names if name.isupper()}
            found |= {f"{name} = {value}" for name, value in values.items()}
    return "\n".join(sorted(found))


def pages() -> dict[str, str]:
    """Return the page by path."""
    modules: dict[str, int] = {}
    for name in CLAIMS:
        module = name.partition(":")[0]
        modules[module] = modules.get(module, 0) + 1
    rows = "\n".join(f"| `{module}` | {count} |" for module, count in modules.items())
    table = f"| module | kernels proved |\n| --- | --- |\n{rows}\n"
    proved = f"{len(CLAIMS)} of {len(CLAIMS) + len(NOT_PROVED)} kernels are proved"
    left = "\n".join(f"- `{name}`: {why}." for name, why in NOT_PROVED.items())
    words = [word(name, WORDS[name]) for name in sorted(WORDS)]
    words += [
        f"{claim.word}(...):\n    the result of {name}, as a function of its arguments"
        for name, claim in CLAIMS.items()
        if claim.word
    ]
    parts = [
        OPENING,
        table,
        f"{proved}. Not proved:\n\n{left}\n",
        *(section(CLAIMS[name]).rstrip() + "\n" for name in CLAIMS),
        "## Words\n\n```text\n" + "\n".join(words) + "\n```\n",
        f"## Constants\n\n```text\n{constants()}\n```\n",
    ]
    return {"reference/proofs.md": "\n".join(parts)}
