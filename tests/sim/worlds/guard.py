"""SASL in front of the simulated brokers: logins, sessions that end, refusals, silence.

    wire ─► Guard ── what a broker may see ──► Broker
                └── answers of its own, a close ──► wire

It keeps Kafka's rules. Before a login, only ApiVersions, SaslHandshake and SaslAuthenticate may
come. After a session's end, only a SaslHandshake may. Two renewals need a second between them. A
request outside the rules closes the connection.

A client that keeps its gate breaks none of these rules, but for requests that the network delays.
So what a client writes is judged when it writes it (`note_written`), and each broken rule is an
entry of `violations`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_fast.control.authentication.mechanism import Conversation, Work
from kafka_fast.errors import ErrorCode
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersion, ApiVersionsRequest
from kafka_fast.protocol.apis.security.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from kafka_fast.protocol.apis.security.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from kafka_fast.protocol.schema import Response
from kafka_fast.testing.broker.connection import FrameBuffer
from tests.sim.worlds.clock import Clock

API_VERSIONS = ApiVersionsRequest.api_key
HANDSHAKE = SaslHandshakeRequest.api_key
AUTHENTICATE = SaslAuthenticateRequest.api_key
LOGIN_APIS = (HANDSHAKE, AUTHENTICATE)

MECHANISM = "SIMULATED"
PREFIX_SIZE = 6  # of a request: its length and API key
MAX_FRAME = 100 << 20
RENEWAL_INTERVAL = 1.0
NEVER = float("inf")
LIFETIMES_MS = (0, 1_000, 1_000, 1_500, 2_000, 3_000, 60_000)


@dataclass(frozen=True, slots=True)
class LoginPlan:
    """How logins go in one world."""

    lifetime_ms: int
    """Of a session; 0: forever."""
    rounds: int
    """Answers of the client's in one login."""
    version: int
    """The highest one of SaslAuthenticate; sessions end from 1 on."""
    has_work: bool
    """Whether a login needs work that takes its time."""
    refusals: float
    """Of all logins: that the broker refuses one, for no reason."""
    silence: float
    """Of all requests of logins: that the broker never answers one."""
    rotates: bool
    """The password changes, and the client hears of that later than the brokers."""


def make_login_plan(
    seed: int, *, calm: bool, lifetimes_ms: Sequence[int] = (300, *LIFETIMES_MS)
) -> LoginPlan | None:
    """Return the logins of a seed; two of three worlds have none.

    Args:
        seed: of the world.
        calm: nothing breaks.
        lifetimes_ms: what sessions may have, see `LoginPlan`.
    """
    source = random.Random(f"logins/{seed}")
    if source.random() > 1 / 3:
        return None
    return LoginPlan(
        lifetime_ms=source.choice(lifetimes_ms),
        rounds=source.choice((1, 1, 2, 3)),
        version=source.choice((0, 1, 2, 2, 2)),
        has_work=source.random() < 0.5,
        refusals=0.0 if calm else source.choice((0.0, 0.0, 0.1, 0.3)),
        silence=0.0 if calm else source.choice((0.0, 0.0, 0.05)),
        rotates=not calm and source.random() < 0.3,
    )


class SimulatedMechanism:
    """The client's side, with the password that the client knows by now."""

    name = MECHANISM

    def __init__(self, plan: LoginPlan, password: bytes) -> None:
        """Have logins say `password`.

        Args:
            plan: how logins go.
            password: the client's; may be set later.
        """
        self.password = password
        self._plan = plan

    def converse(self, host: str) -> Conversation:
        """Say the password, then give the broker's words back."""
        said = self.password
        if self._plan.has_work:
            said = yield Work(_Recall(self), "the password is looked for")
        for _ in range(self._plan.rounds):
            said = yield said


class _Recall:
    """Finds out what the password is by now."""

    def __init__(self, mechanism: SimulatedMechanism) -> None:
        self._mechanism = mechanism

    def __call__(self) -> bytes:
        return self._mechanism.password

    def __repr__(self) -> str:
        return "recall"  # a log of a seed names no address


class Admitted(NamedTuple):
    """What becomes of bytes that a client has sent."""

    forward: bytes
    """For the broker."""
    answer: bytes = b""
    close: bool = False


@dataclass(slots=True, eq=False)
class _Visitor:
    """One connection."""

    frames: FrameBuffer
    versions_asked: dict[int, int] = field(default_factory=dict)
    """ApiVersions requests without an answer: correlation id -> version."""
    rounds: int = -1
    """Of the login under way; -1: there is none, 0: SaslAuthenticate may come."""
    ends: float | None = None
    """When the session does; None: there was no login yet."""
    renewal_began: float = -NEVER
    is_logging_in: bool = False
    """The client has begun a dialogue that the broker has not accepted yet."""
    is_closed: bool = False
    written: bytearray = field(default_factory=bytearray)
    """The first bytes of a request that the client is writing."""
    write_began: float = 0.0
    left_to_write: int = 0
    """Bytes of a request whose first ones were judged."""


class Guard:
    """All connections of one world."""

    def __init__(self, plan: LoginPlan, source: random.Random, log: Callable[[str], None]) -> None:
        """Accept one password, which the client knows.

        Args:
            plan: how logins go.
            source: of the brokers' whims.
            log: takes what happens.
        """
        self.passwords = {b"first"}
        self.mechanism = SimulatedMechanism(plan, b"first")
        self.violations: list[str] = []
        self.logins = self.renewals = 0
        self.is_kind = False
        """Nothing is refused or left without an answer from now on, but for wrong passwords."""
        self._plan = plan
        self._source = source
        self._log = log
        self._visitors: dict[int, _Visitor] = {}

    @classmethod
    def of(cls, plan: LoginPlan | None, seed: str, log: Callable[[str], None]) -> Guard | None:
        """Return the guard of a world; None: it has no logins."""
        return None if plan is None else cls(plan, random.Random(seed), log)

    def plan_rotation(self, clock: Clock, duration: float) -> None:
        """Let the password change, if the plan says so, and the client hear of it later."""
        if self._plan.rotates:
            at = clock.now + self._source.random() * duration
            clock.at(at, self.rotate)
            clock.at(at + self._source.random() * duration, self.tell)

    def heal(self) -> None:
        """Refuse nothing any more, and let the client know the password."""
        self.is_kind = True
        self.tell()

    # ---- the password ----

    def rotate(self) -> None:
        """Accept another password only."""
        self.passwords = {b"second"}
        self._log("the password has changed")

    def tell(self) -> None:
        """Let the client know the password."""
        (self.mechanism.password,) = self.passwords

    # ---- connections ----

    def connect(self, connection_id: int) -> None:
        """A connection was accepted."""
        self._visitors[connection_id] = _Visitor(FrameBuffer(MAX_FRAME))

    def disconnect(self, connection_id: int) -> None:
        """A connection is gone."""
        self._visitors.pop(connection_id, None)

    # ---- the client's side ----

    def note_written(self, connection_id: int, data: bytes, now: float, *, late: bool) -> None:
        """Judge the requests that a client begins to write.

        Args:
            connection_id: the connection.
            data: the next bytes.
            now: the time.
            late: bytes may have waited for room in the socket.
        """
        visitor = self._visitors.get(connection_id)
        if visitor is None:
            return
        while data:
            skipped = min(visitor.left_to_write, len(data))
            visitor.left_to_write -= skipped
            data = data[skipped:]
            if not data:
                break
            if not visitor.written:
                visitor.write_began = now
            taken = PREFIX_SIZE - len(visitor.written)
            visitor.written += data[:taken]
            data = data[taken:]
            if len(visitor.written) == PREFIX_SIZE:
                self._judge(visitor, int.from_bytes(visitor.written[4:], "big"), late=late)
                visitor.left_to_write = int.from_bytes(visitor.written[:4], "big") - 2
                visitor.written.clear()

    def _judge(self, visitor: _Visitor, api_key: int, *, late: bool) -> None:
        if api_key in LOGIN_APIS or visitor.is_closed:
            visitor.is_logging_in = True
        elif visitor.ends is None:
            if api_key != API_VERSIONS:
                self._note(f"API {api_key} before the login")
        elif visitor.is_logging_in:
            self._note(f"API {api_key} in the middle of a renewal")
        elif visitor.write_began > visitor.ends and not late:
            self._note(f"API {api_key} after the session's end")

    def _note(self, what: str) -> None:
        self._log(f"violation: {what}")
        self.violations.append(what)

    # ---- the brokers' side ----

    def admit(self, connection_id: int, data: bytes, now: float) -> Admitted:
        """Take bytes that have arrived at a broker."""
        visitor = self._visitors.get(connection_id)
        if visitor is None or visitor.is_closed:
            return Admitted(b"")
        forward, answers = [], []
        for request in visitor.frames.feed(data):
            answer = self._handle(visitor, request, now)
            if answer is None:
                forward.append(len(request).to_bytes(4, "big") + request)
                continue
            answers.append(answer)
            if visitor.is_closed:
                break
        return Admitted(b"".join(forward), b"".join(answers), visitor.is_closed)

    def _handle(self, visitor: _Visitor, request: bytes, now: float) -> bytes | None:
        """Return the answer to a request; None: the broker gets it."""
        api_key = int.from_bytes(request[:2], "big")
        if api_key not in (API_VERSIONS, *LOGIN_APIS):
            if visitor.ends is not None and visitor.rounds < 0 and now <= visitor.ends:
                return None
            self._log(f"API {api_key} closes its connection: no session")
            visitor.is_closed = True
            return b""
        header, body = frame.decode_request(request)
        if api_key == HANDSHAKE and self._may_begin(visitor, now):
            assert isinstance(body, SaslHandshakeRequest)
            visitor.rounds = 0
            known = body.mechanism == MECHANISM
            code = 0 if known else ErrorCode.UNSUPPORTED_SASL_MECHANISM
            answer = SaslHandshakeResponse(error_code=code, mechanisms=[MECHANISM])
            return self._answer(answer, header)
        if api_key == AUTHENTICATE and visitor.rounds >= 0:
            assert isinstance(body, SaslAuthenticateRequest)
            return self._authenticate(visitor, body.auth_bytes, header, now)
        if api_key == HANDSHAKE:
            self._note("a renewal within a second of the last one")
            code = ErrorCode.ILLEGAL_SASL_STATE
            return self._answer(SaslHandshakeResponse(error_code=code), header)
        if api_key == AUTHENTICATE:
            visitor.is_closed = True  # the dialogue was refused before
            return b""
        visitor.versions_asked[header.correlation_id] = header.version
        return None

    def _may_begin(self, visitor: _Visitor, now: float) -> bool:
        if visitor.ends is None:
            return visitor.rounds < 0
        if visitor.ends == NEVER or now - visitor.renewal_began < RENEWAL_INTERVAL:
            return False
        visitor.renewal_began = now
        return True

    def _authenticate(
        self, visitor: _Visitor, said: bytes, header: frame.RequestHeader, now: float
    ) -> bytes:
        is_wrong = visitor.rounds == 0 and said not in self.passwords
        if is_wrong or self._is_moody(self._plan.refusals):
            visitor.is_closed = True
            code, text = ErrorCode.SASL_AUTHENTICATION_FAILED, "Authentication failed"
            return self._answer(
                SaslAuthenticateResponse(error_code=code, error_message=text), header
            )
        visitor.rounds += 1
        if visitor.rounds < self._plan.rounds:
            word = b"round %d" % visitor.rounds
            return self._answer(SaslAuthenticateResponse(auth_bytes=word), header)
        self.logins += visitor.ends is None
        self.renewals += visitor.ends is not None
        visitor.rounds = -1
        visitor.is_logging_in = False
        lifetime_ms = self._plan.lifetime_ms if header.version >= 1 else 0
        visitor.ends = now + lifetime_ms / 1000 if lifetime_ms else NEVER
        return self._answer(SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms), header)

    def _answer(self, response: Response, header: frame.RequestHeader) -> bytes:
        if self._is_moody(self._plan.silence):
            return b""
        return frame.encode_response(response, header.version, header.correlation_id)

    def _is_moody(self, probability: float) -> bool:
        return not self.is_kind and self._source.random() < probability

    def announce(self, connection_id: int, data: bytes) -> bytes:
        """Return what a broker answers; an answer to ApiVersions names the APIs of SASL, too."""
        visitor = self._visitors.get(connection_id)
        if visitor is None or not visitor.versions_asked or len(data) < 2 * 4:
            return data
        version = visitor.versions_asked.pop(int.from_bytes(data[4:8], "big"), None)
        size = 4 + int.from_bytes(data[:4], "big")
        if version is None or len(data) != size:
            return data
        correlation_id, response = frame.decode_api_versions_response(data[4:], version)
        if response.error_code:
            return data
        response.api_keys += [
            ApiVersion(api_key=HANDSHAKE, min_version=0, max_version=1),
            ApiVersion(api_key=AUTHENTICATE, min_version=0, max_version=self._plan.version),
        ]
        return frame.encode_response(response, version, correlation_id)
