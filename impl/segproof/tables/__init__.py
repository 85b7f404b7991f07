# SPDX-License-Identifier: Apache-2.0
"""What real files hold, as tables of Arrow: a module for each table, and `scan` to read them."""
