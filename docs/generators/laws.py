# SPDX-License-Identifier: Apache-2.0
"""Pages of the laws, one for each structure: docs/reference/laws/*.md, from the model's register.

Used by: docs/generate.py.
"""

from dataclasses import fields

from segproof.verifying.rules import RULES
from segproof_model.laws.registry import LAWS, Law
from segproof_model.profiles import Profile

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
SCOPES = {
    "state": "every state, after every step of every machine and replay",
    "step": "every step: the state before, the call, the state after, the outcome",
    "file": "the bytes of a file or batch; `segproof verify` looks at them too",
    "disk": "files beside each other, such as an index and its log; what `segproof verify` is for",
    "pure": "the arguments and the answer of one function, on drawn values",
}
OPENING = """\
Who should read this: whoever implements the format, or asks what a finding means. The bytes
are in {format}; which layer of checking looks at which law is in
[the traceability matrix](../../results/traceability.md).

The page is made from the model's register ({modules}),
where each law is a function that returns whether it holds. An id is never reused. A law speaks of
the newest release unless its sentence names others; the flags under a law are where a release or
segproof itself differs, and [the profiles](../profiles.md) say which.
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


def format_link(structure: str) -> str:
    """Return the link to the page of the structure's bytes."""
    page = structure.replace("-", "_")
    return FORMATS.get(structure, f"[the format](../formats/{page}.md)")


def flags_of(law: Law) -> list[str]:
    """Return a line for each profile flag that bends the law."""
    return [
        f"`{item.name}`: {item.metadata['sentence']}"
        for item in fields(Profile)
        if law.law_id in item.metadata.get("laws", ())
    ]


def verify_line(law: Law) -> list[str]:
    """Return the line that says what `segproof verify` makes of a broken law."""
    rule = RULES.get(law.law_id)
    if rule is None:
        return []
    depth = ", with `--deep`" if rule.is_deep else ""
    return [f"- Verify: reported as {rule.severity.value}{depth}; {rule.hint}"]


def law_entry(law: Law) -> str:
    """Return the entry of one law."""
    flags = flags_of(law)
    lines = [
        f"(law-{law.law_id.lower()})=",
        f"## {law.law_id}",
        "",
        law.sentence,
        "",
        f"- Judges: {law.scope}",
        f"- Upstream: {law.source}",
        *verify_line(law),
        f"- Predicate: `{law.predicate.__module__}.{law.predicate.__name__}`",
        *(f"- Flag {flag}" for flag in flags),
        "",
    ]
    return "\n".join(lines)


def structure_page(structure: str, laws: list[Law]) -> str:
    """Return the page of one structure."""
    # The laws of files beside each other come behind those of the structure itself.
    laws = sorted(laws, key=lambda law: law.scope == "disk")
    modules = ", ".join(
        f"`{name}`" for name in dict.fromkeys(one.predicate.__module__ for one in laws)
    )
    judged = {law.scope for law in laws}
    scopes = [f"{scope}\n: {words}\n" for scope, words in SCOPES.items() if scope in judged]
    parts = [
        f"# {TITLES[structure]}\n",
        OPENING.format(format=format_link(structure), modules=modules),
        "What a law judges:\n",
        *scopes,
        *(law_entry(law) for law in laws),
    ]
    return "\n".join(parts)


def pages() -> dict[str, str]:
    """Return the pages by path."""
    structures: dict[str, list[Law]] = {}
    for law in LAWS.values():
        structures.setdefault(law.structure, []).append(law)
    return {
        f"reference/laws/{structure.replace('-', '_')}.md": structure_page(structure, laws)
        for structure, laws in structures.items()
    }
