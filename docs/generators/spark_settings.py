# SPDX-License-Identifier: Apache-2.0
"""The page of what the checks ask of Spark, docs/reference/spark-settings.md.

Used by: docs/generate.py.
"""

from segproof_spark.session import SETTINGS

HEAD = """# Settings of Spark

Who should read this: whoever runs `segproof spark` on a cluster of their own, or wonders why a
session behaves as it does. This page is generated from `segproof_spark.session`.

Every session that segproof starts has these settings. With `spark-submit` your own `--conf` and
`spark-defaults.conf` come first where Spark allows it; on Spark Connect only settings of SQL can be
asked for, and the others are those of the server.

| setting | value | what it is for |
| --- | --- | --- |
"""


def pages() -> dict[str, str]:
    """Return the page."""
    rows = [f"| `{one.name}` | `{one.value}` | {one.why} |" for one in SETTINGS]
    return {"reference/spark-settings.md": HEAD + "\n".join(rows) + "\n"}
