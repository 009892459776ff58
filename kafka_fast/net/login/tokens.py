"""One client's token: fetched when it is needed, kept for most of its life, and fetched only once.

A token is replaced after 80 % of its life, by the next link that needs one. Brokers ask for a new
authentication before a token ends (KIP-368), so that there is one in time, without a thread.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotDoneError

from kafka_fast.config.security._security_settings import SaslSettings
from kafka_fast.control.authentication.mechanism import WORK_TIMEOUT
from kafka_fast.control.authentication.oauthbearer import Token
from kafka_fast.control.connections.backoff import Backoff
from kafka_fast.errors import (
    AuthenticationError,
    ConnectionReason,
    KafkaConnectionError,
    fresh_copy,
)
from kafka_fast.instants import LONG_AGO
from kafka_fast.logs import get_logger, in_seconds
from kafka_fast.values import Value

__all__ = ["FetchToken", "TokenCache", "World", "refresh_time"]

log = get_logger(__name__)

FetchToken = Callable[[], Token]
"""Gets a new token, or raises as `TokenSource.current` does. May block, but not forever."""


class World(Value):
    """The clock, the sleep and the random source of a token cache."""

    wall: Callable[[], float] = time.time
    """Returns the Unix time in seconds, in which tokens end."""
    sleep: Callable[[float], None] = time.sleep
    random: Callable[[], float] = random.random


def refresh_time(token: Token, now: float, settings: SaslSettings, chance: float) -> float:
    """Return when a token is to be replaced, by the rules of Kafka's Java client.

    Args:
        token: the token; one without an end is replaced at once.
        now: Unix seconds.
        settings: factor, jitter, shortest period and buffer.
        chance: a random number in [0, 1).
    """
    if token.expires_at is None:
        return LONG_AGO
    share = settings.refresh_window_factor + settings.refresh_window_jitter * chance
    earliest = now + settings.refresh_min_period_s
    latest = token.expires_at - settings.refresh_buffer_s
    if earliest >= latest:  # too short a life for both limits, which then hold no more
        return now + (token.expires_at - now) * share
    began = now if token.issued_at is None else token.issued_at
    return max(min(began + (token.expires_at - began) * share, latest), earliest)


class TokenCache:
    """A `TokenSource`. Any thread; links that ask at the same time get one answer."""

    def __init__(
        self, fetch: FetchToken, what: str, settings: SaslSettings, world: World | None = None
    ) -> None:
        """Start without a token; the first call of `current` fetches one.

        Args:
            fetch: gets a new token. Called by one thread at a time, but for calls that hang.
            what: what `fetch` does, for people.
            settings: when a token is replaced, and how often a failed fetch is tried again.
            world: replaced in tests.
        """
        self._fetch = fetch
        self._what = what
        self._settings = settings
        self._world = world or World()
        self._backoff = Backoff(
            settings.retry_backoff_ms, settings.retry_backoff_max_ms, self._world.random
        )
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._refresh_at = LONG_AGO
        self._failures = 0  # in a row, to replace a token that is still good
        self._fetching: Future[Token] | None = None
        self._fetch_began = LONG_AGO

    @property
    def what(self) -> str:
        """What `current` does, for people."""
        return self._what

    def current(self) -> Token:
        """Return a token that is good now. May block for some seconds.

        Raises:
            AuthenticationError: there is none.
            KafkaConnectionError: there is none for now.
        """
        with self._lock:
            kept = self._good_token()
            if kept is not None and self._world.wall() < self._refresh_at:
                return kept
            others = self._fetching
            if self._world.wall() - self._fetch_began > WORK_TIMEOUT:
                others = None  # it hangs; nobody waits for it any more
            if others is None:
                mine = self._fetching = Future()
                self._fetch_began = self._world.wall()
            elif kept is not None:
                return kept  # another link fetches the next one
        if others is not None:
            return self._result_of(others)
        try:
            token = self._renewed() if kept is None else self._replaced(kept)
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(token)
            return token
        finally:
            with self._lock:
                if self._fetching is mine:
                    self._fetching = None

    def handle_refused(self, token: Token) -> None:
        """Forget a token: a broker has refused it."""
        with self._lock:
            if self._token is token:
                self._token = None

    def _good_token(self) -> Token | None:
        token = self._token
        if token is None or token.expires_at is None or token.expires_at <= self._world.wall():
            return None
        return token

    def _result_of(self, others: Future[Token]) -> Token:
        try:
            error = others.exception(WORK_TIMEOUT)
        except NotDoneError:
            text = f"needs a token: {self._what}, for more than {WORK_TIMEOUT:g} s"
            raise KafkaConnectionError(text, reason=ConnectionReason.LOGIN) from None
        if error is None:
            return others.result()
        # Threads that raise one object would write into each other's traceback.
        raise fresh_copy(error) if isinstance(error, KafkaConnectionError) else error

    def _renewed(self) -> Token:
        """Fetch a token for links that cannot do without: try again for a while if it may help."""
        waited, failures = 0.0, 0
        while True:
            try:
                return self._fetched()
            except AuthenticationError:
                raise
            except KafkaConnectionError as error:
                delay = self._backoff.delay(failures)
                if waited + delay > self._backoff.maximum:
                    raise
                log.info("%s: failed, tried again: %s", self._what, error)
            self._world.sleep(delay)
            waited += delay
            failures += 1

    def _replaced(self, kept: Token) -> Token:
        """Fetch the next token, or return the one that is still good."""
        try:
            return self._fetched()
        except KafkaConnectionError as error:
            assert kept.expires_at is not None
            now = self._world.wall()
            with self._lock:
                self._refresh_at = now + self._backoff.delay(self._failures)
                self._failures += 1
            log.warning(
                "%s: failed; the old token is good for another %s: %s",
                self._what,
                in_seconds(kept.expires_at - now),
                error,
            )
            return kept

    def _fetched(self) -> Token:
        token = self._fetch()
        now = self._world.wall()
        if token.expires_at is not None and token.expires_at <= now:
            ago = in_seconds(now - token.expires_at)
            raise AuthenticationError(f"needs a token, and the new one expired {ago} ago")
        with self._lock:
            self._token = token
            self._refresh_at = refresh_time(token, now, self._settings, self._world.random())
            self._failures = 0
        log.debug("%s: done", self._what)
        return token
