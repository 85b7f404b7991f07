# SPDX-License-Identifier: Apache-2.0
"""Why a change of a kernel may be seen in its results and by no condition: what no claim says."""

GAPS: dict[str, str] = {}
"""The reason by kernel. A gap of a kernel that is not listed here fails the sweep."""
