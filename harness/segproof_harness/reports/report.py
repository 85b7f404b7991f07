# SPDX-License-Identifier: Apache-2.0
"""What writes the results of `verify` in one format: findings come in, then the summary of each."""

from typing import Protocol

from segproof.findings import Finding, Summary


class Report(Protocol):
    """One format of the results."""

    def finding(self, finding: Finding) -> None:
        """Take the next finding."""

    def summary(self, summary: Summary) -> None:
        """Take the summary of what the findings since the last summary are about."""

    def end(self) -> None:
        """Write the rest. Findings without a summary may have come last."""
