# SPDX-License-Identifier: Apache-2.0
"""Real stores of RocketMQ that ship with the package, and what the releases answered about them.

Every recorded answer is compared: headers, hashes, selects for each window, queries over all files,
messages, checkpoints. First of the model and our own code, then through the command line itself.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from segproof.verification import verify
from segproof_harness.cli import run
from segproof_harness.conformance.recorded_store_answers import compare_store, load_scenario
from segproof_harness.files.shipped_directories import ROCKETMQ
from segproof_model.releases import release_named
from segproof_tests.printed_rows import Capsys

DATA = ROCKETMQ
STORES = sorted(folder.name for folder in DATA.iterdir() if folder.is_dir())
WITH_LOG = [name for name in STORES if (DATA / name / "store" / "commitlog").is_dir()]
UNTOLD = {"u8msgs-4.9.8"}
"""No message of these has tags, so the index does not tell the release."""
ANSWERED = (
    "RMQHASH-1", "RMQHASH-2", "RMQHASH-3", "RMQIDX-2", "RMQIDX-3", "RMQIDX-13", "RMQIDX-16",
    "RMQIDX-31", "RMQIDX-32", "RMQIDX-33", "RMQIDX-34", "RMQIDX-36", "RMQSVC-17", "RMQSVC-18",
    "RMQSVC-19", "RMQCKPT-1", "RMQCKPT-4", "RMQLOG-1", "RMQLOG-2", "RMQLOG-3", "RMQLOG-4",
)  # fmt: skip
"""Laws without which some recorded answer would differ."""


def rows(capsys: Capsys, *arguments: str) -> list[dict[str, Any]]:
    """Run a command line and return the objects it printed."""
    assert 0 == run([*arguments, "--format", "jsonl"])
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_enough_stores_are_carried() -> None:
    """The promised ones are there: three releases, rolled files, collisions, other alphabets."""
    promised = {"small-4.7.0", "small-4.9.8", "small-5.5.1", "rolled-4.9.8", "collisions-4.9.8"}
    assert promised | {"u8msgs-4.9.8"} <= set(STORES)


@pytest.mark.checks(*ANSWERED)
@pytest.mark.parametrize("name", STORES)
def test_model_answers_as_the_release_did(name: str) -> None:
    """Under the profile of its release the model gives every recorded answer."""
    scenario = load_scenario(DATA / name)
    tally = compare_store(scenario, release_named(f"rocketmq-{scenario.release}"))
    assert [] == tally.mismatches
    assert tally.total > 1200


@pytest.mark.parametrize("name", STORES)
def test_implementation_answers_as_the_release_did(name: str) -> None:
    """Our own code gives every recorded answer, since no file is damaged."""
    tally = compare_store(load_scenario(DATA / name), None)
    assert [] == tally.mismatches
    assert tally.total > 1200


@pytest.mark.parametrize("name", STORES)
def test_verifies_clean(name: str) -> None:
    """A healthy store, its index folder and each of its files have no defect."""
    store = DATA / name / "store"
    files = [path for path in sorted(store.rglob("*")) if path.is_file()]
    assert len(files) > 1
    for path in (DATA / name, store, store / "index", *files):
        assert [] == [str(one) for one in verify(path) if one.is_defect]


@pytest.mark.parametrize("name", STORES)
def test_verify_and_model_agree(name: str, capsys: Capsys) -> None:
    """`--against model` compares the store and finds no law on which the two part."""
    assert 0 == run(["verify", str(DATA / name), "--against", "model"])
    assert f"{name}/store: compared" in capsys.readouterr().err


@pytest.mark.parametrize("name", STORES)
def test_lookup_gives_the_recorded_answers(name: str, tmp_path: Path, capsys: Capsys) -> None:
    """`lookup --keys --raw` answers as `queryOffset` of the release did, for each window."""
    scenario = load_scenario(DATA / name)
    service = scenario.expected["service"]
    asked = tmp_path / "keys"
    keys = [f"{query['topic']}#{query['key']}" for query in service["queries"]]
    asked.write_text("".join(f"{key}\n" for key in keys), encoding="utf-8")
    store = str(DATA / name / "store")
    for number, (begin, end, limit) in enumerate(service["windows"]):
        window = ["--begin", str(begin), "--end", str(end), "--max", str(min(limit, 64))]
        expected = [query["results"][number][0] for query in service["queries"]]
        for option in (["--raw"], ["--profile", f"rocketmq-{scenario.release}"]):
            if option[0] == "--profile" and number > 1:
                continue
            found = rows(capsys, "lookup", store, "--keys", str(asked), *window, *option)
            assert keys == [row["target"] for row in found]
            assert expected == [row["phy_offsets"] or [] for row in found]


@pytest.mark.parametrize("name", WITH_LOG)
def test_lookup_leaves_other_keys_out(name: str, capsys: Capsys) -> None:
    """With the log at hand each offset is one whose recorded message has the topic and key."""
    scenario = load_scenario(DATA / name)
    messages = {one["phyOffset"]: one for one in scenario.expected["commitlog"]["messages"]}
    query = next(one for one in scenario.expected["service"]["queries"] if one["results"][0][0])
    target = f"{query['topic']}#{query['key']}"
    (row,) = rows(capsys, "lookup", str(DATA / name / "store"), "--key", target)
    assert row["phy_offsets"]
    for offset in row["phy_offsets"]:
        message = messages[offset]
        keys = [message["uniqKey"], *(message["keys"] or "").split(" ")]
        assert (query["topic"], True) == (message["topic"], query["key"] in keys)


@pytest.mark.parametrize("name", STORES)
def test_dump_shows_header_and_entries(name: str, capsys: Capsys) -> None:
    """`dump` of an index file is its header and as many entries, under a profile too."""
    scenario = load_scenario(DATA / name)
    for expected in scenario.expected["files"]:
        path = str(DATA / name / "store" / "index" / expected["name"])
        header, *entries = rows(capsys, "dump", path)
        assert list(expected["header"].values()) == list(header.values())
        assert list(range(1, header["index_count"])) == [row["index"] for row in entries]
        slots = scenario.geometry[0]
        assert all(row["slot"] == row["key_hash"] % slots for row in entries)
        profile = f"rocketmq-{scenario.release}"
        assert [header, *entries] == rows(capsys, "dump", path, "--profile", profile)


@pytest.mark.parametrize("profile", ["segproof", "rocketmq-5.5.1"])
@pytest.mark.parametrize("name", WITH_LOG)
def test_dump_shows_the_messages(name: str, profile: str, capsys: Capsys) -> None:
    """`dump` of the commit log gives every recorded message; `lookup --phy-offset` each of them."""
    scenario = load_scenario(DATA / name)
    log = sorted((DATA / name / "store" / "commitlog").iterdir())
    found = [row for path in log for row in rows(capsys, "dump", str(path), "--profile", profile)]
    recorded = scenario.expected["commitlog"]["messages"]
    assert [(one["phyOffset"], one["size"], one["keys"] or None) for one in recorded] == [
        (row["phy_offset"], row["size"], row["keys"]) for row in found
    ]
    assert all(row["crc_valid"] for row in found)
    store, last = str(DATA / name / "store"), recorded[-1]["phyOffset"]
    (row,) = rows(capsys, "lookup", store, "--phy-offset", str(last), "--profile", profile)
    assert [last, recorded[-1]["uniqKey"]] == [row["phy_offset"], row["uniq_key"]]


@pytest.mark.checks("RMQLOG-5", "RMQLOG-6", "RMQLOG-7", "RMQIDX-24")
@pytest.mark.parametrize("is_told", [False, True])
@pytest.mark.parametrize("name", WITH_LOG)
def test_a_rebuilt_index_is_the_real_one(
    name: str, is_told: bool, tmp_path: Path, capsys: Capsys
) -> None:
    """`rebuild` gives the files of the real store, whether it is told the release or looks."""
    store = DATA / name / "store"
    release = f"rocketmq-{load_scenario(DATA / name).release}"
    out = tmp_path / "index"
    told = ["--profile", release] if is_told or name in UNTOLD else []
    assert 0 == run(["rebuild", str(store), "--out", str(out), *told])
    old = sorted((store / "index").iterdir())
    assert [path.name for path in old] == sorted(path.name for path in out.iterdir())
    for path in old:
        assert path.read_bytes() == (out / path.name).read_bytes()
    capsys.readouterr()


def test_a_rebuild_in_place_makes_a_damaged_index_sound(tmp_path: Path, capsys: Capsys) -> None:
    """What verify reports is gone afterwards, and the files are the old ones again."""
    store = tmp_path / "store"
    shutil.copytree(DATA / "rolled-4.9.8" / "store", store, copy_function=shutil.copyfile)
    index = sorted((store / "index").iterdir())[2]
    sound = index.read_bytes()
    index.write_bytes(sound[:40] + bytes(128) + sound[168:])
    assert 1 == run(["verify", str(store)])
    assert 0 == run(["rebuild", str(store), "--in-place"])
    assert 0 == run(["verify", str(store)])
    assert sound == index.read_bytes()
    capsys.readouterr()
