"""The normaliser: spellings, aliases, types, ranges, refusals, secrets."""

from __future__ import annotations

import logging
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.config import (
    KEYS,
    Address,
    ValueKind,
    consumer_settings,
    normalize,
    parse_addresses,
)
from kafka_fast.errors import ConfigError


@pytest.mark.parametrize("spelling", ["linger.ms", "linger_ms", "LINGER_MS", "Linger.Ms"])
def test_every_spelling_in_dictionary_and_keywords(spelling: str) -> None:
    assert normalize({spelling: 7})["linger.ms"] == 7
    assert normalize(None, {spelling: 7})["linger.ms"] == 7


@pytest.mark.parametrize(
    ("alias", "value", "name", "meaning"),
    [
        ("metadata.broker.list", "a:1", "bootstrap.servers", (Address("a", 1),)),
        ("queue.buffering.max.ms", 20, "linger.ms", 20),
        ("queue.buffering.max.kbytes", 64, "buffer.memory", 65_536),
        ("message.max.bytes", 1_000_000, "max.request.size", 1_000_000),
        ("message.send.max.retries", 3, "retries", 3),
        ("request.required.acks", -1, "acks", -1),
        ("compression.codec", "lz4", "compression.type", "lz4"),
        ("message.timeout.ms", 300_000, "delivery.timeout.ms", 300_000),
        ("max.in.flight", 1, "max.in.flight.requests.per.connection", 1),
        ("max_batch_size", 1000, "batch.size", 1000),
        ("socket.send.buffer.bytes", 0, "send.buffer.bytes", -1),
        ("partitioner", "murmur2_random", "partitioner.class", "default"),
    ],
)
def test_names_of_other_clients(alias: str, value: object, name: str, meaning: object) -> None:
    assert normalize({alias: value})[name] == meaning


def test_every_alias_leads_to_its_key_and_to_no_other() -> None:
    owners: dict[str, str] = {}
    for key in KEYS.values():
        for alias in key.aliases:
            assert alias.name == alias.name.lower()
            assert alias.name not in KEYS
            if alias.name != "compression.level":
                assert owners.setdefault(alias.name, key.name) == key.name


def test_one_level_for_the_codec_that_is_chosen() -> None:
    config = normalize({"compression.level": 7, "compression.type": "gzip"})
    assert config["compression.gzip.level"] == 7
    assert config["compression.zstd.level"] == 1
    assert normalize({"compression.level": -1, "compression.type": "zstd"}).explicit == {
        "compression.type"
    }
    assert normalize({"compression.level": 7, "compression.type": "snappy"})
    with pytest.raises(ConfigError, match=r"compression\.level"):
        normalize({"compression.level": 10, "compression.type": "gzip"})


def test_twice_with_one_value_is_fine_with_two_is_not() -> None:
    assert normalize({"linger.ms": 5, "linger_ms": "5"})["linger.ms"] == 5
    with pytest.raises(ConfigError, match=r"given twice.*linger\.ms=5, linger_ms=6"):
        normalize({"linger.ms": 5}, {"linger_ms": 6})


@pytest.mark.parametrize(
    ("wrong", "near"),
    [("lingr.ms", "linger.ms"), ("bootstrap_server", "bootstrap.servers"), ("ack", "acks")],
)
def test_unknown_names_the_nearest(wrong: str, near: str) -> None:
    with pytest.raises(ConfigError, match=f"{wrong}.*did you mean '{near}'"):
        normalize({wrong: 1})


def test_unknown_without_a_neighbour() -> None:
    with pytest.raises(ConfigError, match=r"unknown property 'qqqqqq'$"):
        normalize({"qqqqqq": 1})
    with pytest.raises(ConfigError, match="must be a string, not 5"):
        normalize({5: 1})  # type: ignore[dict-item]


@pytest.mark.parametrize("name", ["client.id", "group.id", "group.instance.id", "client.rack"])
def test_what_brokers_get_can_be_sent(name: str) -> None:
    """Regression: it ended the client when its first request was framed."""
    config = {"bootstrap.servers": "a:1", "group.id": "g"}
    with pytest.raises(ConfigError, match=rf"{name}: '\\udcff' cannot be written in UTF-8"):
        consumer_settings({**config, name: "\udcff"})
    with pytest.raises(ConfigError, match=f"{name}: .* has 32768 bytes, and may have 32767"):
        consumer_settings({**config, name: "x" * 2**15})
    assert consumer_settings({**config, name: "ünï"})


def test_a_file_may_have_a_name_that_is_no_utf_8() -> None:
    assert normalize({"ssl.keylog.location": "\udcff"})["ssl.keylog.location"] == "\udcff"


def test_a_mapping_may_serve_several_kinds_of_clients(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kafka_fast")
    shared = {"group.id": "g", "Auto_Offset_Reset": "earliest", "linger.ms": 1, "client_id": "c"}
    producer, consumer = (normalize(shared, client=client) for client in ("producer", "consumer"))
    assert producer.explicit == {"linger.ms", "client.id"}
    assert consumer.explicit == {"group.id", "auto.offset.reset", "client.id"}
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("DEBUG", "without meaning for a producer: group.id, Auto_Offset_Reset"),
        ("DEBUG", "without meaning for a consumer: linger.ms"),
    ]
    assert normalize(kwargs=shared).explicit == {"linger.ms", "client.id"}
    with pytest.raises(ConfigError, match=r"'group\.di'; did you mean 'group\.id'\?"):
        normalize({"group.di": "g"}, client="consumer")


def test_a_client_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="client must be"):
        normalize({}, client="broker")


@pytest.mark.parametrize(
    ("value", "meaning"),
    [(5000, 5000), ("5000", 5000), (" 5000 ", 5000), (5e3, 5000), ("5e3", 5000), (np.int64(7), 7)],
)
def test_integers(value: object, meaning: int) -> None:
    result = normalize({"linger.ms": value})["linger.ms"]
    assert result == meaning
    assert type(result) is int


@pytest.mark.parametrize("value", [True, "x", "", 1.5, None, [], math.nan, -math.inf, b"5"])
def test_what_is_no_integer(value: object) -> None:
    with pytest.raises(ConfigError, match=r"linger\.ms: expected an integer"):
        normalize({"linger.ms": value})


@pytest.mark.parametrize("value", [math.inf, "inf"])
def test_endless_retries(value: object) -> None:
    assert normalize({"retries": value})["retries"] == 2**31 - 1


@pytest.mark.parametrize(("value", "meaning"), [("all", -1), ("ALL", -1), (-1, -1), ("1", 1)])
def test_acks(value: object, meaning: int) -> None:
    assert normalize({"acks": value})["acks"] == meaning


def test_acks_out_of_range_says_what_is_allowed() -> None:
    with pytest.raises(ConfigError, match="acks: 2 is not one of all, 0, 1"):
        normalize({"acks": 2})


@pytest.mark.parametrize(("value", "meaning"), [(True, True), ("true", True), (" False ", False)])
def test_booleans(value: object, meaning: bool) -> None:
    assert normalize({"enable.idempotence": value})["enable.idempotence"] is meaning


@pytest.mark.parametrize("value", [1, "yes", None, "1"])
def test_what_is_no_boolean(value: object) -> None:
    with pytest.raises(ConfigError, match="expected true or false"):
        normalize({"enable.idempotence": value})


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("linger.ms", -1, "linger.ms: -1 is out of range: must be at least 0 ms"),
        ("batch_size", 2**31, "batch.size: 2147483648 is out of range: must be at most 2147483647"),
        ("queue.buffering.max.kbytes", -1, "queue.buffering.max.kbytes (buffer.memory): -1 is out"),
        ("metadata.max.idle.ms", 4999, "must be at least 5000 ms"),
        ("compression.gzip.level", 0, "0 is not one of -1, 1, 2"),
        ("compression.type", "brotli", "'brotli' is not one of none, gzip, snappy, lz4, zstd"),
    ],
)
def test_range_errors_say_key_value_and_range(name: str, value: object, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        normalize({name: value})
    assert text in str(caught.value)


def test_choices_in_any_case_and_none() -> None:
    assert normalize({"compression.type": "ZSTD"})["compression.type"] == "zstd"
    assert normalize({"compression.type": None})["compression.type"] == "none"


def test_partitioners() -> None:
    def mine(*_: object) -> int:
        return 0

    java = "org.apache.kafka.clients.producer.RoundRobinPartitioner"
    for value, meaning in ((mine, mine), (None, "default"), ("murmur2", "default"),
                           ("round_robin", "round_robin"), (java, "round_robin")):  # fmt: skip
        assert normalize({"partitioner.class": value})["partitioner.class"] == meaning
    with pytest.raises(ConfigError, match="consistent_random is not supported yet"):
        normalize({"partitioner": "consistent_random"})
    with pytest.raises(ConfigError, match="expected the name of a partitioner or a callable"):
        normalize({"partitioner": 5.5})


def test_consumer_values() -> None:
    config = normalize(
        {
            "partition.assignment.strategy": "org.apache.kafka.clients.consumer.StickyAssignor,range",  # noqa: E501 - a real name
            "auto.offset.reset": "smallest",
        },
        client="consumer",
    )
    assert config["partition.assignment.strategy"] == ("sticky", "range")
    assert config["auto.offset.reset"] == "earliest"
    duration = normalize({"auto.offset.reset": "by_duration:PT5M"}, client="consumer")
    assert duration["auto.offset.reset"] == "by_duration:PT5M"
    with pytest.raises(ConfigError, match="'now' is not one of latest, earliest, none, by_dura"):
        normalize({"auto.offset.reset": "now"}, client="consumer")


@pytest.mark.parametrize("key", [key for key in KEYS.values() if key.pending], ids=lambda k: k.name)
def test_what_does_not_exist_yet_is_refused_by_name(key) -> None:  # type: ignore[no-untyped-def]
    client = key.clients[0]
    other: object = {
        ValueKind.BOOLEAN: not key.default,
        ValueKind.INT: 17,
        ValueKind.FLOAT: 0.6,
    }.get(key.kind, "something")
    for value in (other, object()):
        with pytest.raises(ConfigError, match="not supported yet") as caught:
            normalize({key.name: value}, client=client)
        assert key.name in str(caught.value)
    assert normalize({key.name: key.default}, client=client)[key.name] == key.default


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_protocols(protocol: str) -> None:
    for spelled in (protocol, protocol.lower()):
        assert normalize({"security.protocol": spelled})["security.protocol"] == protocol


def test_secrets_are_in_no_repr() -> None:
    assert repr(normalize({"ssl.key.password": "geheim", "linger.ms": 5})) == (
        "Config(producer: linger.ms=5, ssl.key.password=****)"
    )


def test_config_is_a_frozen_picklable_mapping() -> None:
    config = normalize({"linger_ms": 9, "bootstrap.servers": "a:1"})
    assert config.explicit == {"linger.ms", "bootstrap.servers"}
    assert set(config) == {key.name for key in KEYS.values() if "producer" in key.clients}
    copy = pickle.loads(pickle.dumps(config))
    assert (copy, copy.explicit, copy.client) == (config, config.explicit, "producer")
    with pytest.raises(AttributeError, match="immutable"):
        config.client = "consumer"


def test_defaults_that_depend_on_the_client() -> None:
    assert normalize({})["connections.max.idle.ms"] == 540_000
    assert normalize({}, client="admin")["connections.max.idle.ms"] == 300_000


@pytest.mark.parametrize(
    ("given", "addresses"),
    [
        ("broker:9092", [("broker", 9092)]),
        ("broker", [("broker", 9092)]),
        (" a:1 , b:2,", [("a", 1), ("b", 2)]),
        (["a:1", "a:1", "b:2"], [("a", 1), ("b", 2)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[fe80::1%eth0]", [("fe80::1%eth0", 9092)]),
        ("PLAINTEXT://a:1", [("a", 1)]),
        ("SASL_SSL://a:1", [("a", 1)]),
        ([("::1", 5), ("b", 6)], [("::1", 5), ("b", 6)]),
    ],
)
def test_addresses(given: object, addresses: list[tuple[str, int]]) -> None:
    assert list(parse_addresses(given)) == addresses


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("a:1,b:x", "'b:x'"),
        ("::1", "'::1'"),
        ("a:0", "'a:0'"),
        ("a:65536", "'a:65536'"),
        ("http://a:1", "'http://a:1'"),
        (["a:1", 5], "5"),
        ("", "no address"),
        ([], "no address"),
        (5, "5"),
        (b"a:1", "b'a:1'"),
        ("a b:1", "'a b:1'"),
    ],
)
def test_address_errors_name_the_entry(given: object, named: str) -> None:
    with pytest.raises(ConfigError, match=r"^bootstrap\.servers: ") as caught:
        parse_addresses(given)
    assert named in str(caught.value)


@given(
    st.sampled_from(sorted(KEYS)),
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(),
        st.lists(st.text()), st.dictionaries(st.text(), st.text()),
    ),
)  # fmt: skip
def test_any_value_is_taken_or_is_a_config_error(name: str, value: object) -> None:
    try:
        normalize({name: value}, client=KEYS[name].clients[0])
    except ConfigError as error:
        message = str(error)
    else:
        return
    assert name in message


@given(st.text())
def test_addresses_round_trip_or_are_refused(text: str) -> None:
    try:
        addresses = parse_addresses(text)
    except ConfigError:
        return
    assert parse_addresses(",".join(map(str, addresses))) == addresses
