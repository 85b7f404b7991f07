# SPDX-License-Identifier: Apache-2.0
"""The pages docs/reference/tables.md and docs/reference/spark-data-source.md, from the tables."""

from segproof.tables.schemas import OPTIONS, TABLES, Option, Table

TABLES_OPENING = """\
# Tables

Who should read this: everyone who reads real files as tables: with
[`segproof.scan`](api/segproof.tables.scan.scan.md) into pandas, polars or DuckDB, or with the
[Spark data source](spark-data-source.md). Both have these tables. The types are those of SQL; in
Arrow a `bigint` is an `int64`. Every column may be null. A column that `segproof dump` has too has
the same name and value there; `dump` shows bytes as text, and here they are bytes.

A read gives all rows of a table, or ends with an error: at a wrong checksum, and where a file
cannot be read on. The option `on_damage` says otherwise: `fail` is the default, `skip` leaves out
what is damaged and says so, `keep` has the rows of a wrong checksum, with `crc_valid` false.
[Damage](spark-data-source.md#damage) has the details. A read that goes on adds the column
`crc_valid` with `keep`, if it was not asked for, and on Spark the column `damage`.

What no checksum covers is shown as it is: base offset and leader epoch of a batch, and the header
of a message of RocketMQ. Offsets of a log that go back, or reach into the next log, are damage all
the same ({law}`DISK-13`, {law}`LOG-4`): with `skip` and `keep` these rows are there, and told.

"""
OPENING = """\
# Spark data source

Who should read this: everyone who asks real files questions with Spark: in SQL, in Python, on
a laptop or on a cluster. It needs `pip install 'segproof[spark]'` and Java 17 or newer.

```python
from segproof_spark.data_source import register
from segproof_spark.session import start_session

spark = start_session()
register(spark)
batches = spark.read.format("segproof").option("table", "batches").load("/var/lib/kafka/data")
batches.groupBy("compression").count().show()
```

The [tables](tables.md) are those of `segproof.scan`, which needs no Spark. `load` takes files,
partition directories, whole data directories, stores of RocketMQ, globs of them, and URLs of object
stores, one or several. Files are opened read-only. A session of your own does as well: `register`
changes none of its settings. In SQL:

```sql
create temporary view entries using segproof
options (table 'index_entries', path '/var/lib/kafka/data/orders-*');
select directory, count(*) from entries group by directory;
```

Scripts to begin with are in `spark_checks/examples/`: the largest gaps between offsets,
timestamps that go back, sizes of batches, how dense the indexes are, index entries that lead
nowhere, and batches that a producer has in a log twice. `spark-submit` runs them as they are.

## What is read

In directories: the files that a broker would read, in partitions that do not wait for their
removal, and [copies of segments of tiered storage](../howto/read-tiered-storage.md). A file that is
named itself is read under any name that `segproof dump` takes (`.deleted`, `.swap`, not 20 digits).
The rows of one file come in its order, in one task; a task has several small files. Rows are made
from arrays, thousands at a time, and memory stays the same whatever the size of a file.

## Damage

A job gives all rows, or ends with an error that names the file and the byte: at a wrong checksum,
at bytes that are no whole batch or entry, at a batch above `limit_bytes`, at a file or folder that
cannot be read. That is `on_damage=fail`, the default here, in `segproof.scan` and in
`segproof dump`. The two other values go on:

| `on_damage` | a batch with a wrong checksum | what cannot be read |
| --- | --- | --- |
| `fail` | ends the job | ends the job |
| `skip` | its rows are left out, and told | is left out, and told |
| `keep` | its rows are there, `crc_valid` is false | is left out, and told |

A read that goes on has a column `damage` more, whatever `columns` names; with `keep` also
`crc_valid`. In ordinary rows `damage` is null. For each place where rows are left out there is one
row with the file and the reason; its other columns are null. So look at
`.where("damage is not null")` first: a filter on another column drops these rows. A schema of your
own must have these columns. In `segments` no row is left out, and its own column `damage` has the
reason. In Python `segproof.scan` gives one `RowsLeftOutWarning` for each such file instead.

A damaged batch costs its own rows; where no next batch can be told, the rest of the file. The
checksum of a batch of magic 2 does not cover its base offset and its leader epoch. Index files have
no checksum: what is told there is an entry that is cut, and `findings` compares them with the log.
A broker that is writing may leave an unfinished batch at the end of its last segment, which is told
in the same way; so is a `.swap` file, which a starting broker would put in the place of others.

A log that ends with a whole batch, or before zeros, may have lost its end. That is told if a file
beside it shows it: entries of its indexes, an index without a log, a producer snapshot, a leader
epoch, a checkpoint of the data directory, or a next log that begins at a later offset while no
compaction can have taken the offsets between. A follower that has just cut its log leaves such
entries too, until it goes on. A log whose name no broker reads (`252.log`, `OFFSET.log.bak`) is
told if it has batches that no other log there has; a copy is passed over.

So is a log that has lost batches before its end, if its indexes prove it ({law}`DISK-70`). Gaps
that a compaction left prove nothing. And a log whose offsets go back ({law}`DISK-13`) or reach into
the next log ({law}`LOG-4`), as where a block of another topic lies in it: its rows are there twice,
or are not of this topic. A read that goes on has all of them.

## Choosing rows and columns

Spark reads every column of a Python data source, whatever the query asks for. So name them:
`.option("columns", "offset,timestamp")`, or `.schema("offset bigint, timestamp bigint")`. Keys,
values and headers are then not taken out of their batches, and lengths of files alone open none.

`.option("where", "offset >= 1000 and path like '%orders-3%'")` chooses rows where they are read.
A condition is a column of integers and a number with `=`, `<`, `<=`, `>`, `>=`, a text and a text
with `=` or `like`, whose `%` stands at its beginning or end, or a flag with `= true` or `= false`.
What cannot have such a row is left out:

- by `path`, `directory` and `segment_base_offset`: files;
- by `base_offset`, `last_offset` and `offset` of a log: segments, where their names and the first
  batch of each log agree: an offset lies in the segment with the greatest first offset that is not
  above it. If they do not rise together, every segment is read. A batch that is read and does not
  lie so is damage.
  Reading begins where the offset index says if there is a batch with a right checksum that begins
  at or below the least offset; else, and with `on_damage=fail`, at the beginning. In a log whose
  offsets go back, rows that lie before that place are left out, although they fit;
- by `offset` and `timestamp` of `records`: batches whose header says so under a right checksum;
  they are not decoded;
- by `timestamp` and `max_timestamp` of a log, with `trust_time_index=true`: closed segments by
  the last entry of their time index. One that lost its end leaves out too much, and nothing in
  these tables would show it.

A query's own filters (`.filter(...)`, `where` in SQL) are evaluated by Spark on all rows that are
read. With `push_filters=true` and Spark's setting `spark.sql.python.filterPushdown.enabled=true`
(from 4.1 on) they leave out files as the option `where` does. **Spark
(seen in 4.3.0) then keeps what the first query of a DataFrame left and reads no more than that
for every later query on the same DataFrame, and for the other side of a join or union with
itself, without a word.** So call `load` again for each filter, or use the option `where`, which is
part of the DataFrame.

## Options

| option | value | default | meaning |
| --- | --- | --- | --- |
"""


def pages() -> dict[str, str]:
    """Return the page by path."""
    options = "\n".join(map(_option, OPTIONS))
    tables = "\n".join(map(_table, TABLES.values()))
    text = f"{OPENING}{options}\n\nAny other option is refused.\n"
    return {
        "reference/spark-data-source.md": text,
        "reference/tables.md": f"{TABLES_OPENING}{tables}",
    }


def _option(option: Option) -> str:
    only = f" (only {', '.join(f'`{name}`' for name in option.tables)})"
    is_general = not option.tables or len(option.tables) == len(TABLES) - 1
    meaning = option.meaning + (" (not `findings`)" if option.tables else "") * is_general
    return (
        f"| `{option.name}` | {option.values} | {option.default}"
        f" | {meaning}{'' if is_general else only} |"
    )


def _table(table: Table) -> str:
    rows = "\n".join(
        f"| `{column.name}` | `{column.kind}` | {column.meaning} |" for column in table.columns
    )
    return (
        f"## Table {table.name}\n\n{table.row}\n\n"
        f"| column | type | meaning |\n| --- | --- | --- |\n{rows}\n"
    )
