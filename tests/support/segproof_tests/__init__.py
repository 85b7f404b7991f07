# SPDX-License-Identifier: Apache-2.0
"""What several tests share, and the wheel does not need."""
