# SPDX-License-Identifier: Apache-2.0
"""What random histories find of a planted defect.

Used by: the tests of this folder that plant one.
"""

from segproof.findings import Finding
from segproof_harness.replay import replay_seeds


def first_finding(
    structure: str, release: str, seeds: int, length: int, *subjects: str
) -> Finding | None:
    """Return the first finding on the histories of seeds 0 to `seeds`, exclusive, if any."""
    result = replay_seeds(structure, release, range(seeds), length, subjects, findings_max=1)
    return result.findings[0] if result.findings else None
