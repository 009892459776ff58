"""Compression on the way out: by the libraries' threads, or by packages on the control thread."""

from __future__ import annotations

import random
import warnings

import pytest

from kafka_fast import Producer
from kafka_fast.record import Codec
from kafka_fast.record.compression import codecs_available
from kafka_fast.testing.broker.serving.server import EmbeddedKafka

RECORDS = 3_000
CODECS = ("gzip", "snappy", "lz4", "zstd")


@pytest.mark.parametrize("codec", CODECS)
def test_compressed_batches_arrive_whole(codec: str) -> None:
    """Runs in both builds: `make test-without-codecs` has one without the libraries."""
    native = codecs_available()[codec] == "native"
    with EmbeddedKafka(brokers=1) as kafka, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        properties = {"bootstrap.servers": kafka.bootstrap, "compression.type": codec}
        with Producer(properties) as producer:
            for number in range(RECORDS):
                producer.send_nowait("t", b"%06d" % number * 20)
            assert producer.flush(30) == 0
            sent = producer.metrics()["bytes_out"]
        values = [record.value for record in kafka.records("t")]
    assert values == [b"%06d" % number * 20 for number in range(RECORDS)]
    assert sent < RECORDS * 120 / 3, "the batches went out uncompressed"
    slow = [warning for warning in caught if "Python package" in str(warning.message)]
    assert bool(slow) is not native


@pytest.mark.parametrize("codec", CODECS)
def test_batches_of_one_slab_and_of_many_take_turns(codec: str) -> None:
    """Small batches are compressed where they lie, large ones from a copy that is kept."""
    small, large = [b"abc" * 100], [b"%06d" % number * 20 for number in range(2_000)]
    with EmbeddedKafka(brokers=1) as kafka, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        properties = {"bootstrap.servers": kafka.bootstrap, "compression.type": codec}
        with Producer(properties) as producer:
            for values in (small, large, small, large[:500], small):
                for value in values:
                    producer.send_nowait("t", value)
                assert producer.flush(30) == 0
        values = [record.value for record in kafka.records("t")]
    assert values == small + large + small + large[:500] + small


@pytest.mark.parametrize("codec", CODECS)
def test_what_does_not_get_smaller_goes_out_as_it_is(codec: str) -> None:
    noise = [random.Random(number).randbytes(20_000) for number in range(20)]
    with EmbeddedKafka(brokers=1) as kafka, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        properties = {"bootstrap.servers": kafka.bootstrap, "compression.type": codec}
        with Producer(properties) as producer:
            for value in noise:
                producer.send_nowait("t", value)
            assert producer.flush(30) == 0
        batches = kafka.on_cluster(lambda cluster: cluster.batches("t", 0))
        values = [record.value for record in kafka.records("t")]
    assert values == noise
    assert {batch.codec for batch in batches} == {Codec.NONE}
