# SPDX-License-Identifier: Apache-2.0
"""Making the index files of a partition new from its logs; see running.py."""
