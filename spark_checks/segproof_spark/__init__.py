# SPDX-License-Identifier: Apache-2.0
"""Spark checks: the same replays and the same verifier, on as many cores as Spark has."""
