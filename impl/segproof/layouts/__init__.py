# SPDX-License-Identifier: Apache-2.0
"""The formats of both systems as tables of fields: the one place that says where a field is.

Readers, writers, tables, the byte view of a report and the pages of the formats are made of these
tables. The model and its laws have descriptions of their own, and a test compares the two.
"""
