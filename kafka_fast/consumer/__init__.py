"""The consumer: the blocking public client for reading records, alone or in a group."""

from __future__ import annotations

from kafka_fast.consumer.client import Consumer
from kafka_fast.consumer.listener import RebalanceEvent, RebalanceListener

__all__ = ["Consumer", "RebalanceEvent", "RebalanceListener"]
