# SPDX-License-Identifier: Apache-2.0
"""Runs the real message store of one RocketMQ release; asked and answering in lines of JSON.

Started as `python store_driver.py RELEASE STORE CONFIG`, where CONFIG are options of the broker by
their names. Each line of standard input is one question, `{"do": NAME, ...}`; each is answered by
one line, for which the descriptor of standard output is kept: what the JVM prints goes to standard
error. The store opens no port: its service for replicas is replaced, or listens on loopback only.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from segproof_harness.releases.jars import class_path, extra_folders
from segproof_harness.releases.jpype_alone import jpype
from segproof_harness.releases.jvm import Jvm
from segproof_harness.releases.pinned import release_named
from segproof_harness.releases.rocketmq.idle_store import new_store
from segproof_harness.releases.rocketmq.loopback import stay_on_loopback

DISPATCH_SECONDS = 60.0
PAUSE_SECONDS = 0.0005
HOST, PORT = "127.0.0.1", 10911
QUIET_DISK = ("diskSpaceWarningLevelRatio", "diskSpaceCleanForciblyRatio")
"""A disk that is nearly full is no reason to remove files: tests run on such disks too."""


class Store:
    """One store of one release, loaded once."""

    def __init__(self, name: str, path: str, config: Mapping[str, Any]) -> None:
        release = release_named(name)
        self.jvm = Jvm(release, class_path(release), extra_folders(release))
        self.path = path
        self.store = self._made(config)

    def _made(self, options: Mapping[str, Any]) -> Any:
        system = self.jvm.java("java.lang.System")
        for name in QUIET_DISK:
            system.setProperty(f"rocketmq.broker.{name}", "0.99")
        config = self.jvm.java("org.apache.rocketmq.store.config.MessageStoreConfig")()
        config.setStorePathRootDir(self.path)
        config.setStorePathCommitLog(os.path.join(self.path, "commitlog"))
        config.setDiskMaxUsedSpaceRatio(95)
        for name, value in options.items():
            given = value if isinstance(value, bool) else jpype.JInt(value)
            setter = f"set{name[0].upper()}{name[1:]}"
            old = setter.replace("Mapped", "Maped")  # so up to 4.3.2
            (getattr(config, setter, None) or getattr(config, old))(given)
        return new_store(self.jvm, config)

    # --- what can be asked

    def load(self) -> bool:
        """Load; start it where that succeeded; wait for what it dispatches; say if it loaded."""
        if not bool(self.store.load()):
            return False
        stay_on_loopback(self.jvm, self.store)
        self.store.start()
        self.dispatched()
        return True

    def dispatched(self) -> None:
        """Wait until queues and index have all messages. Raises: TimeoutError."""
        end = time.monotonic() + DISPATCH_SECONDS
        while int(self.store.dispatchBehindBytes()) > 0:
            if time.monotonic() > end:
                raise TimeoutError(f"not dispatched after {DISPATCH_SECONDS} s")
            time.sleep(PAUSE_SECONDS)

    def put(self, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, int]]:
        """Put messages, each dispatched before the next one; say where each lies."""
        return [self._put(message) for message in messages]

    def _put(self, message: Mapping[str, Any]) -> dict[str, int]:
        result = self.store.putMessage(self._message(message))
        if str(result.getPutMessageStatus()) != "PUT_OK":
            raise RuntimeError(f"not put: {result.getPutMessageStatus()}")
        self.dispatched()
        self._leave_names_apart()
        where = result.getAppendMessageResult()
        return {
            "phy_offset": int(where.getWroteOffset()),
            "queue_offset": int(where.getLogicsOffset()),
            "store_timestamp": int(where.getStoreTimestamp()),
        }

    def _message(self, message: Mapping[str, Any]) -> Any:
        made = self.jvm.first(
            "org.apache.rocketmq.common.message.MessageExtBrokerInner",
            "org.apache.rocketmq.store.MessageExtBrokerInner",
        )()
        host = self.jvm.java("java.net.InetSocketAddress")(HOST, jpype.JInt(PORT))
        made.setTopic(message["topic"])
        made.setQueueId(jpype.JInt(message["queue_id"]))
        made.setBody(self.jvm.to_bytes(message["body"].encode()))
        made.setBornTimestamp(jpype.JLong(message.get("born_timestamp", 1)))
        made.setBornHost(host)
        made.setStoreHost(host)
        accessor = self.jvm.java("org.apache.rocketmq.common.message.MessageAccessor")
        accessor.setProperties(made, self.jvm.java("java.util.HashMap")())
        for name, value in message["properties"].items():
            accessor.putProperty(made, name, value)
        decoder = self.jvm.java("org.apache.rocketmq.common.message.MessageDecoder")
        made.setPropertiesString(decoder.messageProperties2String(made.getProperties()))
        return made

    def _leave_names_apart(self) -> None:
        """Wait for the second millisecond after the newest index file: names are times."""
        service = self.jvm.field(self.store, "indexService")
        files = self.jvm.field(service, "indexFileList")
        if not files.size():
            return
        newest = Path(str(files.get(files.size() - 1).getFileName())).name
        while _name_now() <= newest:
            time.sleep(PAUSE_SECONDS)

    def put_on(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Put these again and again, saying each; only a signal ends it."""
        while True:
            for message in messages:
                answer(self._put(message))

    def query(self, questions: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        """Ask the index: topic, key, number at most, begin, end, and a type for 5.4.0 on."""
        service = self.jvm.field(self.store, "indexService")
        answers = []
        for topic, key, max_num, begin, end, *kind in questions:
            found = service.queryOffset(
                topic, key, jpype.JInt(max_num), jpype.JLong(begin), jpype.JLong(end), *kind
            )
            answers.append({
                "phy_offsets": [int(each) for each in found.getPhyOffsets()],
                "last_update": [
                    int(found.getIndexLastUpdateTimestamp()),
                    int(found.getIndexLastUpdatePhyoffset()),
                ],
            })  # fmt: skip
        return answers

    def query_messages(self, questions: Sequence[Sequence[Any]]) -> list[list[int]]:
        """Ask the store for messages by key; answer their places in the log."""
        found = []
        for topic, key, max_num, begin, end in questions:
            result = self.store.queryMessage(
                topic, key, jpype.JInt(max_num), jpype.JLong(begin), jpype.JLong(end)
            )
            found.append([_place(each) for each in result.getMessageBufferList()])
            result.release()
        return found

    def consume(self, topic: str, queue_id: int, count: int) -> list[dict[str, int]]:
        """Read a queue from its begin as a consumer does; say what each place leads to."""
        found: list[dict[str, int]] = []
        while len(found) < count:
            result = self.store.getMessage(
                "group", topic, jpype.JInt(queue_id), jpype.JLong(len(found)), jpype.JInt(32), None
            )
            if result is None or not result.getMessageBufferList().size():
                break
            for each in result.getMessageBufferList():
                found.append({"phy_offset": _place(each), "queue_offset": int(each.getLong(20))})
            result.release()
        return found

    def consume_from(self, topic: str, queue_id: int, number: int) -> list[dict[str, int]]:
        """Read a queue from a number on to its end, each pull where the last one says."""
        found: list[dict[str, int]] = []
        while True:
            result = self.store.getMessage(
                "group", topic, jpype.JInt(queue_id), jpype.JLong(number), jpype.JInt(32), None
            )
            for each in result.getMessageBufferList():
                found.append({"phy_offset": _place(each), "queue_offset": int(each.getLong(20))})
            following = int(result.getNextBeginOffset())
            result.release()
            if following <= number:
                return found
            number = following

    def max_offset(self) -> int:
        """Return where the log ends."""
        return int(self.store.getMaxPhyOffset())

    def ports(self) -> list[str]:
        """Return the addresses that this process listens on, as Linux tells them."""
        inodes = set()
        for link in Path("/proc/self/fd").iterdir():
            try:
                target = os.readlink(link)
            except OSError:
                continue
            if target.startswith("socket:["):
                inodes.add(target[8:-1])
        rows = [
            line.split()
            for table in ("tcp", "tcp6")
            for line in Path("/proc/self/net", table).read_text("ascii").splitlines()[1:]
        ]
        return [row[1] for row in rows if row[3] == "0A" and row[9] in inodes]

    def stop(self) -> None:
        """Shut the store down as a broker does."""
        self.store.shutdown()


def _place(buffer: Any) -> int:
    """Return the field of a record that says where it lies in the log."""
    return int(buffer.getLong(28))


def _name_now() -> str:
    """Return what an index file would be called now, with a millisecond's distance."""
    now = time.time_ns() // 1_000_000 - 1
    seconds = time.strftime("%Y%m%d%H%M%S", time.gmtime(now // 1000))
    return f"{seconds}{now % 1000:03d}"


def answer(value: Any) -> None:
    """Write one line."""
    answers.write(json.dumps(value) + "\n")
    answers.flush()


def serve(store: Store) -> None:
    """Answer until the questions end, or after `stop`."""
    for line in sys.stdin:
        question = json.loads(line)
        name = question.pop("do")
        answer({"answer": getattr(store, name)(**question)})
        if name == "stop":
            return


def main() -> None:
    """Make the store, say so, and serve; the JVM's threads are not waited for."""
    try:
        store = Store(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
        answer({"answer": "made"})
        serve(store)
    except BaseException:
        answer({"failed": traceback.format_exc()})
    os._exit(0)


if __name__ == "__main__":
    answers: TextIO = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    main()
