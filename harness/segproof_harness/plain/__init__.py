# SPDX-License-Identifier: Apache-2.0
"""Parts that no structure of the harness holds alone, beside the older model while it is there."""
