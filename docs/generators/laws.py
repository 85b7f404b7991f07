# SPDX-License-Identifier: Apache-2.0
"""Pages of the laws, docs/reference/laws/*.md, from the model's register."""

from law_links import LAWS, RETIRED

from segproof.verification import RULES
from segproof_harness.claims.every_claim import CLAIMS
from segproof_harness.reports.release_methods import releases_text
from segproof_model.language.behaviours import Behaviour
from segproof_model.laws.register import Law, Retired
from segproof_model.releases import BEHAVIOURS

TITLES = {
    "abstract-index": "Laws of both index files",
    "offset-index": "Laws of the offset index",
    "time-index": "Laws of the time index",
    "transaction-index": "Laws of the transaction index",
    "record-batch": "Laws of record batches",
    "record-file": "Laws of the record file",
    "log-segment": "Laws of segment files",
    "partition-log": "Laws of partition directories",
    "checkpoint-file": "Laws of text checkpoints",
    "leader-epoch-cache": "Laws of the leader epoch cache",
    "partition-metadata-file": "Laws of partition.metadata",
    "index-file": "Laws of RocketMQ's index file",
    "index-service": "Laws of RocketMQ's index service",
}
PAGES = {
    "ABSIDX": "abstract-index",
    "BATCH": "record-batch",
    "CKPT": "checkpoint-file",
    "DUMP": "record-file",
    "EPOCH": "leader-epoch-cache",
    "FILE": "log-segment",
    "LAZY": "log-segment",
    "LOAD": "partition-log",
    "LOG": "partition-log",
    "META": "partition-metadata-file",
    "OFFIDX": "offset-index",
    "PROD": "partition-log",
    "RMQCKPT": "index-service",
    "RMQCQ": "index-service",
    "RMQHASH": "index-file",
    "RMQIDX": "index-file",
    "RMQLOG": "index-service",
    "RMQREF": "index-file",
    "RMQSVC": "index-service",
    "SCAN": "record-file",
    "SEG": "log-segment",
    "TIMEIDX": "time-index",
    "TXNIDX": "transaction-index",
}
"""On which page the laws of an area stand; those of files beside each other (DISK, RMQDISK) stand
on the page of the structure that they speak of."""
OPENING = """\
Who should read this: everyone who implements the format, or asks what a finding means. The bytes
are in {format}; [the traceability matrix](../../results/traceability.md) names the checks that look
at each law; [this](../laws.md#how-to-read-an-entry) is how to read an entry.
"""
FORMATS = {
    "abstract-index": "[the offset index](../formats/offset_index.md) and "
    "[the time index](../formats/time_index.md)",
    "partition-log": "[the partition directory](../formats/partition_log.md) and "
    "[the producer snapshot](../formats/producer_snapshot.md)",
    "index-service": "[the store](../formats/index_service.md) and "
    "[the commit log](../formats/commit_log.md)",
    "leader-epoch-cache": "[the text checkpoints](../formats/checkpoint_file.md)",
}
STORE = ("commit-log", "consume-queue", "message-store", "store-checkpoint")
"""Structures of a store of RocketMQ that have no page of their own."""


def page_of(law: Law | Retired) -> str:
    """Return the page that a law stands on."""
    area = law.law_id.rpartition("-")[0]
    if area in PAGES:
        return PAGES[area]
    if law.structure in STORE:
        return "index-service"
    return law.structure if law.structure in TITLES else "partition-log"


def format_link(page: str) -> str:
    """Return the link to the page of the structure's bytes."""
    return FORMATS.get(page, f"[the format](../formats/{page.replace('-', '_')}.md)")


def behaviour_line(word: str, behaviour: type[Behaviour]) -> str:
    """Return what is said of a behaviour under a law."""
    name, sentence = behaviour.__name__, behaviour.sentence().removesuffix(".")
    return f"- {word} `{name}` ({releases_text(behaviour)}): {sentence}"


def behaviours_of(law: Law | Retired) -> list[str]:
    """Return a line for each behaviour that promises the law, takes it away, or bends it."""
    only, unless = (law.only, law.unless) if isinstance(law, Law) else ((), ())
    bend = [one for one in BEHAVIOURS if law.law_id in one.laws and one not in (*only, *unless)]
    words = {"Only with": only, "Not with": unless, "Bent by": bend}
    return [behaviour_line(word, one) for word, found in words.items() for one in found]


def judged_text(law: Law) -> str:
    """Return what a law judges."""
    if law.scope == "step":
        names = ", ".join(f"`{name}`" for name in law.on)
        return f"a step of {names}" if names else "a step"
    if law.scope == "state":
        return "a state"
    words = {"file": "one file", "disk": "files beside each other", "pure": "one function"}
    return f"{words[law.scope]} ({', '.join(f'`{name}`' for name in law.judges)})"


def verify_line(law: Law | Retired) -> list[str]:
    """Return the line that says what `segproof verify` makes of a broken law."""
    rule = RULES.get(law.law_id)
    if rule is None:
        return []
    depth = ", with `--deep`" if rule.is_deep else ""
    return [f"- Verify: reported as {rule.severity.value}{depth}; {rule.hint}"]


def proof_line(law: Law) -> list[str]:
    """Return the line that names the kernels whose claims say a part of the law."""
    links = [
        f"[`{name}`](../proofs.md#{claim.anchor})"
        for name, claim in CLAIMS.items()
        if law.law_id in claim.laws
    ]
    return [f"- Proved in part, for every length: {', '.join(links)}"] if links else []


def source_lines(law: Law | Retired) -> list[str]:
    """Return what a law judges and where it comes from, or the method that says it."""
    if isinstance(law, Retired):
        return [f"- Said by the model: `{law.place}`"]
    predicate = law.predicate
    return [
        f"- Judges: {judged_text(law)}",
        f"- Upstream: {law.source}",
        *verify_line(law),
        *proof_line(law),
        f"- Predicate: `{predicate.__module__}.{predicate.__name__}`",
    ]


def name_of(law: Law | Retired) -> str:
    """Return the name of a law in words, or the method that says it."""
    if isinstance(law, Retired):
        return f"`{law.place.rpartition(': ')[2]}`"
    return law.predicate.__name__.replace("_", " ")


def law_entry(law: Law | Retired) -> str:
    """Return the entry of one law."""
    lines = [
        f"(law-{law.law_id.lower()})=",
        f"## {law.law_id}: {name_of(law)}",
        "",
        law.sentence,
        "",
        *source_lines(law),
        *behaviours_of(law),
        "",
    ]
    return "\n".join(lines)


def order_of(law: Law | Retired) -> tuple[bool, str, int]:
    """Return the key that sorts a page: files beside each other last, then as people count."""
    area, _, number = law.law_id.rpartition("-")
    return area.endswith("DISK"), area, int(number)


def page_text(page: str, laws: list[Law | Retired]) -> str:
    """Return one page."""
    parts = [
        f"# {TITLES[page]}\n",
        OPENING.format(format=format_link(page)),
        *(law_entry(law) for law in sorted(laws, key=order_of)),
    ]
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """Return the pages by path."""
    found: dict[str, list[Law | Retired]] = {}
    for law in (*LAWS.values(), *RETIRED.values()):
        found.setdefault(page_of(law), []).append(law)
    return {
        f"reference/laws/{page.replace('-', '_')}.md": page_text(page, laws)
        for page, laws in found.items()
    }
