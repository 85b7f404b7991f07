# SPDX-License-Identifier: Apache-2.0
"""Planted defects, each a subject: they measure whether the checks can fail at all.

Every one is a known defect of a real release, or a likely one, planted into the implementation by
a subclass. A check that no canary troubles is not yet a check.

    segproof replay --structure offset-index --count 1000 \\
        --subjects model,segproof_harness.canaries.indexes:K04OffsetIndex
"""
