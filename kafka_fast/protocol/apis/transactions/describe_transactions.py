"""DescribeTransactions (65): state and partitions of transactions (KIP-664)."""

from __future__ import annotations

from kafka_fast.protocol.schema import Request, Response, Struct, array, int16, int32, int64, string


class DescribeTransactionsRequest(Request, api_key=65, versions="0", flexible="0+"):
    """Ids of transactions that the asked broker coordinates."""

    transactional_ids: list[str] = array(string, "0+")


class TopicData(Struct):
    """An entry of `TransactionState.topics`."""

    topic: str = string("0+")
    partitions: list[int] = array(int32, "0+")


class TransactionState(Struct):
    """An entry of `DescribeTransactionsResponse.transaction_states`."""

    error_code: int = int16("0+")
    transactional_id: str = string("0+")
    transaction_state: str = string("0+")
    transaction_timeout_ms: int = int32("0+")
    transaction_start_time_ms: int = int64("0+")
    producer_id: int = int64("0+")
    producer_epoch: int = int16("0+")
    topics: list[TopicData] = array(TopicData, "0+")


class DescribeTransactionsResponse(Response, api_key=65, versions="0", flexible="0+"):
    """The transactions as their coordinator has them."""

    throttle_time_ms: int = int32("0+")
    transaction_states: list[TransactionState] = array(TransactionState, "0+")
