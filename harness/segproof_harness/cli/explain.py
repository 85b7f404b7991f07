# SPDX-License-Identifier: Apache-2.0
"""The verb `explain`: a law in words, where it comes from, a file that breaks it, what to do.

Of releases and their behaviours: explain_release.
"""

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from segproof_harness.cli.common import Format, FormatOption, did_you_mean, refuse, write_row

if TYPE_CHECKING:
    from segproof.findings import Finding

SCOPES = {
    "state": "every state of the structure",
    "step": "every operation on the structure",
    "file": "the bytes of a file",
    "disk": "the files of a partition beside each other",
    "pure": "every call of one function",
}


def command(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="WHAT",
            help="A law such as OFFIDX-2, a release such as kafka-2.8.2, or a behaviour, such "
            "as SecondCloseFails. Default: all laws.",
        ),
    ] = None,
    structure: Annotated[
        str | None,
        typer.Argument(
            metavar="STRUCTURE",
            help="After a release: a class of the model; its methods that differ from the newest "
            "release are printed.",
        ),
    ] = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Explain a law, with a file that breaks it, or the behaviours of a release.

    For a law it shows the sentence, the source, what is proved of it, an example of a broken file,
    and what to do. The example is made each time: a real file of this package is copied, damaged,
    and verified. For a release it lists the behaviours: the differences from the newest release.

    \b
    Examples:
      segproof explain OFFIDX-2
      segproof explain BATCH-3 --format jsonl
      segproof explain kafka-2.8.2
      segproof explain kafka-2.8.2 LogSegment
      segproof explain
    """
    if what is not None and explain_of_release(what, structure, output_format):
        return
    known = known_laws()
    if what is None:
        for each, facts in known.items():
            write_row({"law": each, "sentence": facts["sentence"]}, output_format)
        return
    wanted = what.upper()
    if wanted not in known:
        near = did_you_mean(wanted, known)
        refuse(f"no law {what!r}{near} (`segproof explain` lists all)")
    facts = {"law": wanted, **known[wanted]}
    finding, damage = _example(wanted)
    facts["example"] = damage
    facts["finding"] = None if finding is None else finding.to_json()
    if output_format is Format.JSONL:
        write_row(facts, output_format)
    else:
        _show(facts)


def explain_of_release(what: str, structure: str | None, output_format: Format) -> bool:
    """Explain a release or a behaviour; return whether it is one."""
    from segproof_harness.cli import explain_release

    is_known = explain_release.is_known(what)
    if is_known:
        explain_release.explain(what, structure, output_format)
    return is_known


def known_laws() -> dict[str, dict[str, Any]]:
    """Return the facts of every law, and what `verify` makes of it."""
    from segproof.verification import RULES
    from segproof_harness.claims.every_claim import CLAIMS
    from segproof_harness.laws.every_law import LAWS, RETIRED
    from segproof_model.laws.register import Law, Retired

    laws: dict[str, Law | Retired] = {**LAWS, **RETIRED}
    known: dict[str, dict[str, Any]] = {}
    for law_id in sorted(laws, key=order_of_law):
        law, rule = laws[law_id], RULES.get(law_id)
        known[law_id] = {
            "structure": law.structure,
            "sentence": law.sentence,
            "source": law.source if isinstance(law, Law) else None,
            "said_by": law.place if isinstance(law, Retired) else None,
            "speaks_of": SCOPES[law.scope],
            "severity": rule.severity.value if rule else None,
            "hint": rule.hint if rule else None,
            "proofs": [claim.kernel for claim in CLAIMS.values() if law_id in claim.laws],
        }
    return known


def claimed(kernel: str) -> list[str]:
    """Return what a kernel's claim requires of callers, and what it proves, line by line."""
    from segproof_harness.claims.claim import expressions_of
    from segproof_harness.claims.every_claim import CLAIMS

    claim = CLAIMS[kernel]
    required = [f"requires: {line}" for line in expressions_of(claim.requires)]
    proved = expressions_of(f"{claim.ensures}\n{claim.proves}")
    return [*required, *(f"ensures:  {line}" for line in proved)]


def order_of_law(law_id: str) -> tuple[str, int]:
    """Return the key that sorts ids as people count: BATCH-2 before BATCH-10."""
    area, _, number = law_id.rpartition("-")
    return area, int(number)


def _example(law_id: str) -> "tuple[Finding | None, str | None]":
    """Return what `verify` says of a damaged copy of a real file, and the damage in words."""
    from segproof_harness.laws.broken_files import EXAMPLES, finding_of

    example = EXAMPLES.get(law_id)
    if example is None:
        return None, None
    return finding_of(law_id, example), example.damage


def _show(facts: dict[str, Any]) -> None:
    """Write the facts for people."""
    from segproof_harness.reports import write_text

    out = sys.stdout.write
    out(f"{facts['law']} ({facts['structure']})\n\n")
    out(f"  {facts['sentence']}\n\n")
    if facts["said_by"] is not None:
        out(f"said by:    {facts['said_by']} in the model, so nothing judges it a second time\n")
        return
    out(f"source:     {facts['source']}\n")
    out(f"speaks of:  {facts['speaks_of']}\n")
    for kernel in facts["proofs"]:
        out(f"proved for every length: kernel {kernel}\n")
        for line in claimed(kernel):
            out(f"            {line}\n")
    if facts["severity"] is None:
        out(
            "checked by: replay, machines and contracts; it says what operations do, so no file "
            "breaks it by itself\n"
        )
        return
    out(f"checked by: segproof verify, which reports it as {facts['severity']}\n")
    out(f"what to do: {facts['hint']}\n")
    if facts["finding"] is not None:
        out(f"\nexample: {facts['example']}\n\n")
        write_text(facts["finding"], sys.stdout)
