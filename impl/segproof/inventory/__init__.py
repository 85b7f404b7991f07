# SPDX-License-Identifier: Apache-2.0
"""What lies at a path: frozen values from one walk, and what the small files say. Nothing judges.

`verify` words these values; `ls`, `salvage` and `rebuild` act on them.
"""
