"""The producer: the blocking, thread-safe public client for sending records."""

from __future__ import annotations

from kafka_fast.producer.base import OnDelivery
from kafka_fast.producer.client import Producer
from kafka_fast.sending._delivery import DeliveryFuture
from kafka_fast.sending.bulk._batch_future import BatchFuture

__all__ = ["BatchFuture", "DeliveryFuture", "OnDelivery", "Producer"]
