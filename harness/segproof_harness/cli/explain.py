# SPDX-License-Identifier: Apache-2.0
"""The verb `explain`: a law in words, where it comes from, a file that breaks it, what to do.

Of releases and their behaviours: explain_release.
"""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from segproof.nearest_names import did_you_mean
from segproof_harness.cli import candidates
from segproof_harness.cli.common import Format, FormatOption, refuse, write_prose, write_row
from segproof_harness.laws.law_order import order_of_law

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
            autocompletion=candidates.explained,
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
    from segproof_model.releases import RELEASES

    known = known_laws()
    if what is None:
        for each, facts in known.items():
            if output_format is Format.JSONL:
                write_row({"law": each, "sentence": facts["sentence"]}, output_format)
            else:
                write_prose(f"{each:11} {facts['sentence']}", indent=12)
        return
    wanted = what.upper()
    if wanted not in known:
        near = did_you_mean(wanted, known) or did_you_mean(what, RELEASES)
        refuse(f"no law and no release {what!r}{near} (`segproof explain` lists all laws)")
    facts = {"law": wanted, **known[wanted]}
    finding, damage = _example(wanted)
    facts["example"] = damage
    if output_format is Format.JSONL:
        facts["finding"] = None if finding is None else finding.to_json()
        write_row(facts, output_format)
    else:
        _show(facts, finding)


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
            "effect": rule.hint.effect.value if rule else None,
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


def _example(law_id: str) -> "tuple[Finding | None, str | None]":
    """Return what `verify` says of a damaged copy of a real file, and the damage in words."""
    from segproof_harness.laws.broken_files import EXAMPLES, finding_of

    example = EXAMPLES.get(law_id)
    if example is None:
        return None, None
    return finding_of(law_id, example), example.damage


def _show(facts: dict[str, Any], finding: "Finding | None") -> None:
    """Write the facts for people."""
    from segproof_harness.reports.terminal import Lines
    from segproof_harness.reports.verdicts import write_finding_lines

    lines = Lines()

    def out(name: str, text: str) -> None:
        lines.write(f"{name + ':':11} {text}", indent=12)

    lines.write(f"{facts['law']} ({facts['structure']})")
    lines.gap()
    lines.write(f"  {facts['sentence']}", indent=2)
    lines.gap()
    if facts["said_by"] is not None:
        out("said by", f"{facts['said_by']} in the model, so nothing judges it a second time")
        return
    out("source", facts["source"])
    out("speaks of", facts["speaks_of"])
    for kernel in facts["proofs"]:
        lines.write(f"proved for every length: kernel {kernel}")
        for line in claimed(kernel):
            lines.write(f"            {line}", indent=14)
    if facts["severity"] is None:
        out(
            "checked by",
            "replay, machines and contracts; it says what operations do, so no file breaks it by"
            " itself",
        )
        return
    out("checked by", f"segproof verify, which reports it as {facts['severity']}")
    out("what to do", facts["hint"])
    out("effect", facts["effect"])
    if finding is not None:
        lines.gap()
        lines.write(f"example: {facts['example']}", indent=9)
        lines.gap()
        write_finding_lines(lines, finding.to_json())
