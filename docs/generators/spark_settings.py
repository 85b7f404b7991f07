# SPDX-License-Identifier: Apache-2.0
"""The page of what the checks ask of Spark, docs/reference/spark-settings.md."""

from collections.abc import Sequence

from segproof_spark.session import BY_VERB, LEFT_ALONE, SETTINGS, Setting

HEAD = """# Settings of Spark

Who should read this: everyone who runs `segproof spark` on a cluster of their own, or wonders why a
session behaves as it does. This page is generated from `segproof_spark.session`.

Every session that segproof starts has these settings, also below `spark-submit`: for these names
they take the place of `--conf` and `spark-defaults.conf`; every other setting is yours. On Spark
Connect only settings of SQL can be asked for, and the others are those of the server. A session
that was there before, as in a notebook, keeps its own.

| setting | value | what it is for |
| --- | --- | --- |
"""


VERBS = """
The verbs add these:

| setting | value | what it is for |
| --- | --- | --- |
"""
ALONE = """
These are left as Spark and your cluster have them:

| setting | why |
| --- | --- |
"""


def pages() -> dict[str, str]:
    """Return the page."""
    alone = [f"| `{one.name}` | {one.why} |\n" for one in LEFT_ALONE]
    text = "".join([HEAD, *_rows(SETTINGS), VERBS, *_rows(BY_VERB), ALONE, *alone])
    return {"reference/spark-settings.md": text}


def _rows(settings: Sequence[Setting]) -> list[str]:
    return [f"| `{one.name}` | `{one.value}` | {one.why} |\n" for one in settings]
