# SPDX-License-Identifier: Apache-2.0
"""Two systems in one harness: which profiles a structure has, and files that lie in folders."""

import json
from pathlib import Path

import pytest

from segproof_harness import cli
from segproof_harness.cli.histories import structures_of
from segproof_harness.histories.subject_names import subject_named
from segproof_harness.histories.traces import TraceError, read_trace
from segproof_harness.histories.workloads import make_history
from segproof_harness.structures.operations import Value
from segproof_harness.structures.steps import Setup
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named
from segproof_model.releases import RELEASES

OPENING: dict[str, Value] = {"geometry": (2, 4), "now_ms": 1_700_000_000_000, "damage": ()}


def test_every_release_is_of_one_system() -> None:
    """And segproof's own profile of both."""
    systems = {structure_named(name).system: structure_named(name) for name in STRUCTURE_IDS}
    assert {"kafka", "rocketmq"} == set(systems)
    for name in RELEASES:
        of = {system for system, one in systems.items() if name in one.profile_names}
        assert of == ({*systems} if name == "segproof" else {name.partition("-")[0]})
    assert "kafka-4.4.0" == systems["kafka"].newest_release
    assert "rocketmq-5.5.1" == systems["rocketmq"].newest_release


def test_all_means_the_structures_of_the_release(capsys: pytest.CaptureFixture[str]) -> None:
    """With segproof's profile, really all; a structure of the other system is refused."""
    indexes = ("index-file", "index-service")
    stores = (*indexes, "store-checkpoint", "commit-log", "consume-queue", "message-store")
    assert stores == structures_of("all", "rocketmq-5.5.1", ["model"])
    assert set(STRUCTURE_IDS) == set(structures_of("all", "segproof", ["model"]))
    wrong = ["replay", "--structure", "offset-index", "--profile", "rocketmq-5.5.1"]
    assert 2 == cli.run(wrong)
    words = "offset-index is a structure of kafka and has no profile 'rocketmq-5.5.1'; known: "
    assert words in capsys.readouterr().err
    assert 2 == cli.run([*wrong[:3], "--subjects", "model:rocketmq-4.7.0,impl"])
    assert "has no profile 'rocketmq-4.7.0'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["impl", "impl:real-files"])
def test_files_in_folders_are_compared(name: str) -> None:
    """They are there at the beginning, and each image tells them with their folder."""
    files = {"index/1": bytes(128), "index/notes/why": b"x", "checkpoint": bytes(4096)}
    setup = Setup(OPENING, files)
    subject = subject_named(name, structure_named("index-service"))
    model = subject_named("model", structure_named("index-service"))
    assert model.start(setup) == subject.start(setup)
    assert files == subject.image() == model.image()
    subject.stop()


@pytest.mark.parametrize(
    ("structure_id", "name"),
    [
        ("index-service", "../1"),
        ("index-service", "index//1"),
        ("index-service", "/1"),
        ("index-service", "a/b/c/d/e"),
        ("offset-index", "index/1"),
    ],
)
def test_a_trace_leads_out_of_no_directory(structure_id: str, name: str, tmp_path: Path) -> None:
    """Nor into a folder where the structure has none."""
    header, *_ = make_history(structure_id, "segproof", 0, 1).to_lines()
    value = json.loads(header)
    value["setup"]["files"] = {name: {"base64": ""}}
    path = tmp_path / "trace.jsonl"
    path.write_text(json.dumps(value) + "\n")
    with pytest.raises(TraceError, match="must be a plain name"):
        read_trace(path)
