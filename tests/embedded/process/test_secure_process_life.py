"""Processes that end, fork or are interrupted in the middle of a handshake or a login.

Each case is a script in a process of its own; the broker, or what stands in its place, lives here.
"""

from __future__ import annotations

import json
import signal
import socket
from collections.abc import Iterator

import pytest

from kafka_fast.testing.broker.versions import SASL_AUTHENTICATE
from kafka_fast.testing.secure_broker import SecureBroker
from tests.embedded.processes import run, start
from tests.embedded.tls.servers import Server
from tests.waiting import TIMEOUT

PRELUDE = """
import json
config = json.loads(sys.argv[1])
"""
SECRETS = ("alice-secret", "YWxpY2U", "Bearer")
KINDS = {
    "Producer": "Producer(config)",
    "Consumer": "Consumer({**config, 'group.id': 'g'})",
}


def hold(connection: socket.socket) -> None:
    """Take what comes, and say nothing."""
    while connection.recv(65_536):
        pass


@pytest.fixture
def kafka(secure_broker: SecureBroker) -> SecureBroker:
    secure_broker.create_topic("t", 1)
    return secure_broker


@pytest.fixture(params=["handshake", "login", "token"])
def stuck(request: pytest.FixtureRequest, kafka: SecureBroker) -> Iterator[str]:
    """What a client needs to be stuck in the middle of its first connection, as JSON."""
    properties = kafka.client_properties("SCRAM-SHA-256")
    if request.param == "handshake":
        with Server(hold) as server:
            yield json.dumps({**properties, "bootstrap.servers": server.bootstrap})
    elif request.param == "login":
        kafka.faults.drop(api=SASL_AUTHENTICATE, applied=False)
        yield json.dumps(properties)
    else:
        yield json.dumps({**kafka.client_properties("OAUTHBEARER"), "hangs": True})


HANG = """
if config.pop("hangs", False):
    config["sasl_oauth_token_provider"] = lambda: time.sleep(1000)
def wait_until_stuck(client):
    words = "handshake", "login", "Sasl", "has not answered", "connect"
    while not any(word in client.debug_dump() for word in words):
        time.sleep(0.01)
"""


@pytest.mark.not_under("thread", "it does not see how OpenSSL counts a context's references")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "ending",
    [
        "",
        "del client; gc.collect()",
        "client.close(0)",
        "client.close(1)",
        "sys.exit(0)",
        "os.kill(os.getpid(), signal.SIGINT)",
    ],
)
def test_a_process_that_ends(stuck: str, kind: str, ending: str) -> None:
    done = run(
        f"""
        warnings.simplefilter("ignore", ResourceWarning)
        config["exit_flush_timeout_ms"] = 500
        if {kind!r} == "Consumer":
            del config["exit_flush_timeout_ms"]
        client = {KINDS[kind]}
        wait_until_stuck(client)
        try:
            {ending or "pass"}
        except KeyboardInterrupt:
            pass
        """,
        stuck,
        prelude=PRELUDE + HANG,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    assert not any(secret in done.stderr for secret in SECRETS)


@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("Producer", "client.send('t', b'x')"),
        ("Producer", "client.partitions_for('t')"),
        ("Consumer", "client.poll(1000)"),
    ],
)
def test_ctrl_c_ends_a_call(stuck: str, kind: str, call: str) -> None:
    process = start(
        f"""
        client = {KINDS[kind]}
        if {kind!r} == "Consumer":
            client.subscribe(["t"])
        def tell():
            wait_until_stuck(client)
            print("stuck", flush=True)
        try:  # the signal may come while the thread starts
            threading.Thread(target=tell).start()
            {call}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        client.close(0)
        """,
        stuck,
        prelude=PRELUDE + HANG,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "stuck\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=TIMEOUT)
    finally:
        process.kill()
        process.wait()
    assert out == "interrupted\n", err
    assert process.returncode == 0, err
    assert not any(secret in err for secret in SECRETS)


def test_a_child_that_ends_in_the_ordinary_way_leaves_the_links_alone(kafka: SecureBroker) -> None:
    """It says no close_notify, and writes nothing: the parent's sessions would be broken."""
    done = run(
        """
        producer = Producer(config)
        consumer = Consumer({**config, "auto.offset.reset": "earliest"})
        consumer.assign([TopicPartition("t", 0)])
        producer.send("t", b"0").result()
        while not consumer.poll(0.1): pass
        for number in range(1, 21):
            child = os.fork()
            if child == 0:
                try:
                    producer.send("t", b"child")
                except UsageError:
                    pass
                if number % 3 == 0:
                    producer.close()
                    consumer.close()
                elif number % 3 == 1:
                    del producer, consumer
                    gc.collect()
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            assert producer.send("t", b"%d" % number).result().offset == number
            while not consumer.poll(0.1): pass
        assert producer.metrics()["links_closed"] == {}, producer.metrics()
        assert consumer.metrics()["links_closed"] == {}, consumer.metrics()
        producer.close()
        consumer.close()
        """,
        json.dumps(kafka.client_properties("SCRAM-SHA-256")),
        prelude=PRELUDE,
    )
    assert done.returncode == 0, done.stderr
    assert len(kafka.records("t")) == 21


def test_a_child_that_is_forked_during_a_handshake(stuck: str) -> None:
    done = run(
        """
        config["exit_flush_timeout_ms"] = 100
        producer = Producer(config)
        wait_until_stuck(producer)
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                producer.close()
                del producer
                gc.collect()
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
        producer.close(0)
        """,
        stuck,
        prelude=PRELUDE + HANG,
    )
    assert done.returncode == 0, done.stderr
