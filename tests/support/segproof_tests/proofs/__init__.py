# SPDX-License-Identifier: Apache-2.0
"""Proofs for input of every length: conditions made from a kernel's source, decided by z3."""
