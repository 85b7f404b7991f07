# SPDX-License-Identifier: Apache-2.0
"""Sessions: their settings, their masters, how many cores they have."""

import os
import tempfile
from typing import TYPE_CHECKING

import pytest

from segproof_spark import session as sessions
from segproof_spark.session import BY_VERB, LEFT_ALONE, SETTINGS, cores_of, is_connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_settings_hold_in_a_session(spark: "SparkSession") -> None:
    """Each setting is what Spark has, and says why; none depends on the machine in its text."""
    for setting in SETTINGS:
        wanted = sessions._usual_settings()[setting.name]
        assert wanted == spark.conf.get(setting.name)
        assert tempfile.gettempdir() not in setting.value
        assert os.sep + "segproof" not in setting.value
    for setting in (*SETTINGS, *BY_VERB, *LEFT_ALONE):
        assert setting.why.endswith(".")


def test_cores_of_a_local_session(spark: "SparkSession") -> None:
    """As many as the master has."""
    assert not is_connect(spark)
    assert 2 == cores_of(spark)


@pytest.mark.parametrize(
    ("master", "failures", "expected"),
    [
        ("local", "4", "local[1,4]"),
        ("local[2]", "4", "local[2,4]"),
        ("local[*]", "1", "local[*,1]"),
        ("local[2,7]", "4", "local[2,7]"),
        ("local[2]", None, "local[2]"),
        ("spark://host:7077", "4", "spark://host:7077"),
        ("local-cluster[2,1,1024]", "4", "local-cluster[2,1,1024]"),
    ],
)
def test_failures_of_local_masters(master: str, failures: str | None, expected: str) -> None:
    """Local masters know no other way to let a task fail and be run again."""
    assert expected == sessions._with_failures(master, failures)
    assert expected.startswith("local") != (master == "spark://host:7077")


def test_what_is_local() -> None:
    """Only threads of the driver are local: they need no bundle."""
    assert all(sessions._is_local(one) for one in ("local", "local[*]", "local[2,4]"))
    assert not any(sessions._is_local(one) for one in ("spark://a:1", "local-cluster[2,1,1]"))
