"""Ctrl-C while a client is being made: nothing runs on, or the end of the process ends it."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from typing import Any

import pytest

from kafka_fast.config import consumer_settings, producer_settings
from kafka_fast.consumer.consumer_core import ConsumerCore
from kafka_fast.net import threaded_host
from kafka_fast.net.core import client_core
from kafka_fast.net.core.client_core import ClientCore
from kafka_fast.net.process import process_life
from kafka_fast.net.threaded_host import ThreadedHost
from kafka_fast.producer import producer_core
from kafka_fast.producer.producer_core import ProducerCore
from tests.embedded.interrupting import interrupted_at
from tests.embedded.producing import entries
from tests.waiting import eventually

NOBODY = "127.0.0.1:1"
FILES = {module.__file__ for module in (client_core, threaded_host, producer_core)} | {
    ConsumerCore.__init__.__code__.co_filename
}


def make_consumer() -> ClientCore[Any, Any]:
    settings = consumer_settings({"bootstrap.servers": NOBODY, "group.id": "g"})
    return ConsumerCore(settings, "me", ThreadedHost(settings))


def make_producer() -> ClientCore[Any, Any]:
    settings = producer_settings({"bootstrap.servers": NOBODY})
    return ProducerCore(settings, "me", ThreadedHost(settings))


def is_interrupted_at(place: int, make: Callable[[], ClientCore[Any, Any]]) -> bool:
    """Interrupt the making of a core at its nth instruction; return False if it has fewer."""
    try:
        interrupted_at(place, make, files=FILES).end_exit("")
    except KeyboardInterrupt:
        return True
    return False


def end_living() -> int:
    """Do what the end of the process does; return how many cores there were."""
    cores = list(process_life.living)
    for core in cores:
        core.end_exit("")
    return len(cores)


@pytest.mark.parametrize("make", [make_consumer, make_producer])
def test_ctrl_c_anywhere_leaves_nothing_that_runs(make: Callable[[], ClientCore[Any, Any]]):
    gc.collect()
    threads, files = entries("/proc/self/task"), entries("/proc/self/fd")
    alive = 0
    for place in itertools.count(1):
        if not is_interrupted_at(place, make):
            break
        alive += end_living()
        eventually(lambda: entries("/proc/self/task") <= threads, "the threads to end")
    assert place > 300, "there are more places than that"
    assert alive < 10, "most are taken back at once"
    gc.collect()
    assert entries("/proc/self/fd") <= files
