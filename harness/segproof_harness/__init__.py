# SPDX-License-Identifier: Apache-2.0
"""The conformance kit: holds model, implementation and others' code against each other."""
