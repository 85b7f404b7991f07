# SPDX-License-Identifier: Apache-2.0
"""Replay and bulk lookups on Spark, on new seeds in each run."""

import pytest
from typer.testing import CliRunner

from segproof_spark.cli import app
from segproof_tests.exploring import SEED, rounds

HISTORIES = 2000
LOOKUPS = 2_000_000

pytestmark = pytest.mark.needs("pyspark", "java")


@pytest.mark.parametrize(
    "asked",
    [
        ("replay", "--total", str(HISTORIES)),
        ("lookups", "--count", str(LOOKUPS)),
    ],
    ids=lambda asked: asked[0],
)
def test_nothing_diverges(asked: tuple[str, ...]) -> None:
    """The verbs end with exit code 0."""
    for number in rounds(asked[0], 2):
        done = CliRunner().invoke(app, [*asked, "--seed", str(SEED + number)])
        assert 0 == done.exit_code, done.output
