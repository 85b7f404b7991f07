# SPDX-License-Identifier: Apache-2.0
"""Both jobs through Spark Connect: the server has neither segproof nor numba."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from tests.spark.clusters import WAIT_SECONDS, Place, connect_server

from segproof.verification import verify
from segproof_spark.session import SparkNotRunError, check_spark
from segproof_tests.real_copies import flip


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory, not_run: Callable[[str], NoReturn]
) -> Iterator[Place]:
    """Return a server of Spark Connect, or end the test as not run."""
    try:
        check_spark()
        check_spark("sc://")
    except SparkNotRunError as reason:
        not_run(str(reason))
    with connect_server(tmp_path_factory.mktemp("connect"), hidden=("numba",)) as place:
        yield place


def test_verify(server: Place, partition: Path, tmp_path: Path) -> None:
    """The findings are those of one process, and no file is read twice."""
    path, checkpoint = partition.parent, tmp_path / "checkpoint"
    flip(next(partition.glob("*252.index")), 3)
    run = server.run(
        *("spark", "verify", "--remote", server.address, str(path), "--format", "jsonl"),
        *("--checkpoint", str(checkpoint)),
    )
    out, err = run.communicate(timeout=WAIT_SECONDS)
    assert 1 == run.returncode, err
    found = [json.loads(line) for line in out.splitlines()]
    local = [finding.to_json() for finding in verify(path)]
    assert any(finding["severity"] == "error" for finding in local)
    assert sorted(local, key=repr) == sorted(found, key=repr)
    assert any(checkpoint.iterdir())
    assert "from the checkpoint" not in err


def test_replay(server: Place) -> None:
    """Histories are counted as on any other Spark."""
    run = server.run(
        *("spark", "replay", "--remote", server.address, "--structure", "offset-index"),
        *("--length", "20", "--count", "40"),
    )
    _, err = run.communicate(timeout=WAIT_SECONDS)
    assert 0 == run.returncode, err
    assert "40 histories" in err
    assert "0 findings" in err
