# SPDX-License-Identifier: Apache-2.0
"""The page of the proofs, docs/reference/proofs.md: what is claimed of each kernel."""

from law_links import law_links

from segproof_harness.claims.claim import WORDS, Claim, Word, expressions_of
from segproof_harness.claims.every_claim import CLAIMS, NOT_PROVED

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
`pairs` of each two.
"""


def block(title: str, text: str) -> str:
    """Return a part of a claim as a block of code, or nothing."""
    shown = "\n".join(expressions_of(text))
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


def pages() -> dict[str, str]:
    """Return the page by path."""
    modules: dict[str, int] = {}
    for name in CLAIMS:
        module = name.partition(":")[0]
        modules[module] = modules.get(module, 0) + 1
    rows = "\n".join(f"| `{module}` | {count} |" for module, count in modules.items())
    table = f"| module | kernels proved |\n| --- | --- |\n{rows}\n"
    left = "\n".join(f"- `{name}`: {why}." for name, why in NOT_PROVED.items())
    words = "\n".join(word(name, WORDS[name]) for name in sorted(WORDS))
    parts = [
        OPENING,
        table,
        f"Not proved:\n\n{left}\n",
        *(section(CLAIMS[name]).rstrip() + "\n" for name in CLAIMS),
        f"## Words\n\n```text\n{words}\n```\n",
    ]
    return {"reference/proofs.md": "\n".join(parts)}
