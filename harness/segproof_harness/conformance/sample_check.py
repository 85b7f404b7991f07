# SPDX-License-Identifier: Apache-2.0
"""Whether a release really answers: its jars by digest, its JVM, one history."""

from collections.abc import Iterator
from contextlib import suppress

from segproof_harness.histories.replay import replay_seeds
from segproof_harness.releases.child_messages import reason_without
from segproof_harness.releases.jars import problem_of, wrong_jars
from segproof_harness.releases.pinned import RELEASES, Release
from segproof_harness.releases.process import OracleError, process_for
from segproof_harness.releases.readiness import readiness_of_machine
from segproof_harness.structures.structure import STRUCTURE_IDS, structure_named

LENGTH = 10
"""Operations of the one history that is run."""


def structures_served(release: Release) -> tuple[str, ...]:
    """Return the structures that the classes of a release can be asked about."""
    return tuple(
        structure_id
        for structure_id in STRUCTURE_IDS
        if release.name in structure_named(structure_id).profile_names
        and reason_without(structure_id, release) is None
    )


def problems_of(release: Release) -> Iterator[str]:
    """Yield what is wrong with a release, a sentence each; its child is started and ended."""
    absent = problem_of(release)
    wrong = [absent] if absent else list(wrong_jars(release).values())
    yield from wrong
    machine = readiness_of_machine()
    if not machine.is_ready:
        yield f"not run: {machine.why}"
    if wrong or not machine.is_ready or release.name not in RELEASES:
        return
    process = process_for(release.name)
    try:
        process.start()
        for structure_id in structures_served(release)[:1]:
            subjects = ("model", release.name)
            result = replay_seeds(structure_id, release.name, range(1), LENGTH, subjects)
            for finding in result.findings:
                yield f"{finding.message}; {finding.reproduce}"
    except OracleError as error:
        yield str(error)
    finally:
        with suppress(OSError):
            process.end()
