# SPDX-License-Identifier: Apache-2.0
"""What every subject can do."""

from collections.abc import Mapping
from typing import Protocol

from segproof_harness.structures.operations import Operation
from segproof_harness.structures.outcomes import Outcome
from segproof_harness.structures.steps import Setup

OPENED = Outcome("opened")
"""The outcome of an opening that succeeded."""


class Subject(Protocol):
    """Something that executes operations on one structure."""

    name: str
    """What the subject is called on the command line."""
    profile_name: str
    """The profile of the model that it is to equal."""

    def start(self, setup: Setup) -> Outcome:
        """Begin anew: an own directory with the setup's files, and the first opening.

        A subject can be started as often as one likes.
        """

    def apply(self, operation: Operation) -> Outcome:
        """Execute one operation; never raises for what the structure does.

        `reopen` closes and opens again, `crash_reopen` forgets the object and opens the file as it
        is left. Where nothing is open, every other operation is `not-open`.
        """

    def observe(self) -> Mapping[str, Outcome]:
        """Return the accessors of the open object, by name; none where nothing is open."""

    def image(self) -> Mapping[str, bytes]:
        """Return the bytes of each file in the subject's directory, by name."""

    def describe(self) -> str:
        """Return what the subject is, for people."""

    def stop(self) -> None:
        """Give back what the subject holds (files, processes)."""
