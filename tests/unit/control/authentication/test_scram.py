from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.control.authentication.mechanism import Work
from kafka_fast.control.authentication.scram import (
    HASHES,
    MIN_ITERATIONS,
    ScramMechanism,
    derive_keys,
)
from kafka_fast.errors import AuthenticationError, ConfigError
from kafka_fast.secret import Secret
from tests.reference.scram_server import ScramServer, hi
from tests.unit.control.authentication.conversing import converse

NONCE = "fyko+d2lbbFgONRv9qkxdawL"


def make(
    name: str = "SCRAM-SHA-256",
    username: str = "user",
    password: str | Callable[[], str] = "pencil",
    nonce: str = NONCE,
    **options: Any,
) -> ScramMechanism:
    options.setdefault("max_iterations", 1_000_000)
    return ScramMechanism(
        name,
        username,
        Secret(password),
        lambda secret, salt, iterations: derive_keys(
            HASHES[name], secret.reveal().encode(), salt, iterations
        ),
        lambda: nonce,
        **options,
    )


def test_the_conversation_of_rfc_7677() -> None:
    nonce = "rOprNGfwEbeRWgbNEkqO"
    both = f"{nonce}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    said = converse(
        make(nonce=nonce).converse("broker"),
        f"r={both},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode(),
        b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=",
    )
    assert said == [
        f"n,,n=user,r={nonce}".encode(),
        f"c=biws,r={both},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode(),
    ]


@pytest.mark.parametrize("name", HASHES)
@pytest.mark.parametrize("user", ["user", "a,b=c", "jörg", "e\u0301"])
def test_a_conversation_with_a_server(name: str, user: str) -> None:
    server = ScramServer(HASHES[name], {user.replace("e\u0301", "é"): "pencil"})
    converse(make(name, user).converse("broker"), server.first, server.final)


@pytest.mark.parametrize("name", HASHES)
def test_the_keys_are_those_of_the_rfc(name: str) -> None:
    keys = derive_keys(HASHES[name], b"pencil", b"salt", MIN_ITERATIONS)
    salted = hi(HASHES[name], b"pencil", b"salt", MIN_ITERATIONS)
    assert keys.client_key == hmac.new(salted, b"Client Key", HASHES[name]).digest()
    assert keys.server_key == hmac.new(salted, b"Server Key", HASHES[name]).digest()


def test_a_function_is_asked_for_the_password_before_the_first_message() -> None:
    """A renewal's requests wait from that message on."""
    asked: list[str] = []

    def password() -> str:
        asked.append("password")
        return "pencil"

    conversation = make(password=password).converse("broker")
    work = next(conversation)
    assert isinstance(work, Work)
    known = work.function()
    assert (repr(known), asked) == ("****", ["password"])
    server = ScramServer("sha256", {"user": "pencil"})
    said = conversation.send(known)
    assert isinstance(said, bytes)
    keys = conversation.send(server.first(said))
    assert isinstance(keys, Work)
    conversation.send(keys.function())
    assert asked == ["password"], "once in a conversation"


def test_a_delegation_token_says_that_it_is_one() -> None:
    server = ScramServer("sha256", {"token-id": "hmac"})
    scram = make(username="token-id", password="hmac", extensions=[("tokenauth", "true")])
    said = converse(scram.converse("broker"), server.first, server.final)
    assert said[0] == f"n,,n=token-id,r={NONCE},tokenauth=true".encode()
    assert server.extensions == ["tokenauth=true"]


@pytest.mark.parametrize("pair", [("", "x"), ("a b", "x"), ("a", ""), ("a", "x,y"), ("a", "ü")])
def test_an_extension_that_cannot_be_sent_is_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="extension"):
        make(extensions=[pair])


@pytest.mark.parametrize("user", ["", "a\0b", "\u202e"])
def test_a_user_that_cannot_be_sent_is_refused(user: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.username"):
        make(username=user)


def test_the_keys_are_derived_as_work() -> None:
    conversation = make().converse("broker")
    next(conversation)
    work = conversation.send(f"r={NONCE}x,s=c2FsdA==,i=4096".encode())
    assert isinstance(work, Work)
    assert work.what == "keys are derived with 4096 iterations"


def test_a_wrong_password_is_what_the_broker_says() -> None:
    server = ScramServer("sha256", {"user": "pencil"})
    with pytest.raises(AuthenticationError, match="refused the SCRAM proof: invalid-proof"):
        converse(make(password="pen").converse("broker"), server.first, server.final)


GOOD_FIRST = f"r={NONCE}server,s=c2FsdA==,i=4096"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (f"r={NONCE},s=c2FsdA==,i=4096", "nonce that does not extend"),
        (f"r=x{NONCE}server,s=c2FsdA==,i=4096", "nonce that does not extend"),
        (f"r={NONCE[:-1]},s=c2FsdA==,i=4096", "nonce that does not extend"),
        (
            f"r={NONCE}s,s=c2FsdA==,i=1",
            "asks for 1 SCRAM iterations, which must be 4096 to 1000000",
        ),
        (f"r={NONCE}s,s=c2FsdA==,i=4095", "asks for 4095 SCRAM iterations"),
        (f"r={NONCE}s,s=c2FsdA==,i=1000001", "asks for 1000001 SCRAM iterations"),
        (f"r={NONCE}s,s=c2FsdA==,i={'9' * 7000}", "asks for 9999"),
        (f"r={NONCE}s,s=c2FsdA==,i={'9' * 70000}", "malformed server-first"),
        *[
            (message, "malformed server-first")
            for message in (
                "",
                "x",
                f"r={NONCE}s,s=c2FsdA==,i=x",
                f"r={NONCE}s,s=c2FsdA==,i=",
                f"r={NONCE}s,s=c2FsdA==,i=0",
                f"r={NONCE}s,s=c2FsdA==,i=-1",
                f"r={NONCE}s,s=c2FsdA==,i=04096",
                f"r={NONCE}s,s=c2FsdA==,i=4096 ",
                f"r={NONCE}s,s=c2FsdA==,i=٤٠٩٦",
                f"r={NONCE}s,s=c2FsdA==",
                f"r={NONCE}s,i=4096",
                "s=c2FsdA==,i=4096",
                f"s=c2FsdA==,r={NONCE}s,i=4096",
                f"r={NONCE}s,i=4096,s=c2FsdA==",
                f"r={NONCE}s,r={NONCE}s,s=c2FsdA==,i=4096",
                f"r={NONCE}s,s=c2FsdA==,s=c2FsdA==,i=4096",
                f"{GOOD_FIRST},i=4096",
                f"{GOOD_FIRST},x=1,x=2",
                f"{GOOD_FIRST},m=1",
                f"{GOOD_FIRST},",
                f"{GOOD_FIRST},x",
                f"{GOOD_FIRST},x=",
                f"{GOOD_FIRST}\n",
                f"{GOOD_FIRST}\0",
                f"r={NONCE}s,s=c2FsdA=,i=4096",
                f"r={NONCE}s,s=c2FsdA,i=4096",
                f"r={NONCE}s,s=c2Fs dA=,i=4096",
                f"r={NONCE}s,s=c2FsdA-_,i=4096",
                f"r={NONCE}s,s=,i=4096",
                f"r={NONCE}\x7f,s=c2FsdA==,i=4096",
                f"r={NONCE} ,s=c2FsdA==,i=4096",
                "v=c2FsdA==",
                "e=other-error",
            )
        ],
        (f"m=x,{GOOD_FIRST}", "an extension that nobody knows|a SCRAM extension"),
    ],
    ids=lambda value: value[:40],
)
def test_a_hostile_first_message(message: str, text: str) -> None:
    with pytest.raises(AuthenticationError, match=text):
        converse(make().converse("broker"), message.encode())


def test_bytes_that_are_no_text_are_malformed() -> None:
    with pytest.raises(AuthenticationError, match=r"malformed server-first .*\\xff"):
        converse(make().converse("broker"), GOOD_FIRST.encode() + b",x=\xff")


def test_extensions_that_are_optional_are_passed_over() -> None:
    server = ScramServer("sha256", {"user": "pencil"})

    def first(message: bytes) -> bytes:
        server.server_first = server.first(message) + ",x=ü,abc=1".encode()
        return server.server_first

    converse(make().converse("broker"), first, lambda message: server.final(message) + b",y=1")


def to_final(change: Callable[[bytes], bytes]) -> None:
    """Run a conversation in which the broker's last message is changed."""
    server = ScramServer("sha256", {"user": "pencil"})
    converse(make().converse("broker"), server.first, lambda message: change(server.final(message)))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda final: b"v=" + base64.b64encode(bytes(32)), "its SCRAM signature is wrong"),
        (lambda final: final[:6] + b"====", "malformed"),
        (lambda final: b"v=" + base64.b64encode(base64.b64decode(final[2:])[:-1]), "signature"),
        (lambda final: b"v=", "its SCRAM signature is wrong"),
        (lambda final: b"", "malformed server-final message of SCRAM: nothing"),
        (lambda final: final[2:], "malformed"),
        (lambda final: final + b"\n", "malformed"),
        (lambda final: final + b",v=x", "malformed"),
        (lambda final: final + b",m=x", "malformed"),
        (lambda final: b"m=x," + final, "extension that nobody knows"),
        (lambda final: b"x=1," + final, "malformed"),
        (lambda final: final + b"\xff", "malformed"),
        (lambda final: b"e=other-error", "refused the SCRAM proof: other-error"),
        (lambda final: b"e=a\x1b[2Jb\n,x=1", r"refused the SCRAM proof: a\\x1b\[2Jb\\n$"),
        (lambda final: b"e=", "malformed"),
        (lambda final: b"v=" + b"A" * 100_000, "malformed"),
    ],
)
def test_a_hostile_final_message(change: Callable[[bytes], bytes], text: str) -> None:
    with pytest.raises(AuthenticationError, match=text):
        to_final(change)


def test_the_signature_of_another_conversation_proves_nothing() -> None:
    server = ScramServer("sha256", {"user": "pencil"})
    finals: list[bytes] = []

    def final(message: bytes) -> bytes:
        finals.append(server.final(message))
        return finals[-1]

    converse(make().converse("broker"), server.first, final)
    replayed = ScramServer("sha256", {"user": "pencil"}, nonce="another")
    with pytest.raises(AuthenticationError, match="signature is wrong"):
        converse(make().converse("broker"), replayed.first, finals[0])


@given(st.binary(max_size=200))
def test_no_first_message_raises_anything_else(message: bytes) -> None:
    with pytest.raises(AuthenticationError):
        converse(make().converse("broker"), message)


ATTRIBUTES = st.sampled_from(
    [f"r={NONCE}", f"r={NONCE}x", "r=", "s=c2FsdA==", "s=", "i=4096", "i=1", "i=", "m=x", "x=1", ""]
)


@given(st.lists(ATTRIBUTES, max_size=6), st.sampled_from([",", ",,", ";"]))
def test_only_one_order_of_attributes_is_taken(parts: list[str], separator: str) -> None:
    conversation = make().converse("broker")
    next(conversation)
    is_well = parts[:3] == [f"r={NONCE}x", "s=c2FsdA==", "i=4096"] and parts[3:] in ([], ["x=1"])
    try:
        step: object = conversation.send(separator.join(parts).encode())
    except AuthenticationError:
        assert not (is_well and separator == ",")
    else:
        assert is_well and separator == "," and isinstance(step, Work)


@given(st.binary(max_size=200))
def test_no_final_message_is_taken_but_the_signature(message: bytes) -> None:
    conversation = make().converse("broker")
    next(conversation)
    conversation.send(GOOD_FIRST.encode())
    conversation.send(derive_keys("sha256", b"pencil", b"salt", 1))
    with pytest.raises(AuthenticationError):
        conversation.send(message)


def test_the_proof_differs_from_conversation_to_conversation() -> None:
    said = [
        converse(make().converse("broker"), server.first, server.final)[1]
        for server in (
            ScramServer("sha256", {"user": "pencil"}, nonce="one"),
            ScramServer("sha256", {"user": "pencil"}, nonce="two"),
        )
    ]
    assert said[0] != said[1]
    assert hashlib.sha256(said[0]).digest() != hashlib.sha256(said[1]).digest()
