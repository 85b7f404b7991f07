# SPDX-License-Identifier: Apache-2.0
"""The register of laws with every law in it, and references to laws, for pages."""

from segproof_harness.laws.every_law import LAWS, RETIRED

__all__ = ["LAWS", "RETIRED", "is_known", "law_link", "law_links"]


def is_known(law_id: str) -> bool:
    """Return whether a page states the law, be it judged or retired."""
    return law_id in LAWS or law_id in RETIRED


def law_link(law_id: str) -> str:
    """Return a reference to a law; one that no page states is plain."""
    return f"{{law}}`{law_id}`" if is_known(law_id) else f"`{law_id}`"


def law_links(law_ids: tuple[str, ...]) -> str:
    """Return references to laws."""
    return ", ".join(map(law_link, law_ids))
