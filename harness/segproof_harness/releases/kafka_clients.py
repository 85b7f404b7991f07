# SPDX-License-Identifier: Apache-2.0
"""The real clients of Kafka, driven in a child process with a JVM: admin, producer, consumer.

Each function is asked through `Clients.ask`; what it takes and returns is plain Python. All waits
have a limit of their own, so that a broker that is gone is an error.
"""

import multiprocessing
import os
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

from segproof_harness.releases.child_messages import SCRATCH_PREFIX
from segproof_harness.releases.jars import class_path
from segproof_harness.releases.pinned import BROKER, FOR_SHORT_LIVES

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

ASK_SECONDS = 120.0
API_MS = 30_000
POLL_MS = 200
DELIVERY_MS = 4_000
"""How long a producer tries to reach a broker that was killed."""
LINGER_MS = 20
CLIENTS = "org.apache.kafka.clients."
BYTES = "org.apache.kafka.common.serialization.ByteArray"

Headers = tuple[tuple[str, bytes | None], ...]


class Seen(NamedTuple):
    """A record as a consumer sees it."""

    offset: int
    timestamp: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: int | None


class Sent(NamedTuple):
    """A record that is to be sent."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Lot:
    """Records that one producer sends, in batches of at most so many bytes."""

    records: tuple[Sent, ...]
    compression: str = "none"
    transactional_id: str | None = None
    ending: str = "commit"
    """Of a transaction: `commit`, `abort`, or `open`, which leaves it to its timeout."""
    batch_bytes: int = 1000


class Clients:
    """The child with the JVM. A context manager: what is still at work when it ends is killed."""

    def __init__(self) -> None:
        jars = class_path(BROKER)
        self._libraries = tempfile.TemporaryDirectory(prefix=SCRATCH_PREFIX)
        self._pool = ProcessPoolExecutor(
            1,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_start_jvm,
            initargs=(jars, self._libraries.name),
        )
        self._child: int | None = None

    def __enter__(self) -> Self:
        self._child = self.ask(os.getpid)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A call into Java hears of no shutdown, and the child has nothing to keep.
        for child in multiprocessing.active_children():
            if child.pid == self._child:
                child.kill()
        self._pool.shutdown(cancel_futures=True)
        self._libraries.cleanup()

    def begin(
        self, what: Callable[Given, Answer], /, *args: Given.args, **kwargs: Given.kwargs
    ) -> Future[Answer]:
        """Ask for something, and go on."""
        return self._pool.submit(what, *args, **kwargs)

    def ask(
        self, what: Callable[Given, Answer], /, *args: Given.args, **kwargs: Given.kwargs
    ) -> Answer:
        """Ask for something, and return the answer. Raises: what it raises, as RuntimeError."""
        return self.begin(what, *args, **kwargs).result(ASK_SECONDS)


def _start_jvm(jars: Sequence[Path], libraries: str) -> None:
    import jpype

    jpype.startJVM(
        "-Xmx256m",
        *FOR_SHORT_LIVES,
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
        f"-Djava.io.tmpdir={libraries}",
        classpath=[os.fspath(jar) for jar in jars],
        convertStrings=True,
    )


def _java(name: str) -> Any:
    import jpype

    return jpype.JClass(name)


def _map(options: Mapping[str, str]) -> Any:
    made = _java("java.util.HashMap")()
    for name, value in options.items():
        made.put(name, value)
    return made


def _partition(topic: str) -> Any:
    import jpype

    return _java("org.apache.kafka.common.TopicPartition")(topic, jpype.JInt(0))


def _list(*items: Any) -> Any:
    made = _java("java.util.ArrayList")()
    for item in items:
        made.add(item)
    return made


def create_topics(servers: str, topics: Mapping[str, Mapping[str, str]]) -> dict[str, uuid.UUID]:
    """Create topics of one partition with these options; return their ids."""
    import jpype

    with closing(
        _java(CLIENTS + "admin.Admin").create(_map({"bootstrap.servers": servers}))
    ) as admin:
        new = []
        for name, options in topics.items():
            topic = _java(CLIENTS + "admin.NewTopic")(name, jpype.JInt(1), jpype.JShort(1))
            new.append(topic.configs(_map(options)))
        made = admin.createTopics(_list(*new))
        made.all().get()
        # Java's text of an id is url-safe base64, its two halves are what it holds.
        ids = {name: made.topicId(name).get() for name in topics}
        return {name: _uuid(topic_id) for name, topic_id in ids.items()}


def _uuid(topic_id: Any) -> uuid.UUID:
    high = int(topic_id.getMostSignificantBits()) % (1 << 64)
    low = int(topic_id.getLeastSignificantBits()) % (1 << 64)
    return uuid.UUID(int=high << 64 | low)


def _consumer(servers: str, isolation: str, **options: str) -> Any:
    return _java(CLIENTS + "consumer.KafkaConsumer")(
        _map(
            {
                "bootstrap.servers": servers,
                "isolation.level": isolation,
                "enable.auto.commit": "false",
                "auto.offset.reset": "none",
                "default.api.timeout.ms": str(API_MS),
                "key.deserializer": BYTES + "Deserializer",
                "value.deserializer": BYTES + "Deserializer",
                **options,
            }
        )
    )


def _bytes(data: Any) -> bytes | None:
    return None if data is None else bytes(data)


def _seen(record: Any) -> Seen:
    epoch = record.leaderEpoch()
    return Seen(
        int(record.offset()),
        int(record.timestamp()),
        str(record.timestampType().toString()),
        _bytes(record.key()),
        _bytes(record.value()),
        tuple((str(one.key()), _bytes(one.value())) for one in record.headers()),
        int(epoch.get()) if epoch.isPresent() else None,
    )


def _poll(consumer: Any) -> Any:
    return consumer.poll(_java("java.time.Duration").ofMillis(POLL_MS))


def end_offset(servers: str, topic: str, isolation: str = "read_uncommitted") -> int:
    """Return the end of the log; under `read_committed` the last stable offset."""
    partition = _partition(topic)
    with closing(_consumer(servers, isolation)) as consumer:
        return int(consumer.endOffsets(_list(partition)).get(partition))


def read_all(servers: str, topic: str, isolation: str = "read_uncommitted") -> list[Seen]:
    """Return every record from the beginning to the end that the isolation level allows."""
    partition = _partition(topic)
    seen: list[Seen] = []
    with closing(_consumer(servers, isolation)) as consumer:
        consumer.assign(_list(partition))
        consumer.seekToBeginning(_list(partition))
        end = int(consumer.endOffsets(_list(partition)).get(partition))
        idle = 0
        while int(consumer.position(partition)) < end:
            records = [_seen(record) for record in _poll(consumer)]
            idle = 0 if records else idle + POLL_MS
            if idle > API_MS:
                raise RuntimeError(f"nothing was read for {API_MS} ms, at {seen[-1:]} of {end}")
            seen += records
        return seen


def read_first_of_each(
    servers: str, topic: str, offsets: Sequence[int], isolation: str = "read_uncommitted"
) -> list[Seen | None]:
    """Return for each offset the first record that is read after seeking it; None at the end."""
    import jpype

    partition = _partition(topic)
    found: list[Seen | None] = []
    with closing(_consumer(servers, isolation, **{"max.poll.records": "1"})) as consumer:
        consumer.assign(_list(partition))
        end = int(consumer.endOffsets(_list(partition)).get(partition))
        for offset in offsets:
            consumer.seek(partition, jpype.JLong(offset))
            records: list[Seen] = []
            idle = 0
            while not records and int(consumer.position(partition)) < end:
                records = [_seen(record) for record in _poll(consumer)]
                idle += POLL_MS
                if idle > API_MS:
                    raise RuntimeError(f"nothing was read at offset {offset}")
            found.append(records[0] if records else None)
        return found


def offsets_for_times(
    servers: str, topic: str, timestamps: Sequence[int], isolation: str = "read_uncommitted"
) -> list[tuple[int, int] | None]:
    """Return (timestamp, offset) of the first record at or after each timestamp, or None."""
    import jpype

    partition = _partition(topic)
    found: list[tuple[int, int] | None] = []
    with closing(_consumer(servers, isolation)) as consumer:
        for timestamp in timestamps:
            asked = _java("java.util.HashMap")()
            asked.put(partition, _java("java.lang.Long").valueOf(jpype.JLong(timestamp)))
            answer = consumer.offsetsForTimes(asked).get(partition)
            found.append(
                None if answer is None else (int(answer.timestamp()), int(answer.offset()))
            )
        return found


def _producer(servers: str, lot: Lot, block_ms: int = API_MS) -> Any:
    options = {
        "bootstrap.servers": servers,
        "compression.type": lot.compression,
        "acks": "all",
        "linger.ms": str(LINGER_MS),
        "batch.size": str(lot.batch_bytes),
        "request.timeout.ms": str(DELIVERY_MS - LINGER_MS),
        "delivery.timeout.ms": str(DELIVERY_MS),
        "max.block.ms": str(block_ms),
        "key.serializer": BYTES + "Serializer",
        "value.serializer": BYTES + "Serializer",
    }
    if lot.transactional_id is not None:
        options["transactional.id"] = lot.transactional_id
        options["transaction.timeout.ms"] = "600000"
    return _java(CLIENTS + "producer.KafkaProducer")(_map(options))


def _to_send(topic: str, record: Sent) -> Any:
    import jpype

    array = jpype.JArray(jpype.JByte)

    def to_java(data: bytes | None) -> Any:
        return None if data is None else array(data)

    headers = _list(
        *(
            _java("org.apache.kafka.common.header.internals.RecordHeader")(
                jpype.JString(key), jpype.JObject(to_java(value), array)
            )
            for key, value in record.headers
        )
    )
    return _java(CLIENTS + "producer.ProducerRecord")(
        topic,
        _java("java.lang.Integer").valueOf(jpype.JInt(0)),
        _java("java.lang.Long").valueOf(jpype.JLong(record.timestamp)),
        to_java(record.key),
        to_java(record.value),
        headers,
    )


def produce(servers: str, topic: str, lots: Sequence[Lot]) -> list[list[int]]:
    """Send the lots one after the other; return the offsets of their records.

    Raises, as whatever Java raises: where one of them was not taken.
    """
    return [_produce_lot(servers, topic, lot) for lot in lots]


def _produce_lot(servers: str, topic: str, lot: Lot) -> list[int]:
    producer = _producer(servers, lot)
    try:
        if lot.transactional_id is not None:
            producer.initTransactions()
            producer.beginTransaction()
        sent = [producer.send(_to_send(topic, record)) for record in lot.records]
        producer.flush()
        offsets = [int(one.get().offset()) for one in sent]
        if lot.transactional_id is not None and lot.ending != "open":
            end = (
                producer.commitTransaction if lot.ending == "commit" else producer.abortTransaction
            )
            end()
        return offsets
    finally:
        # An open transaction is left open: an orderly close would wait for nothing else.
        producer.close(_java("java.time.Duration").ZERO)


def produce_until_it_fails(
    servers: str, topic: str, lot: Lot, at_most: int, block_ms: int = API_MS
) -> list[tuple[int, Sent]]:
    """Send the lot's records round and round; return those that were acknowledged.

    It ends with the first that was not, which is expected of a broker that is killed meanwhile, or
    after `at_most` rounds. A producer that knows no broker waits `block_ms` at a record.
    """
    import jpype

    producer = _producer(servers, lot, block_ms)
    acknowledged: list[tuple[int, Sent]] = []
    try:
        for _ in range(at_most):
            sent = []
            for one in lot.records:
                sent.append((producer.send(_to_send(topic, one)), one))
                if sent[-1][0].isDone():
                    break  # Refused: the producer would wait as long at each record that follows.
            for future, record in sent:
                acknowledged.append((int(future.get().offset()), record))
        return acknowledged
    except jpype.JException:
        return acknowledged
    finally:
        producer.close(_java("java.time.Duration").ZERO)
