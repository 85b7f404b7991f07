# SPDX-License-Identifier: Apache-2.0
"""The options of the verb `dump`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from segproof_harness.cli.common import Format
from segproof_harness.reports.bytes_as_text import BytesAs, Encoders, encoder

if TYPE_CHECKING:
    from segproof_model.language.behaviours import Release

PathArgument = Annotated[
    Path,
    typer.Argument(
        metavar="PATH",
        help="A .log, .index, .timeindex, .txnindex or .snapshot file, a checkpoint or "
        "partition.metadata, or a directory of them; a RocketMQ index file, commit-log or "
        "consume-queue file, checkpoint, or a store.",
    ),
]
RecordsOption = Annotated[
    bool, typer.Option("--records", help="Show the records of each batch of a log too.")
]
KeysOption = Annotated[
    BytesAs | None,
    typer.Option(
        "--keys", help="How --records shows keys: as --values. Default: as --values has it."
    ),
]
ValuesOption = Annotated[
    BytesAs | None,
    typer.Option(
        "--values",
        help="How --records shows values, header values and bodies. auto: text if it is UTF-8 "
        "and printable, else 0x and hexadecimal digits; text: UTF-8, other bytes as \\xNN; "
        "json: what is JSON as that, the rest as auto. Default: auto, with jsonl base64.",
    ),
]
LimitOption = Annotated[
    int | None,
    typer.Option(
        "--limit-bytes",
        min=1,
        help="Largest record and batch that --records shows, in bytes, a batch also inflated. "
        "Default: 8 MiB for a record, for a batch as in verify --deep; with --profile 3 MiB "
        "for either.",
    ),
]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is shown, and how."""

    release: "Release | None"
    records: bool
    limit: int | None
    hash_slots: int | None
    output_format: Format
    encoders: Encoders


def encoders_of(keys: BytesAs | None, values: BytesAs | None, output_format: Format) -> Encoders:
    """Return how bytes are shown."""
    is_text = output_format is Format.TEXT
    usual = BytesAs.AUTO if is_text else BytesAs.BASE64
    keys, values = keys or usual, values or usual
    return Encoders(encoder(keys, quoted=is_text), encoder(values, quoted=is_text), encoder(values))
