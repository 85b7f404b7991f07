# SPDX-License-Identifier: Apache-2.0
"""Names of a store's files: they lie in folders, and a name holds them."""

__all__ = ["path_in"]


def path_in(store_path: str, *parts: str) -> str:
    """Return the name of a file of a store.

    >>> path_in("", "checkpoint"), path_in("store", "index", "1")
    ('checkpoint', 'store/index/1')
    """
    return "/".join(part for part in (store_path, *parts) if part)
