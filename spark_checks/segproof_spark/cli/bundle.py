# SPDX-License-Identifier: Apache-2.0
"""The verb `spark bundle`: segproof as one file for `spark-submit --py-files`."""

from pathlib import Path
from typing import Annotated

import typer

from segproof_harness.cli.common import refuse, summarise


def command(
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="The zip file to write.")
    ] = Path("segproof.zip"),
    script: Annotated[
        Path | None,
        typer.Option(
            "--script", metavar="FILE", help="Also write the program that spark-submit runs."
        ),
    ] = None,
) -> None:
    """Write segproof as a zip file, for clusters whose workers have not installed it.

    Workers need its dependencies (numpy, awscrt, cramjam, xxhash, typer, rich, pyarrow, pandas;
    numba and google-crc32c make it fast), and not segproof. Give Spark the zip, not a wheel: it
    takes a wheel without a word, and its workers import nothing of it. `segproof spark --master`
    and `--remote` send this bundle by themselves.

    \b
    Example:
      segproof spark bundle -o segproof.zip --script segproof_submit.py
      spark-submit --master spark://host:7077 --py-files segproof.zip segproof_submit.py \\
          spark verify /mnt/dumps
    """
    from segproof_spark.bundle import SCRIPT, write_bundle

    if output.suffix not in (".zip", ".egg"):
        refuse(f"{output}: Spark puts only .zip and .egg on the path of its workers")
    size = write_bundle(output)
    if script is not None:
        script.write_text(SCRIPT, encoding="ascii")
    summarise(f"{output}: {size} bytes")
