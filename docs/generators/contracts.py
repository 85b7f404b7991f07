# SPDX-License-Identifier: Apache-2.0
"""The page of the contracts, docs/reference/contracts.md: what is confirmed, up to which bound."""

from law_links import law_links

from segproof_tests.contracts import Contract, every_contract

OPENING = """\
# Contracts

Who should read this: everyone who wants to know for which inputs a kernel is known to be right.

CrossHair says of each contract below, for every input within its bound, *Confirmed over all paths*;
what that means, and what it does not, is told in
[what "confirmed" means](../explanation/what-confirmed-means.md). The bound is said twice: in words,
and as the preconditions of the contract. What they do not limit is any value of its type.

To confirm them again: `python -m pytest tests/contracts`; one alone:
`python -m pytest tests/contracts -k entry_decode`. The closing table has CrossHair's words and the
seconds of each. A mutant is a defect that is planted in the kernel to calibrate the bound: each one
below gives a counterexample.
"""


def overview(contracts: tuple[Contract, ...]) -> str:
    """Return the table of all contracts and bounds."""
    lines = ["| contract | bound | mutants |", "| --- | --- | --- |"]
    lines += [f"| `{one.id}` | {one.bound} | {len(one.mutants)} |" for one in contracts]
    return "\n".join(lines) + "\n"


def section(contract: Contract) -> str:
    """Return what there is to say about one contract."""
    assumed = "\n".join(contract.preconditions) or "True"
    planted = "\n".join(
        f"- in `{mutant.function or contract.kernel.partition(':')[2]}`: `{mutant.old}` becomes "
        + (f"`{mutant.new}`" if mutant.new else "nothing")
        for mutant in contract.mutants
    ).replace("`*`", "the module")
    return (
        f"## {contract.id}\n\n{contract.statement}\n\n"
        f"Kernel: `{contract.kernel}`. Laws: {law_links(contract.laws)}.\n\n"
        f"Bound: {contract.bound}.\n\n```python\n{assumed}\n```\n\n"
        f"Mutants that are caught:\n\n{planted}\n"
    )


def pages() -> dict[str, str]:
    """Return the page by path."""
    contracts = every_contract()
    parts = [OPENING, overview(contracts), *map(section, contracts)]
    return {"reference/contracts.md": "\n".join(parts)}
