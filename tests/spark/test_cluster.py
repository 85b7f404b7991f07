# SPDX-License-Identifier: Apache-2.0
"""Both jobs on a real standalone cluster: a master and two workers, which lack segproof."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from tests.spark.clusters import SPARK_HOME, WAIT_SECONDS, Place, standalone, wait_until

from segproof.verification import verify
from segproof_spark.bundle import SCRIPT, write_bundle
from segproof_spark.session import SparkNotRunError, check_spark
from segproof_tests.real_copies import copy_of, flip


@pytest.fixture(scope="module")
def cluster(
    tmp_path_factory: pytest.TempPathFactory, not_run: Callable[[str], NoReturn]
) -> Iterator[Place]:
    """Return a cluster, or end the test as not run."""
    try:
        check_spark()
    except SparkNotRunError as reason:
        not_run(str(reason))
    with standalone(tmp_path_factory.mktemp("cluster")) as place:
        yield place


@pytest.fixture
def data_directory(tmp_path: Path) -> Path:
    """Return a data directory with two partitions, one of which is damaged and can be held."""
    for name in ("plain-0", "held-0"):
        copy_of("kafka/plain/plain-0", tmp_path / name)
    flip(next((tmp_path / "held-0").glob("*252.index")), 3)
    return tmp_path


def test_replay_by_spark_submit(cluster: Place, tmp_path: Path) -> None:
    """The program and the bundle are all that spark-submit is given, the driver has no more."""
    bundle, script = tmp_path / "segproof.zip", tmp_path / "segproof_submit.py"
    write_bundle(bundle)
    script.write_text(SCRIPT)
    python = cluster.environment["PYSPARK_PYTHON"]
    done = subprocess.run(
        [
            *(SPARK_HOME / "bin" / "spark-submit", "--master", cluster.address),
            *("--conf", f"spark.pyspark.driver.python={python}", "--conf", "spark.cores.max=1"),
            *("--py-files", bundle, script),
            *("spark", "replay", "--structure", "offset-index", "--length", "20"),
            *("--count", "40"),
        ],
        env=cluster.environment,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    # spark-submit writes all that its program writes to its own stdout.
    assert "40 histories" in done.stdout
    assert "0 findings" in done.stdout
    assert "app-" in " ".join(path.name for path in (cluster.folder / "work").iterdir())


def test_verify_while_a_worker_is_killed(cluster: Place, data_directory: Path) -> None:
    """A worker dies in the middle of a task: the other one does it, and all is found once.

    The tasks are so small that logs are cut into pieces, and partitions joined. The last test that
    needs both workers: none is started in the place of the dead one.
    """
    cluster.hold.touch()
    run = cluster.run(
        *("spark", "verify", "--master", cluster.address, str(data_directory)),
        *("--format", "jsonl", "--task-bytes", "16000"),
    )
    try:
        holder = cluster.folder / "holder"
        wait_until(lambda: run.poll() is not None or holder.exists(), "a task is held")
        wait_until(lambda: run.poll() is not None or holder.read_text(), "its process is known")
        assert run.poll() is None, run.communicate()
        cluster.kill_worker_above(int(holder.read_text()))
        cluster.hold.unlink()
        out, err = run.communicate(timeout=WAIT_SECONDS)
    finally:
        cluster.hold.unlink(missing_ok=True)
        run.kill()
    assert 1 == run.returncode, err
    found = [json.loads(line) for line in out.splitlines()]
    local = [finding.to_json() for finding in verify(data_directory)]
    assert any(finding["severity"] == "error" for finding in local)
    assert sorted(local, key=repr) == sorted(found, key=repr)


def test_the_bundle_is_found_by_the_command_line_alone(tmp_path: Path) -> None:
    """A Python that has segproof only in the zip runs it, and makes the same zip of it."""
    bundle, again = tmp_path / "segproof.zip", tmp_path / "again.zip"
    write_bundle(bundle)
    write_bundle(again)
    assert bundle.read_bytes() == again.read_bytes()
    code = f"import sys; sys.path.insert(0, {str(bundle)!r})\n{SCRIPT}"
    done = subprocess.run(
        [sys.executable, "-c", code, "spark", "bundle", "-o", str(again)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr
    assert bundle.read_bytes() == again.read_bytes()
