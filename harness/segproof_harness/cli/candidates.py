# SPDX-License-Identifier: Apache-2.0
"""The values that a shell offers for an argument, each with a word of help where it has one.

Each function takes the beginning that was typed, and imports its names when it is called: the help
of the command line needs none of them.
"""

from collections.abc import Iterable


def verified_laws(begun: str) -> list[tuple[str, str]]:
    """Return the laws that `verify` checks, in the case that was typed."""
    from segproof.verification import VERIFIED_LAWS

    return _laws(begun, VERIFIED_LAWS)


def explained(begun: str) -> list[tuple[str, str]]:
    """Return what `explain` knows: laws, releases and behaviours."""
    from segproof_harness.laws.every_law import LAWS, RETIRED
    from segproof_model.releases import BEHAVIOURS

    behaviours = [(one.__name__, "a behaviour of older releases") for one in BEHAVIOURS]
    releases = [(name, "a release") for name in profiles(begun)]
    return [*_laws(begun, [*LAWS, *RETIRED]), *releases, *behaviours]


def profiles(_begun: str) -> list[str]:
    """Return the releases that the model describes, and segproof itself."""
    from segproof_model.releases import RELEASES

    return list(RELEASES)


def kafka_profiles(begun: str) -> list[str]:
    """Return the releases of Kafka that the model describes."""
    return [name for name in profiles(begun) if name.startswith("kafka")]


def real_releases(_begun: str) -> list[str]:
    """Return the releases that `oracle` can fetch."""
    from segproof_harness.releases.pinned import PINNED

    return list(PINNED)


def structures(_begun: str) -> list[str]:
    """Return the structures that histories can be drawn of."""
    from segproof_harness.structures.structure import STRUCTURE_IDS

    return ["all", *STRUCTURE_IDS]


def _laws(begun: str, ids: Iterable[str]) -> list[tuple[str, str]]:
    from rich.markup import escape  # typer reads the help as markup

    from segproof_harness.laws.every_law import LAWS, RETIRED
    from segproof_harness.laws.law_order import order_of_law
    from segproof_model.laws.register import Law, Retired

    laws: dict[str, Law | Retired] = {**LAWS, **RETIRED}
    is_lower = begun.islower()
    return [
        (law_id.lower() if is_lower else law_id, escape(laws[law_id].sentence))
        for law_id in sorted(ids, key=order_of_law)
    ]
