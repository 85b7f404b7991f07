# SPDX-License-Identifier: Apache-2.0
"""The tables of the data source `segproof`, a module for each."""
