# SPDX-License-Identifier: Apache-2.0
"""The schemas of the records in Kafka's internal topics, read from the jars of a release.

`python -m segproof_harness.releases.message_schemas` writes them to `SCHEMAS`, which `dump` reads.
Kept are facts alone: names, versions, types and tags. Names are in snake_case.

Layout: {"kafka": RELEASE, "topics": {KIND: {NUMBER: [SCHEMA of key, SCHEMA of value]}}}. KIND is a
topic or `control`; a metadata record has no key. A schema is {"name", "versions", "flexible",
"fields"}. A field has "name", "type", "versions", and where it applies "nullable" and "tagged",
which are versions too, "tag" and "fields".
"""

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from segproof_harness.reading.internal_topics import SCHEMAS, Decoder
from segproof_harness.releases.jars import class_path
from segproof_harness.releases.pinned import BROKER, Release

COORDINATORS = {
    "kafka-group-coordinator": Decoder.CONSUMER_OFFSETS.topic,
    "kafka-transaction-coordinator": Decoder.TRANSACTION_STATE.topic,
    "kafka-share-coordinator": Decoder.SHARE_GROUP_STATE.topic,
}
"""The artefacts whose messages are the records of a topic."""
CONTROL = {
    "0": "EndTxnMarker",
    "1": "EndTxnMarker",
    "2": "LeaderChangeMessage",
    "3": "SnapshotHeaderRecord",
    "4": "SnapshotFooterRecord",
    "5": "KRaftVersionRecord",
    "6": "VotersRecord",
}
"""The values of control records, by the type in their keys."""
_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//.*')
_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """Return a name of Kafka's, such as `leaderEpoch`, in snake_case."""
    return _WORD.sub("_", name).lower()


def message_schemas(release: Release = BROKER) -> dict[str, Any]:
    """Return the schemas of a release. Raises: FileNotFoundError without its jars."""
    topics: dict[str, dict[str, list[Any]]] = {}
    for jar in class_path(release):
        artefact = re.sub(r"-[0-9.]+\.jar$", "", jar.name)
        for message in _messages(jar):
            name, number = message["name"], str(message.get("apiKey"))
            if artefact in COORDINATORS and message["type"].startswith("coordinator-"):
                pair = topics.setdefault(COORDINATORS[artefact], {}).setdefault(number, [None] * 2)
                pair[message["type"] == "coordinator-value"] = _schema(message)
            elif message["type"] == "metadata":
                topics.setdefault(Decoder.CLUSTER_METADATA.topic, {})[number] = [
                    None,
                    _schema(message),
                ]
            elif name in CONTROL.values():
                for kind in (kind for kind, value in CONTROL.items() if value == name):
                    topics.setdefault("control", {})[kind] = [None, _schema(message)]
    ordered = {
        kind: dict(sorted(topics[kind].items(), key=lambda item: int(item[0])))
        for kind in sorted(topics)
    }
    return {"kafka": release.version, "topics": ordered}


def schemas_text(schemas: dict[str, Any]) -> str:
    """Return schemas as the text of the file, a line for each number."""
    kinds = []
    for kind, numbers in schemas["topics"].items():
        lines = [f"{json.dumps(number)}: {json.dumps(both)}" for number, both in numbers.items()]
        kinds.append(f"{json.dumps(kind)}: {{\n" + ",\n".join(lines) + "\n}")
    topics = ",\n".join(kinds)
    return f'{{"kafka": {json.dumps(schemas["kafka"])}, "topics": {{\n{topics}\n}}}}\n'


def _messages(jar: Path) -> Iterator[Any]:
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"common/(message|metadata)/\w+\.json", name):
                text = archive.read(name).decode()
                yield json.loads(_COMMENT.sub(lambda match: match[1] or "", text))


def _schema(message: Any) -> dict[str, Any]:
    shared = {each["name"]: each["fields"] for each in message.get("commonStructs", ())}
    return {
        "name": message["name"],
        "versions": message["validVersions"],
        "flexible": message["flexibleVersions"],
        "fields": [_field(each, shared) for each in message["fields"]],
    }


def _field(field: Any, shared: dict[str, Any]) -> dict[str, Any]:
    inner = field.get("fields", shared.get(field["type"].removeprefix("[]")))
    found = {
        "name": snake_case(field["name"]),
        "type": field["type"],
        "versions": field.get("versions", field.get("taggedVersions")),
    }
    names = {"nullableVersions": "nullable", "taggedVersions": "tagged"}
    found |= {ours: field[theirs] for theirs, ours in names.items() if theirs in field}
    if "tag" in field:
        found["tag"] = int(field["tag"])  # some are written as text
    if inner is not None:
        found["type"] = "[]struct" if field["type"].startswith("[]") else "struct"
        found["fields"] = [_field(each, shared) for each in inner]
    return found


if __name__ == "__main__":
    SCHEMAS.write_text(schemas_text(message_schemas()), encoding="ascii")
