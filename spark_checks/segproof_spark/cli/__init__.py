# SPDX-License-Identifier: Apache-2.0
"""The verbs below `segproof spark`."""

import typer

from segproof_spark.cli import bundle, lookups, replay, report, salvage_check, verify

app = typer.Typer(
    name="spark",
    help="The same checks on Spark: on all cores by default, on a cluster with --master.",
    no_args_is_help=True,
)
app.command("verify")(verify.command)
app.command("replay")(replay.command)
app.command("report")(report.command)
app.command("lookups")(lookups.command)
app.command("salvage-check")(salvage_check.command)
app.command("bundle")(bundle.command)
