# SPDX-License-Identifier: Apache-2.0
"""A message store that is started opens no port to the world.

Upstream: org.apache.rocketmq.store.ha.HAService.
"""

from collections.abc import Callable
from typing import Any

import jpype

HOST = "127.0.0.1"
REPLACED_SINCE = (5, 0)
"""From here on the service for replicas is an interface, and can be replaced."""


def stay_on_loopback(jvm: Any, store: Any) -> None:
    """Replace the service for replicas, or bind it: it would listen on every interface."""
    if jvm.release.number < REPLACED_SINCE:
        service = jvm.field(jvm.field(store, "haService"), "acceptSocketService")
        address = jvm.java("java.net.InetSocketAddress")(HOST, jpype.JInt(0))
        jvm.set_field(service, "socketAddressListen", address)
        return
    name = "org.apache.rocketmq.store.ha.HAService"
    answers = {
        str(method.getName()): _constant(str(method.getReturnType().getName()))
        for method in jvm.java(name).class_.getMethods()
    }
    jvm.set_field(store, "haService", jpype.JProxy(name, dict=answers))


def _constant(returned: str) -> Callable[..., Any]:
    """Return a method that answers nothing of its type."""
    numbers = {"long": jpype.JLong, "int": jpype.JInt}
    if returned in numbers:
        value = numbers[returned](0)
    elif returned.endswith("AtomicInteger"):
        value = jpype.JClass("java.util.concurrent.atomic.AtomicInteger")(0)
    else:
        value = jpype.JBoolean(True) if returned == "boolean" else None
    return lambda *_: value
