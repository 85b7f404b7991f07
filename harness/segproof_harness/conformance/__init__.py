# SPDX-License-Identifier: Apache-2.0
"""Model and implementation held against real releases: recorded answers, live classes, the demo."""
