# SPDX-License-Identifier: Apache-2.0
"""Bulk lookups: what indexes and logs answer, compared with the definition swept in order.

The expected side holds no search. Each answer of an index is right for one range of targets, from
its key up to the next key; targets are made from the ranges, so what they must find is known before
anybody looks. A sample of them is asked of the model too, so that the sweep says what the model
says.

`sweeps` makes the targets; `indexes` (with `index_images`), `key_indexes` and `logs` (with
`log_images`) compare one index or log; `units` names the work and does it; `real_files` finds real
ones and does them (with `real_logs`, `real_keys` and `read_only`); `running` gives it to Spark.
"""
