# SPDX-License-Identifier: Apache-2.0
"""The verbs below `segproof oracle`: fetch the real releases, list them, ask them."""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from segproof.counts import plural
from segproof_harness.cli import oracle_distinguish, oracle_run
from segproof_harness.cli.common import (
    EXIT_FINDINGS,
    Format,
    FormatOption,
    complain,
    progress,
    refuse,
    summarise,
    write_line,
    write_prose,
    write_row,
)
from segproof_harness.cli.releases import ReleasesArgument
from segproof_harness.cli.releases import chosen as chosen_releases
from segproof_harness.reports.text import reason_of

if TYPE_CHECKING:
    from segproof_harness.releases.pinned import Release

MIB = 1 << 20
REMEDY = "run: `segproof oracle fetch`"
OFFLINE_ADVICE = "\nwithout --offline, Maven downloads what it lacks"

app = typer.Typer(
    name="oracle",
    help="The real releases of Kafka and RocketMQ: list, fetch, check, and run them.",
    no_args_is_help=True,
)


@app.command("list")
def list_releases(output_format: FormatOption = Format.TEXT) -> None:
    """List the real releases, and say why a release can't be asked.

    The state of a release is ready, not run (with what this machine lacks) or not fetched. This
    verb starts no JVM: segproof oracle check does that.

    \b
    Examples:
      segproof oracle list
      segproof oracle list --format jsonl
    """
    from segproof_harness.releases.pinned import PINNED
    from segproof_harness.releases.readiness import readiness, readiness_of_machine

    releases, ready = list(PINNED.values()), 0
    _write_heading(output_format)
    for release in releases:
        found = readiness(release)
        ready += found.is_ready
        _write_release(release, found.state, output_format, remedy=found.remedy)
    _summarise(ready, releases)
    if ready < len(releases):
        summarise(f"remedy: {readiness_of_machine().remedy or REMEDY}")


@app.command("fetch")
def fetch_releases(
    releases: ReleasesArgument = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Take jars from Maven's local repository alone.")
    ] = False,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Fetch the pinned jars of real releases.

    Maven fetches them, with your settings, mirrors and proxies. The SHA-256 of each jar is compared
    with the lock that ships with segproof; a wrong jar is named and refused. A jar that is there
    and right is not fetched again. Jars go to the folder that SEGPROOF_ORACLE_JARS names, in the
    layout of a Maven repository, or to the user's cache; all need 0.7 GB.

    \b
    Examples:
      segproof oracle fetch
      segproof oracle fetch kafka-4.4.0 rocketmq-5.5.1
      segproof oracle fetch --offline
    """
    from segproof_harness.releases.jars import jar_folder, problem_of
    from segproof_harness.releases.maven import MavenError, fetch
    from segproof_harness.releases.pinned import PINNED

    chosen, started = chosen_releases(releases, PINNED), time.monotonic()
    try:
        with progress("fetch", unit="releases") as show:
            done = fetch(chosen, offline=offline, show=show)
    except MavenError as error:
        _refuse(f"{error}{OFFLINE_ADVICE if offline else ''}")
    except OSError as error:
        refuse(f"{reason_of(error)}; SEGPROOF_ORACLE_JARS names another folder")
    for sentence in done.wrong:
        complain(sentence)
    _write_heading(output_format)
    complete = 0
    for release in chosen:
        problem = problem_of(release)
        complete += problem is None
        state = "fetched" if problem is None else f"not fetched: {problem}"
        _write_release(release, state, output_format)
    summarise(
        f"{complete} of {plural(len(chosen), 'release')} complete in {jar_folder()}; fetched now: "
        f"{plural(done.jars, 'jar')}, {done.size_bytes / MIB:.0f} MiB, "
        f"in {time.monotonic() - started:.0f} s"
    )
    if done.wrong:
        raise typer.Exit(EXIT_FINDINGS)


@app.command("check")
def check_releases(
    releases: ReleasesArgument = None, output_format: FormatOption = Format.TEXT
) -> None:
    """Check that real releases answer: every jar by its SHA-256, the JVM, one short history.

    Exit code 1 if any of them is not ready.

    \b
    Examples:
      segproof oracle check
      segproof oracle check kafka-4.4.0
    """
    from segproof_harness.conformance.sample_check import problems_of
    from segproof_harness.releases.jars import problem_of
    from segproof_harness.releases.pinned import PINNED

    chosen, ready = chosen_releases(releases, PINNED), 0
    _write_heading(output_format)
    with progress("check", unit="releases") as show:
        for done, release in enumerate(chosen, 1):
            problems = list(problems_of(release))
            ready += not problems
            absent = problem_of(release)
            broken = f"not fetched: {absent}" if absent else "broken"
            state = broken if problems else "ready"
            if output_format is Format.JSONL:
                _write_release(release, state, output_format, problems=problems)
            else:
                _write_release(release, state, output_format)
                for problem in problems if absent is None else ():
                    write_prose(f"  error: {release.name}: {problem}", indent=4)
            show(done, len(chosen))
    _summarise(ready, chosen)
    if any(map(problem_of, chosen)):
        summarise(f"remedy: {REMEDY}")
    if ready < len(chosen):
        raise typer.Exit(EXIT_FINDINGS)


@app.command("releases")
def published_releases(output_format: FormatOption = Format.TEXT) -> None:
    """Ask Maven which releases are published that are newer than those known here.

    One line shows the newest release of each line of releases, if the known ones are older. Newer
    lines without a known release are shown too. The documentation tells how to add a release.

    \b
    Examples:
      segproof oracle releases
      segproof oracle releases --format jsonl
    """
    from segproof_harness.releases.maven import MavenError, published
    from segproof_harness.releases.pinned import RELEASES, unserved

    try:
        versions = published(RELEASES.values())
    except MavenError as error:
        _refuse(f"oracle releases: not run: {error}")
    count = 0
    for system in ("kafka", "rocketmq"):
        for version, known in unserved(system, versions.get(system, ())).items():
            count += 1
            row = {"release": f"{system}-{version}", "known": known and f"{system}-{known}"}
            if output_format is Format.JSONL:
                write_row(row, output_format)
            else:
                said = f"newer than {row['known']}" if known else "none of its line is known"
                typer.echo(f"{row['release']:18} {said}")
    summarise(f"{plural(count, 'release')} not known")


app.command("run")(oracle_run.command)
app.command("distinguish")(oracle_distinguish.command)


def _refuse(text: str) -> NoReturn:
    """Complain in several lines, and end."""
    *lines, last = text.splitlines()
    for line in lines:
        complain(line)
    refuse(last)


def _write_heading(output_format: Format) -> None:
    if output_format is Format.TEXT:
        write_line(f"{'release':18} {'jars':>4} {'MiB':>5}  state")


def _write_release(
    release: "Release", state: str, output_format: Format, **more: str | list[str] | None
) -> None:
    from segproof_harness.releases.jars import pinned_jars

    jars = pinned_jars(release)
    size = sum(jar.size_bytes for jar in jars)
    if output_format is Format.JSONL:
        row = {"release": release.name, "jars": len(jars), "size_bytes": size, "state": state}
        write_row({**row, **more}, output_format)
    else:
        told = state.partition(" are not in ")[0]  # the closing line has the folder
        write_line(f"{release.name:18} {len(jars):4} {size / MIB:5.0f}  {told}")


def _summarise(ready: int, releases: "Sequence[Release]") -> None:
    from segproof_harness.releases.jars import jar_folder

    summarise(f"{ready} of {plural(len(releases), 'release')} ready; jars: {jar_folder()}")
