# SPDX-License-Identifier: Apache-2.0
"""The verb `bench`: the benchmarks of a checkout, beside what a user would take instead.

The benchmarks are no part of the installed package: they compile Java and fetch jars.
"""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from segproof_harness.cli.common import refuse

CONTEXT = {"ignore_unknown_options": True, "allow_extra_args": True}


def command(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGUMENT", help="Arguments of the benchmarks; -- --help lists them."
        ),
    ] = None,
) -> None:
    """Run the benchmarks of a checkout.

    The checkout is the present directory, or the place that this package was loaded from. Each
    figure is measured beside the JVM's in the same run; without Java that column reads not run.

    \b
    Examples:
      segproof bench
      segproof bench -- --help
    """
    root = checkout()
    if root is None:
        refuse(
            "no benchmarks here: they are in the source of segproof, not in the package; run this "
            "in a checkout"
        )
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *(arguments or ())], cwd=root, check=False
    )
    if done.returncode:
        raise typer.Exit(done.returncode if done.returncode > 0 else 128 - done.returncode)


def checkout() -> Path | None:
    """Return the folder of a checkout with benchmarks, or None."""
    here = Path.cwd()
    loaded_from = Path(__file__).resolve().parents[3]
    for folder in (here, *here.parents, loaded_from):
        if (folder / "benchmarks" / "__main__.py").is_file() and (
            folder / "impl" / "segproof"
        ).is_dir():
            return folder
    return None
