"""DescribeTransactions and ListTransactions: what a coordinator says of its transactions."""

from __future__ import annotations

import time
from typing import Any

from kafka_fast import errors
from kafka_fast.protocol.apis.transactions.list_transactions import ListTransactionsRequest
from tests.integration.scenarios.groups import ready
from tests.integration.scenarios.steps import new_topic, unique_name
from tests.integration.scenarios.transactions.conftest import Site

CLOCKS_DIFFER_MS = 60_000


def test_a_transaction_is_described(site: Site, topic: str) -> None:
    unknown = site.unready_producer().described()
    assert unknown.error_code == errors.TransactionalIdNotFound.code
    producer = site.unready_producer().init(timeout_ms=30_000)
    state = producer.described()
    assert (state.error_code, state.transaction_state) == (0, "Empty")
    assert (state.transaction_timeout_ms, state.transaction_start_time_ms) == (30_000, -1)
    assert (state.producer_id, state.producer_epoch) == (producer.producer_id, 0)
    other, group = new_topic(site.client), unique_name()
    ready(site.client, group)
    producer.added(topic, 2, 0)
    producer.added(other)
    assert producer.add_offsets(group) == 0
    state = producer.described()
    assert state.transaction_state == "Ongoing"
    assert abs(state.transaction_start_time_ms - time.time() * 1000) < CLOCKS_DIFFER_MS
    topics = {one.topic: sorted(one.partitions) for one in state.topics}
    assert topics.pop("__consumer_offsets")[0] >= 0
    assert topics == {topic: [0, 2], other: [0]}
    started = state.transaction_start_time_ms
    producer.end(commit=True)
    state = producer.described()
    assert (state.topics, state.transaction_start_time_ms) == ([], started)


def test_transactions_are_listed(site: Site, topic: str) -> None:
    prefix = unique_name()
    names = [f"{prefix}-{number}" for number in range(2)]
    producers = []
    for name in names:
        producer = site.unready_producer()
        producer.transactional_id = name
        producers.append(producer.init())
    producers[0].added(topic)

    def listed(**filters: Any) -> list[str]:
        answer = site.client.ask(ListTransactionsRequest(**filters), 2)
        assert (answer.error_code, answer.unknown_state_filters) == (0, [])
        listed_ids = {one.transactional_id for one in answer.transaction_states}
        return [name for name in names if name in listed_ids]

    first, second = names
    assert listed() == names
    assert listed(state_filters=["Ongoing"]) == [first]
    assert listed(state_filters=["Empty", "Ongoing"]) == names
    assert listed(state_filters=["Dead", "PrepareEpochFence"]) == []
    assert listed(producer_id_filters=[producers[1].producer_id]) == [second]
    assert listed(duration_filter=100_000) == [second]  # none is open: since the beginning of time
    assert listed(transactional_id_pattern=first) == [first]
    assert listed(transactional_id_pattern=prefix) == []
    assert listed(transactional_id_pattern=f"{prefix}-.") == names
    assert listed(transactional_id_pattern="") == names
    strange = site.client.ask(ListTransactionsRequest(state_filters=["ongoing", "Empty"]), 0)
    assert strange.unknown_state_filters == ["ongoing"]
    assert second in {one.transactional_id for one in strange.transaction_states}
    refused = site.client.ask(ListTransactionsRequest(transactional_id_pattern="("), 2)
    assert refused.error_code == errors.InvalidRegularExpression.code
