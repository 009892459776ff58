"""Brokers that do with a login whatever they like, and whole clients that must live with it.

Each cause stands in the exception of the call that waits. Nothing crashes, hangs or storms. What
was accepted is delivered once the broker comes to its senses.
"""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from types import SimpleNamespace
from typing import Any, BinaryIO

import pytest

from kafka_fast import AuthenticationError, Consumer, KafkaError, Producer, TopicPartition
from kafka_fast.control.authentication.mechanism import Conversation
from kafka_fast.control.connections import link_setup
from kafka_fast.errors import KafkaTimeoutError
from kafka_fast.net import work
from kafka_fast.net.login import kerberos, making, tokens
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from kafka_fast.protocol.apis.security.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafka_fast.protocol.apis.security.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_fast.protocol.schema import Response
from kafka_fast.testing.broker.handlers import OFFERED
from kafka_fast.testing.broker.sasl.dialogue import SaslDialogue
from kafka_fast.testing.broker.security import TokenClaims
from kafka_fast.testing.broker.versions import METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kafka_fast.testing.certificates import CertificateAuthority
from kafka_fast.testing.secure_broker import SecureBroker
from tests.embedded.producing import entries
from tests.support.proxy import Proxy
from tests.waiting import TIMEOUT, eventually

Answer = SaslAuthenticateResponse
Properties = dict[str, Any]

QUICK: Properties = {
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
}
TEXT_MAX = 2_000
"""Characters of an exception's text, whatever a broker says."""


@pytest.fixture
def kafka(secure_broker: SecureBroker) -> SecureBroker:
    secure_broker.create_topic("t", 1)
    return secure_broker


def properties_of(kafka: SecureBroker, mechanism: str = "SCRAM-SHA-256") -> Properties:
    return {**kafka.client_properties(mechanism), **QUICK}


def said(call: Callable[[], object], kind: type[KafkaError] = AuthenticationError) -> str:
    """Return the text of the exception, which must be fit for a log."""
    with pytest.raises(kind) as raised:
        call()
    text = str(raised.value)
    assert len(text) < TEXT_MAX
    assert text.isprintable(), text
    return text


def values(kafka: SecureBroker) -> list[bytes | None]:
    return [record.value for record in kafka.records("t")]


@contextmanager
def refused_producer(properties: Properties) -> Iterator[tuple[Producer, str]]:
    """Yield a producer that cannot log in, and what it says."""
    with Producer(properties) as producer:
        yield producer, said(lambda: producer.send("t", b"x"))


# ---- what the broker answers ----


def test_a_broker_that_never_answers_a_login(kafka: SecureBroker) -> None:
    kafka.faults.drop(api=SASL_AUTHENTICATE, applied=False)
    properties = properties_of(kafka) | {
        "socket.connection.setup.timeout.ms": 100,
        "socket.connection.setup.timeout.max.ms": 200,
        "max.block.ms": 1_000,
    }
    with Producer(properties) as producer:
        assert "SaslAuthenticate" in said(lambda: producer.send("t", b"x"), KafkaTimeoutError)
        kafka.faults.clear()
        assert producer.send("t", b"x").result(TIMEOUT).offset == 0


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"\x1b[31m\r\n\0",
        b"\xff" * 1000,
        b"r=" + b"x" * (1 << 20),
        b"r=a,s=,i=4096",
        b"e=other-error",
        b"i=" + b"9" * 100_000,
    ],
)
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "OAUTHBEARER"])
def test_garbage_in_the_place_of_a_challenge(
    kafka: SecureBroker, mechanism: str, challenge: bytes
) -> None:
    def spoil(answer: Answer, _: int) -> None:
        answer.auth_bytes = challenge

    properties = properties_of(kafka, mechanism)
    if mechanism == "OAUTHBEARER":
        if not challenge:
            return  # that is how a token is accepted
        properties["sasl_oauth_token_provider"] = lambda: kafka.token("alice")
    kafka.faults.script(SASL_AUTHENTICATE, spoil)
    with refused_producer(properties) as (producer, text):
        assert "SCRAM" in text or "refused the token" in text
        kafka.faults.clear()
        eventually(lambda: delivered(producer), "the login")


def delivered(producer: Producer) -> bool:
    try:
        producer.send("t", b"x").result(TIMEOUT)
    except AuthenticationError:
        return False
    return True


def test_a_refusal_that_is_long_and_would_drive_a_terminal(kafka: SecureBroker) -> None:
    def spoil(answer: Answer, _: int) -> None:
        answer.error_code = 58
        answer.error_message = "\x1b[2J\r\n\u202e\0" * 20_000

    kafka.faults.script(SASL_AUTHENTICATE, spoil)
    with refused_producer(properties_of(kafka)) as (_, text):
        assert "refuses the login by SCRAM-SHA-256: \\x1b[2J\\r\\n" in text


def test_mechanisms_that_are_many_and_would_drive_a_terminal(kafka: SecureBroker) -> None:
    def spoil(answer: Any, _: int) -> None:
        answer.error_code = 33
        answer.mechanisms = ["\x1b[2J" * 1000] * 1000

    kafka.faults.script(SASL_HANDSHAKE, spoil)
    with Producer(properties_of(kafka)) as producer, pytest.raises(AuthenticationError) as raised:
        producer.send("t", b"x")
    assert str(raised.value).isprintable()
    assert "does not offer the SASL mechanism SCRAM-SHA-256" in str(raised.value)


@pytest.mark.parametrize("code", [-1, 9999, 34, 14, 2])
def test_error_codes_of_all_kinds(kafka: SecureBroker, code: int) -> None:
    def spoil(answer: Answer, _: int) -> None:
        answer.error_code = code

    kafka.faults.script(SASL_AUTHENTICATE, spoil)
    with Producer({**properties_of(kafka), "max.block.ms": 1_000}) as producer:
        text = said(lambda: producer.send("t", b"x"), KafkaError)
    assert "refuses the login by SCRAM-SHA-256" in text
    assert f"({code})" in text


# ---- sessions ----


@pytest.mark.parametrize("lifetime_ms", [-(2**63), -1, 0, 1000, 2**31, 2**63 - 1])
def test_sessions_of_any_length(kafka: SecureBroker, lifetime_ms: int) -> None:
    def spoil(answer: Answer, _: int) -> None:
        answer.session_lifetime_ms = lifetime_ms

    kafka.faults.script(SASL_AUTHENTICATE, spoil)
    with Producer(properties_of(kafka, "PLAIN")) as producer:
        sent = [producer.send("t", b"%d" % number) for number in range(100)]
        assert [one.result(TIMEOUT).offset for one in sent] == list(range(100))


def test_sessions_that_end_as_they_begin(kafka: SecureBroker) -> None:
    """What a broker tells, and does not mean: something gets through each time."""

    def spoil(answer: Answer, _: int) -> None:
        answer.session_lifetime_ms = 1

    kafka.faults.script(SASL_AUTHENTICATE, spoil)
    with Producer({**properties_of(kafka, "PLAIN"), "linger.ms": 0}) as producer:
        for number in range(5):
            assert producer.send("t", b"x").result(TIMEOUT).offset == number


def test_each_renewal_is_refused(
    certificate_authority: CertificateAuthority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who may log in over a new link only, loses nothing."""
    monkeypatch.setattr(SaslDialogue, "_may_begin_again", lambda *_: False)
    with SecureBroker(certificate_authority, reauth_ms=1_200) as kafka:
        kafka.create_topic("t", 1)
        properties = properties_of(kafka, "PLAIN")
        sent = 0
        with (
            Producer({**properties, "linger.ms": 0}) as producer,
            Consumer({**properties, "auto.offset.reset": "earliest"}) as consumer,
        ):
            consumer.assign([TopicPartition("t", 0)])
            got: list[bytes] = []

            def failed() -> int:
                logins = [client.metrics()["failed_logins"] for client in (producer, consumer)]
                return min(one.get("AuthenticationError", 0) for one in logins)

            while failed() < 3:
                producer.send("t", b"%d" % sent)
                sent += 1
                got += consumer.poll(0.01).values()
            assert producer.flush(TIMEOUT) == 0
            eventually(lambda: got.extend(consumer.poll(0.1).values()) or len(got) >= sent)
        assert got == [b"%d" % number for number in range(sent)]
        assert values(kafka) == got


def test_a_link_that_is_dropped_after_each_login(kafka: SecureBroker) -> None:
    """The backoff grows as if there had been no login: a broker in trouble is not stormed."""
    kafka.faults.drop(api=METADATA, applied=False, close=True)
    host, _, port = kafka.bootstrap.rpartition(":")
    with Proxy(host, int(port)) as proxy:
        properties = properties_of(kafka) | {
            "bootstrap.servers": proxy.bootstrap,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 10_000,
            "max.block.ms": 3_000,
        }
        with Producer(properties) as producer:
            text = said(lambda: producer.send("t", b"x"), KafkaError)
            assert "closed the connection instead of an answer to Metadata" in text
            assert 3 <= proxy.connections <= 8


# ---- what gives tokens ----


def token_properties(kafka: SecureBroker, provider: Callable[[], object]) -> Properties:
    return {**properties_of(kafka, "OAUTHBEARER"), "sasl_oauth_token_provider": provider}


@pytest.mark.parametrize("returned", [None, 7, b"token", ("a", "b"), (), "", "a b", "\x1b[2J", "é"])
def test_a_function_that_returns_no_token(kafka: SecureBroker, returned: object) -> None:
    with refused_producer(token_properties(kafka, lambda: returned)) as (_, text):
        assert "token" in text


@pytest.mark.parametrize(
    "error",
    [
        ValueError("\x1b[2J" + "x" * 100_000),
        RuntimeError(),
        SystemExit("\x1b[2J" * 1_000),
        KeyboardInterrupt(),
        GeneratorExit(),
        StopIteration("x"),
        MemoryError(),
        AuthenticationError("from the provider"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_function_that_raises(kafka: SecureBroker, error: BaseException) -> None:
    def provide() -> str:
        raise error

    with refused_producer(token_properties(kafka, provide)) as (_, text):
        assert type(error).__name__ in text or "from the provider" in text


def test_a_function_whose_provider_is_down_for_a_while(kafka: SecureBroker) -> None:
    tries = 0

    def provide() -> str:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise ConnectionRefusedError("no provider")
        return kafka.token("alice")

    properties = token_properties(kafka, provide)
    with Producer(properties) as producer:
        assert producer.send("t", b"x").result(TIMEOUT).offset == 0


def test_a_function_that_is_slow_holds_nobody_else_up(kafka: SecureBroker) -> None:
    """Nor the client's own threads: it can be asked and closed meanwhile."""
    go_on = threading.Event()
    asked = threading.Event()

    def provide() -> str:
        asked.set()
        assert go_on.wait(TIMEOUT)
        return kafka.token("alice")

    with Producer({**token_properties(kafka, provide), "max.block.ms": 200}) as producer:
        assert asked.wait(TIMEOUT)
        assert "waits for a login" in producer.debug_dump()
        with pytest.raises(KafkaTimeoutError, match="login"):
            producer.send("t", b"x")
        go_on.set()
        eventually(lambda: sends(producer), "the login")


def sends(producer: Producer) -> bool:
    try:
        producer.send("t", b"x").result(TIMEOUT)
    except KafkaTimeoutError:
        return False
    return True


def test_a_function_that_hangs_does_not_keep_a_client_from_closing(kafka: SecureBroker) -> None:
    go_on = threading.Event()
    asked = threading.Event()

    def provide() -> str:
        asked.set()
        go_on.wait(TIMEOUT)
        return "late"

    producer = Producer(token_properties(kafka, provide))
    consumer = Consumer({**token_properties(kafka, provide), "group.id": "g"})
    consumer.subscribe(["t"])
    consumer.poll(0)
    assert asked.wait(TIMEOUT)
    began = time.monotonic()
    producer.close(1)
    consumer.close(1)
    assert time.monotonic() - began < TIMEOUT / 2
    go_on.set()
    eventually(lambda: not login_threads(), "the end of the threads")


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "PLAIN", "SCRAM-SHA-256"])
def test_a_function_that_never_returns_takes_a_few_threads_only(
    kafka: SecureBroker, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """Regression: each try of a login began another thread, forever."""
    for module in (link_setup, work, tokens):
        monkeypatch.setattr(module, "WORK_TIMEOUT", 0.02)
    go_on = threading.Event()

    def provide() -> str:
        assert go_on.wait(TIMEOUT)
        return kafka.token("alice") if mechanism == "OAUTHBEARER" else kafka.users["alice"]

    if mechanism == "OAUTHBEARER":
        properties = token_properties(kafka, provide)
    else:
        properties = properties_of(kafka, mechanism) | {"sasl.username": "alice"}
        del properties["sasl.jaas.config"]
        properties["sasl.password"] = provide
    with Producer({**properties, "max.block.ms": 100}) as producer:

        def says_so() -> bool:
            text = said(lambda: producer.send("t", b"x"), KafkaTimeoutError)
            return "and 4 earlier calls have not returned, the first for" in text

        eventually(says_so, "the reason")
        monkeypatch.undo()
        assert len(login_threads()) == work.HANGING_MAX
        go_on.set()
        eventually(lambda: sends(producer), "the login")
    eventually(lambda: not login_threads(), "the end of the threads")


def login_threads() -> list[threading.Thread]:
    return [one for one in threading.enumerate() if one.name == "kf-login"]


# ---- ends ----


@pytest.mark.parametrize("api", [SASL_HANDSHAKE, SASL_AUTHENTICATE, METADATA])
def test_a_client_is_closed_in_the_middle_of_its_login(kafka: SecureBroker, api: int) -> None:
    tasks = entries("/proc/self/task")
    kafka.faults.drop(api=api, applied=False)
    for _ in range(5):
        producer = Producer(properties_of(kafka))
        eventually(lambda producer=producer: "SaslHandshake" in producer.debug_dump())
        producer.close(0)
    del producer
    gc.collect()
    eventually(lambda: entries("/proc/self/task") <= tasks)


def test_refused_logins_leave_nothing_open(kafka: SecureBroker) -> None:
    properties = properties_of(kafka, "PLAIN")
    properties["sasl.jaas.config"] = properties["sasl.jaas.config"].replace("-secret", "-guess")
    with Producer(properties) as producer:
        assert "guess" not in said(lambda: producer.send("t", b"x"))
        fds = len(entries("/proc/self/fd"))
        for _ in range(5):  # with growing pauses
            said(lambda: producer.send("t", b"x"))
        eventually(lambda: len(entries("/proc/self/fd")) <= fds + 2)


def test_a_token_that_a_broker_refuses_is_not_shown_again(
    certificate_authority: CertificateAuthority,
) -> None:
    """Each has an hour to live, and would be kept for most of it."""
    shown: list[str] = []
    made: list[str] = []

    def check(token: str, now_ms: int) -> TokenClaims:
        shown.append(token)
        if len(set(shown)) < 3:
            raise ValueError("revoked")
        return TokenClaims("alice", now_ms + 3_600_000)

    with SecureBroker(certificate_authority, check_token=check) as kafka:
        kafka.create_topic("t", 1)

        def provide() -> str:
            made.append(kafka.token("alice", lifetime=3600.0 + len(made)))
            return made[-1]

        with Producer(token_properties(kafka, provide)) as producer:
            assert "refused the token" in said(lambda: producer.send("t", b"x"))
            eventually(lambda: delivered(producer), "a token that is accepted")
    assert made[:3] == list(dict.fromkeys(shown))


# ---- a broker that never comes to an end ----


ENDLESS_APIS = [
    ApiVersion(api_key=key, min_version=least, max_version=most)
    for key, (least, most) in OFFERED.items()
]


class EndlessBroker:
    """Says to each SaslAuthenticate that all is well so far, and never that it has accepted."""

    def __init__(self, challenge: Callable[[bytes], bytes]) -> None:
        """Listen.

        Args:
            challenge: returns what is answered to what the client says.
        """
        self.rounds: list[int] = []
        """SaslAuthenticate requests of each connection that had one."""
        self._challenge = challenge
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.bootstrap = "{}:{}".format(*self._listener.getsockname())
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(TIMEOUT)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with connection, suppress(OSError), connection.makefile("rb") as stream:
                    self._serve(connection, stream)

    def _serve(self, connection: socket.socket, stream: BinaryIO) -> None:
        rounds = 0
        while size := stream.read(4):
            header, body = frame.decode_request(stream.read(int.from_bytes(size, "big")))
            if isinstance(body, SaslAuthenticateRequest):
                self.rounds += [] if rounds else [0]
                rounds = self.rounds[-1] = rounds + 1
                answer: Response = Answer(auth_bytes=self._challenge(body.auth_bytes))
            elif isinstance(body, SaslHandshakeRequest):
                answer = SaslHandshakeResponse(mechanisms=[body.mechanism])
            elif isinstance(body, ApiVersionsRequest):
                answer = ApiVersionsResponse(api_keys=ENDLESS_APIS)
            else:
                return  # what comes after a login
            connection.sendall(frame.encode_response(answer, header.version, header.correlation_id))


def scram_challenge(said: bytes) -> bytes:
    """Return a good first message of a server, whatever the client says."""
    return b"r=%sx,s=c2FsdA==,i=4096" % said.partition(b"r=")[2].partition(b",")[0]


class EndlessContext:
    """Kerberos as it never is: there is always one more token."""

    is_complete = False

    def step(self, token: bytes | None) -> bytes:
        return b"token"


class EndlessMechanism:
    """One that does not count itself."""

    name = "GSSAPI"

    def converse(self, host: str) -> Conversation:
        while True:
            yield b"more"


CREDENTIALS: Properties = {
    "sasl.username": "alice",
    "sasl.password": "secret",
    "sasl_oauth_token_provider": lambda: "a.b.c",
}


@pytest.mark.parametrize(
    ("mechanism", "rounds", "says"),
    [
        ("PLAIN", 1, "instead of an answer to "),
        ("SCRAM-SHA-256", 2, "sent a malformed server-final message of SCRAM: r="),
        ("SCRAM-SHA-512", 2, "sent a malformed server-final message of SCRAM: r="),
        ("OAUTHBEARER", 2, "refused the token: go on"),
        ("GSSAPI", 10, "does not come to an end with Kerberos"),
        ("any", 20, "has not accepted the login by GSSAPI after 20 rounds"),
    ],
)
def test_a_login_that_a_broker_never_ends(
    monkeypatch: pytest.MonkeyPatch, mechanism: str, rounds: int, says: str
) -> None:
    """It accepts each message and asks for the next, and no end would ever come."""
    monkeypatch.setattr(
        kerberos,
        "KerberosLogin",
        lambda **_: SimpleNamespace(make_context=lambda _: EndlessContext()),
    )
    if mechanism == "any":
        mechanism = "GSSAPI"
        monkeypatch.setitem(making._MAKERS, mechanism, lambda _: EndlessMechanism())
    is_scram = mechanism.startswith("SCRAM")
    broker = EndlessBroker(scram_challenge if is_scram else lambda _: b"go on")
    properties: Properties = {
        **QUICK,
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "allow.insecure.sasl": True,
        "sasl.mechanism": mechanism,
        "max.block.ms": 1_000,
    }
    prefixes = ("sasl_oauth",) if mechanism == "OAUTHBEARER" else ("sasl.",)
    if mechanism != "GSSAPI":
        properties |= {key: value for key, value in CREDENTIALS.items() if key.startswith(prefixes)}
    with closing(broker), Producer(properties) as producer:
        kind = KafkaTimeoutError if mechanism == "PLAIN" else AuthenticationError
        assert says in said(lambda: producer.send("t", b"x"), kind)
        assert broker.rounds[0] == rounds
        assert max(broker.rounds) == rounds
