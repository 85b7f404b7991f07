# SPDX-License-Identifier: Apache-2.0
"""A seed means one history, on every platform and for ever: stored traces and digests.

A change of a description changes histories, so that old seeds show nothing any more. Where that is
meant, run this file with SEGPROOF_WRITE_GOLDEN=1 and say so in the news.
"""

import hashlib
import json
import os
from pathlib import Path

import pytest

from segproof_harness.histories.replay import replay_trace
from segproof_harness.histories.workloads import make_history
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named

HERE = Path(__file__).parent / "histories"
DIGESTS = HERE / "digests.json"
PROFILES = {
    "kafka": ("segproof", "kafka-4.3.1", "kafka-1.1.1"),
    "rocketmq": ("segproof", "rocketmq-5.5.1", "rocketmq-4.7.0"),
}
"""By system: the profiles whose histories are kept."""
SEEDS = range(25)
LENGTH = 40
STORED_SEED = 7


def profiles_of(structure_id: str) -> tuple[str, ...]:
    """Return the profiles under which histories of a structure are kept."""
    return PROFILES[structure_named(structure_id).system]


def digest(structure_id: str, profile_name: str) -> str:
    """Return one digest of the histories of all seeds."""
    texts = [make_history(structure_id, profile_name, seed, LENGTH).to_text() for seed in SEEDS]
    return hashlib.sha256("".join(texts).encode()).hexdigest()


def stored_path(structure_id: str) -> Path:
    """Return where the stored trace of a structure lies."""
    return HERE / f"{structure_id}.jsonl"


@pytest.fixture(scope="session", autouse=True)
def _write_when_asked() -> None:
    if os.environ.get("SEGPROOF_WRITE_GOLDEN") != "1":
        return
    HERE.mkdir(exist_ok=True)
    for structure_id in STRUCTURE_IDS:
        make_history(structure_id, "segproof", STORED_SEED, LENGTH).write(stored_path(structure_id))
    digests = {
        structure_id: {
            profile: digest(structure_id, profile) for profile in profiles_of(structure_id)
        }
        for structure_id in STRUCTURE_IDS
    }
    DIGESTS.write_text(json.dumps(digests, indent=1) + "\n")


@pytest.mark.parametrize("structure_id", STRUCTURE_IDS)
def test_stored_trace(structure_id: str) -> None:
    """One seed's history is, byte for byte, the stored one, which replays clean."""
    stored = stored_path(structure_id).read_text()
    assert stored == make_history(structure_id, "segproof", STORED_SEED, LENGTH).to_text()
    assert [] == replay_trace(stored_path(structure_id)).findings


@pytest.mark.parametrize(
    ("structure_id", "profile_name"),
    [(each, name) for each in STRUCTURE_IDS for name in profiles_of(each)],
)
def test_digests(structure_id: str, profile_name: str) -> None:
    """The histories of many seeds have the stored digest, under each profile."""
    stored = json.loads(DIGESTS.read_text())
    assert stored[structure_id][profile_name] == digest(structure_id, profile_name)
