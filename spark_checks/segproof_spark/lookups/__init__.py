# SPDX-License-Identifier: Apache-2.0
"""Do bulk lookups, and single ones, answer as the definition does, for very many targets?

The definition is a table of ranges: from a key up to the next one, every target has one answer.
Targets are made from the ranges, so the right answer is known without a search. A sample of the
targets is asked of the model too.

`structures` is the table of what is asked, and does one unit of work; `kafka_indexes`,
`rocketmq_keys` and `kafka_logs` draw such files, or read real ones, and ask them. `real_files`
finds real ones, `job` gives units to Spark.
"""
