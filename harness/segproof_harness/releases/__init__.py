# SPDX-License-Identifier: Apache-2.0
"""The real classes of Kafka and RocketMQ as subjects: what each release really does.

A release runs in a child process of its own, with a JVM inside. There, an adapter gives the real
class the implementation's constructor and methods, so that the same operations run on it.

| module | what it knows |
| --- | --- |
| `pinned` | which releases there are, and what their JVM needs |
| `jars` | the pinned jars: fetch, check, class path |
| `process` | the parent's side: start the child, ask it, end it when it hangs |
| `child` | the child's side: run histories on an adapter |
| `jvm` | the JVM inside the child, and what kind of error an exception is |
| `kafka`, `rocketmq` | the adapters, a module for each structure |
"""
