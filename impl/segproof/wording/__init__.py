# SPDX-License-Identifier: Apache-2.0
"""How findings are worded: the rule of each law, and what takes findings. Nothing here judges."""
