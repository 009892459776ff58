"""Every property of the other clients' means something here, or says what to do instead.

The names come from the installed packages themselves: kafka-python and aiokafka tell them, and
librdkafka is asked for each word that its library holds whether it is one.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_fast.config import KEYS, normalize
from kafka_fast.config.spelling._foreign import ADVICE
from kafka_fast.errors import ConfigError

# kafka-python warns when it is imported.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

UNKNOWN = "no.such.property"

# Of kafka-python 2, which many still have.
KAFKA_PYTHON_2 = {
    "producer": ("api_version_auto_timeout_ms", "buffer_memory", "max_block_ms", "selector"),
    "consumer": (
        "api_version_auto_timeout_ms",
        "legacy_iterator",
        "sock_chunk_bytes",
        "sock_chunk_buffer_count",
    ),
}

Make = Callable[[dict[str, Any]], object]


def words_of(library: Path) -> set[str]:
    """Return what may be a property's name among the texts of a library.

    Linkers let a text that ends like another one be that one's end.
    """
    texts = re.findall(rb"[a-z][a-z0-9]*(?:[._][a-z0-9]+)*(?=\0)", library.read_bytes())
    words = {text.decode() for text in texts}
    return words | {
        word.split(".", dots)[dots] for word in words for dots in range(1, word.count(".") + 1)
    }


def is_property(make: Make, name: str) -> bool:
    """Ask librdkafka, which complains of the first wrong one, and so never makes a client."""
    from confluent_kafka import KafkaException

    try:
        make({name: "\1", UNKNOWN: ""})
    except KafkaException as error:
        return f'No such configuration property: "{name}"' not in str(error)
    except (TypeError, ValueError, AttributeError):  # of a callback, which a text is not
        return True
    raise AssertionError("a client was made")


def confluent_names() -> Iterator[tuple[str, str]]:
    import confluent_kafka

    folder = Path(confluent_kafka.__file__).parent
    libraries = [*folder.parent.glob("confluent_kafka.libs/librdkafka*"), *folder.glob("cimpl*")]
    words = set().union(*(words_of(library) for library in libraries if library.suffix != ".pyi"))
    makers: dict[str, Make] = {
        "producer": confluent_kafka.Producer,
        "consumer": lambda config: confluent_kafka.Consumer({"group.id": "g", **config}),
    }
    for client, make in makers.items():
        yield from ((client, word) for word in sorted(words) if is_property(make, word))


def kafka_python_names() -> Iterator[tuple[str, str]]:
    import kafka

    for client, kind in (("producer", kafka.KafkaProducer), ("consumer", kafka.KafkaConsumer)):
        yield from ((client, name) for name in (*kind.DEFAULT_CONFIG, *KAFKA_PYTHON_2[client]))


def aiokafka_names() -> Iterator[tuple[str, str]]:
    import aiokafka

    kinds = {"producer": aiokafka.AIOKafkaProducer, "consumer": aiokafka.AIOKafkaConsumer}
    for client, kind in kinds.items():
        names = list(inspect.signature(kind.__init__).parameters)
        yield from ((client, name) for name in names if name != "self")


PEERS = {
    "confluent-kafka": (
        confluent_names,
        300,
        {"statistics.interval.ms", "socket.keepalive.enable"},
    ),
    "kafka-python": (kafka_python_names, 80, {"selector", "consumer_timeout_ms"}),
    "aiokafka": (aiokafka_names, 50, {"topics", "loop", "rebalance_timeout_ms"}),
}


def answer_to(name: str, client: str) -> str:
    """Return what is said of a property; empty if it is taken, as far as its name goes."""
    try:
        normalize({name: object()}, client=client)
    except ConfigError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("peer", PEERS)
def test_every_property_is_taken_or_answered_with_what_to_do(peer: str) -> None:
    names_of, least, some = PEERS[peer]
    names = list(names_of())
    assert len(names) >= least, "the package tells its properties in another way now"
    assert some <= {name for _, name in names}
    unanswered = {
        (client, name): said
        for client, name in names
        if "unknown property" in (said := answer_to(name, client))
    }
    assert unanswered == {}


@pytest.mark.parametrize(
    ("client", "name", "advice"),
    [
        ("consumer", "stats_cb", r"call metrics\(\)"),
        ("producer", "metrics_collector", r"call metrics\(\)"),
        ("consumer", "enable.auto.offset.store", r"commit\(records\)"),
        ("consumer", "topics", r"consumer\.subscribe"),
        ("consumer", "Consumer_Timeout_MS", r"poll\(timeout\)"),
        ("producer", "dr_msg_cb", "on_delivery="),
        ("producer", "ssl.sigalgs.list", "ssl_context="),
        ("consumer", "enable.sasl.oauthbearer.unsecure.jwt", "sasl_oauth_token_provider="),
    ],
)
def test_the_answer_names_the_property_and_the_way(client: str, name: str, advice: str) -> None:
    with pytest.raises(ConfigError, match=f"^{re.escape(name)}.*: .*{advice}"):
        normalize({name: 1}, client=client)


@pytest.mark.parametrize(
    ("client", "name", "value", "said"),
    [
        ("producer", "socket.keepalive.enable", True, ""),
        ("producer", "socket_keepalive_enable", "true", ""),
        ("consumer", "api.version.request", True, ""),
        ("producer", "api_version", (2, 8), ""),
        ("producer", "allow_auto_create_topics", False, ""),
        ("producer", "consumer_timeout_ms", 5, ""),
        ("producer", "fetch.min.bytes", 5, ""),
        ("producer", "value.deserializer", bytes.decode, ""),
        ("consumer", "max_in_flight_requests_per_connection", 5, ""),
        ("consumer", "compression.level", 5, ""),
        ("consumer", "acks", "no value of it", ""),
        ("consumer", "enable.auto.offset.store", True, ""),
        ("consumer", "enable.partition.eof", "False", ""),
        ("producer", "proxy_url", None, ""),
        ("producer", "statistics.interval.ms", 0, ""),
        ("producer", "statistics.interval.ms", 5, "call metrics()"),
        ("consumer", "socket.timeout.ms", 60000, "request.timeout.ms is how long"),
        ("consumer", "bootstrap_timeout_ms", 5, "default.api.timeout.ms"),
        ("producer", "bootstrap_timeout_ms", 5, "max.block.ms"),
        ("producer", "log_level", 7, "the levels of the loggers"),
        ("producer", "debug", "all", "logging.getLogger('kafka_fast')"),
    ],
)
def test_harmless_ones_are_taken(
    client: str, name: str, value: object, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Regression: a librdkafka configuration, or one that clients share, had to be weeded first."""
    caplog.set_level(logging.DEBUG, "kafka_fast")
    for arguments in ({"mapping": {name: value}}, {"kwargs": {name: value}}):
        caplog.clear()
        assert not normalize(**arguments, client=client).explicit  # type: ignore[arg-type]
        (record,) = caplog.records
        if said:
            assert record.levelname == "WARNING"
            assert record.getMessage().startswith(f"{name} has no effect on this {client}: ")
            assert said in record.getMessage()
        else:
            assert record.levelname == "DEBUG"
            assert record.getMessage() == f"without meaning for a {client}: {name}"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable.auto.offset.store", False),
        ("enable.partition.eof", True),
        ("leave.group.on.close", "false"),
        ("proxy_url", "socks5://a:1"),
        ("stats_cb", print),
        ("sasl.passwrd", "secret"),
    ],
)
def test_those_that_count_are_refused(name: str, value: object) -> None:
    with pytest.raises(ConfigError) as caught:
        normalize({name: value}, client="consumer")
    assert "secret" not in str(caught.value)


def test_advice_is_of_names_that_mean_nothing_to_these_clients() -> None:
    seen = set()
    for advice in ADVICE:
        for name in advice.names:
            assert name == name.lower()
            assert "_" not in name
            for client in advice.clients:
                assert (client, name) not in seen or name == "bootstrap.timeout.ms"
                seen.add((client, name))
                key = KEYS.get(name)
                assert key is None or client not in key.clients
