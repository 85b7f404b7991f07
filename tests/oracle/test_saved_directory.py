# SPDX-License-Identifier: Apache-2.0
"""A whole data directory that was saved comes back to a real broker, by the steps of the page."""

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from segproof_harness import cli
from segproof_harness.releases import kafka_clients
from segproof_harness.releases.broker import Broker, BrokerError
from segproof_harness.releases.kafka_clients import Clients
from segproof_harness.releases.written_logs import TOPICS, write_logs

pytestmark = pytest.mark.needs("java", "jpype")

METADATA = "__cluster_metadata-0"


def test_a_saved_directory_serves_every_record_again(
    broker: Broker, clients: Clients, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With its identity and the log of the cluster's metadata; without them it does not start."""
    broker.start()
    ids = clients.ask(kafka_clients.create_topics, broker.servers, TOPICS)
    broker.stop()
    for name in TOPICS:
        shutil.rmtree(broker.partition(name))
    expected = write_logs(broker.data, ids)
    old = tmp_path / "old"
    shutil.move(broker.data, old)
    assert cli.run(["salvage", str(old), "--out", str(tmp_path / "new")]) in (0, 1)
    (command,) = re.findall(r"`(cp -a .+)`", capsys.readouterr().err)
    shutil.move(tmp_path / "new", broker.data)
    with pytest.raises(BrokerError, match=r"No readable meta\.properties"):
        broker.start()
    os.rename(broker.data, tmp_path / "new")
    assert shlex.split(command)[2:] == [str(old / "meta.properties"), str(tmp_path / "new")]
    subprocess.run(["bash", "-c", command], check=True)
    shutil.copytree(old / METADATA, tmp_path / "new" / METADATA)
    shutil.rmtree(broker.data, ignore_errors=True)
    shutil.move(tmp_path / "new", broker.data)
    broker.start()
    assert not list(broker.data.glob("*-stray"))
    for name, one in expected.items():
        assert one.seen == clients.ask(kafka_clients.read_all, broker.servers, name)
