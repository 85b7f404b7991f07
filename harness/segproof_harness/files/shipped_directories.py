# SPDX-License-Identifier: Apache-2.0
"""The real directories that ship with the package, and the answers recorded for them."""

import gzip
import json
from pathlib import Path
from typing import Any

import segproof_harness

DATA = Path(segproof_harness.__file__).parent / "data"
KAFKA, ROCKETMQ = DATA / "kafka", DATA / "rocketmq"


def scenarios() -> list[Path]:
    """Return the directories of Kafka's real files, each with recorded answers."""
    return scenarios_below(KAFKA)


def stores() -> list[Path]:
    """Return the real stores of RocketMQ."""
    return sorted(ROCKETMQ.glob("*/store"))


def load_expected(scenario: Path, release: str | None = None) -> dict[str, Any]:
    """Return the answers of 4.3.1, or of the release that wrote the files.

    Raises: OSError, ValueError.
    """
    plain = scenario / ("expected.json" if release is None else f"expected-{release}.json")
    packed = plain.with_suffix(".json.gz")
    data = plain.read_bytes() if plain.exists() else gzip.decompress(packed.read_bytes())
    expected: dict[str, Any] = json.loads(data)
    return expected


def partition_of(scenario: Path) -> Path:
    """Return the partition directory of a scenario."""
    return scenario / str(load_expected(scenario)["partition_dir"])


def scenarios_below(directory: Path) -> list[Path]:
    """Return the directory, or those below it, that hold recorded answers."""
    found = sorted({path.parent for path in directory.glob("**/expected.json*")})
    return [path for path in found if any(path.glob("expected.json*"))]
