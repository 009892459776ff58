"""Every endpoint and every address of it is tried once in a round, in a new order each time."""

from __future__ import annotations

import random

from kafka_fast.config import Address
from kafka_fast.control.connections.bootstrap import MAX_ADDRESSES, Candidate, Candidates

A, B, C = Address("a", 1), Address("b", 2), Address("c", 3)


def run_round(candidates: Candidates, names: dict[str, list[str]]) -> list[str]:
    """Resolve and try everything there is in a round; return the addresses tried."""
    tried = []
    candidates.begin_round()
    while (step := candidates.next()) is not None:
        if isinstance(step, Address):
            assert candidates.resolving == step
            candidates.handle_resolved(names[step.host])
            assert candidates.resolving is None
        else:
            tried.append(f"{step.ip}:{step.endpoint.port}")
    return tried


def test_all_addresses_of_a_name_in_the_resolvers_order() -> None:
    candidates = Candidates([A], random.random)
    assert run_round(candidates, {"a": ["1.1.1.1", "2.2.2.2", "1.1.1.1"]}) == [
        "1.1.1.1:1",
        "2.2.2.2:1",
    ]


def test_all_endpoints_and_addresses_of_one_endpoint_together() -> None:
    names = {"a": ["1", "2"], "b": [], "c": ["3"]}
    orders = set()
    for seed in range(30):
        tried = run_round(Candidates([A, B, C], random.Random(seed).random), names)
        assert sorted(tried) == ["1:1", "2:1", "3:3"]
        assert tried.index("2:1") - tried.index("1:1") == 1
        orders.add(tuple(tried))
    assert len(orders) == 2, "clients begin at different brokers"


def test_literal_addresses_need_no_lookup() -> None:
    candidates = Candidates([Address("10.0.0.1", 9092)], random.random)
    candidates.begin_round()
    step = candidates.next()
    assert isinstance(step, Candidate)
    assert (step.ip, str(step)) == ("10.0.0.1", "10.0.0.1:9092")
    six = Candidates([Address("::1", 9092)], random.random)
    six.begin_round()
    assert str(six.next()) == "[::1]:9092"


def test_round_begun_anew_forgets_what_was_left() -> None:
    candidates = Candidates([A], random.random)
    assert run_round(candidates, {"a": ["1", "2"]}) == run_round(candidates, {"a": ["1", "2"]})
    candidates.begin_round()
    assert candidates.next() == A
    candidates.begin_round()
    candidates.handle_resolved(["9"])
    assert candidates.next() == A, "a late answer of the round before is not used"


def test_many_addresses_are_spread_over_rounds() -> None:
    many = [f"10.0.0.{i}" for i in range(50)]
    candidates = Candidates([A], random.random)
    tried = [run_round(candidates, {"a": many}) for _ in range(4)]
    assert all(len(addresses) == MAX_ADDRESSES for addresses in tried)
    assert {address for addresses in tried for address in addresses} == {f"{ip}:1" for ip in many}


def test_names_in_errors() -> None:
    assert str(Candidate(A, "1.2.3.4")) == "a:1 [1.2.3.4]"
    assert str(Candidates([A, B], random.random)) == "a:1, b:2"
