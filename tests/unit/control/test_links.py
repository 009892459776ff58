"""The numbers of links: a connection's own, and the client's."""

from __future__ import annotations

import logging
from typing import Any

from kafka_fast.config import producer_settings
from kafka_fast.control.links import Links
from kafka_fast.control.metadata import Node
from kafka_fast.control.plane import CloseLink, CloseReason, LinkClosed, OpenLink
from kafka_fast.control.troubles import Troubles

NODE = 3


def ignore(*event: Any) -> None:
    """Take note of nothing."""


def new_links() -> Links:
    settings = producer_settings({"bootstrap.servers": "10.0.0.1:9092"}, {})
    troubles = Troubles(logging.getLogger("test"))
    return Links(
        settings, "me", lambda: 0.5, troubles, on_ready=ignore, on_lost=ignore, on_failed=ignore
    )


def commands(links: Links) -> list[Any]:
    return list(iter(links.poll_command, None))


def test_the_end_of_a_moved_nodes_old_link_is_not_that_of_its_new_one() -> None:
    links = new_links()
    links.want_node(Node(NODE, "10.0.0.1", 9092), 0.0)
    (old,) = commands(links)
    links.want_node(Node(NODE, "10.0.0.2", 9092), 1.0)
    closed, new = commands(links)
    assert closed == CloseLink(old.link_id)
    assert isinstance(new, OpenLink)
    assert new.ip == "10.0.0.2"
    links.handle_closed(LinkClosed(old.link_id, CloseReason.BY_US, 0), 1.0)
    assert links.is_connecting(NODE)
    assert commands(links) == []


def test_failed_connects_leave_no_numbers_behind() -> None:
    links = new_links()
    node = Node(NODE, "10.0.0.1", 9092)
    now = 0.0
    for _ in range(20):
        links.want_node(node, now)
        now = max(now, links.next_deadline())
        links.tick(now)
        for command in commands(links):
            if isinstance(command, OpenLink) and command.link_id % 2:
                links.handle_connect_failed(command.link_id, ConnectionRefusedError(), now)
    assert len(links._opened) <= 1
    assert len(links._link_ids) <= 1
