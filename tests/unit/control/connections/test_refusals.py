"""Which waits a refused login ends."""

from __future__ import annotations

import pytest

from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.connections.links import Link, Links
from kafka_fast.control.connections.negotiation import NodeVersions
from kafka_fast.control.connections.refusals import Refusals
from kafka_fast.control.diagnosis.troubles import Reason
from kafka_fast.errors import AuthenticationError, KafkaConnectionError, TlsError
from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsResponse

NODE_1 = ConnectionKey(Role.DATA, 1)


def links_with_one() -> Links:
    links = Links()
    links.add(Link(7, NODE_1, NodeVersions("node 1", ApiVersionsResponse())))
    return links


def test_a_refusal_ends_the_waits_of_a_client_without_any_link() -> None:
    refusals = Refusals(Links())
    watch = refusals.watch()
    watch.raise_refusal()
    assert not watch.has_news
    refusals.note(AuthenticationError("bootstrap: no"))
    assert watch.has_news
    with pytest.raises(AuthenticationError, match=r"^bootstrap: no$"):
        watch.raise_refusal()
    assert not watch.has_news
    watch.raise_refusal()
    assert not refusals.watch().has_news, "a later wait waits for the next try"


def test_a_client_with_another_link_waits_on() -> None:
    refusals = Refusals(links_with_one())
    watch = refusals.watch()
    refusals.note(AuthenticationError("node 2: no"))
    watch.raise_refusal(lambda: Reason("its coordinator is looked for"))
    watch.raise_refusal(lambda: Reason("no connection yet", KafkaConnectionError("refused")))


def test_a_wait_that_needs_the_refusing_node_ends() -> None:
    refusals = Refusals(links_with_one())
    watch = refusals.watch()
    refusals.note(TlsError("node 2: certificate expired"))
    lacks = Reason("no connection to its coordinator", TlsError("node 2: certificate expired"))
    with pytest.raises(TlsError, match="expired") as caught:
        watch.raise_refusal(lambda: lacks)
    assert caught.value is not lacks.cause
