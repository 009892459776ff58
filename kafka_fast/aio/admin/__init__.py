"""The admin client for asyncio: `kafka_fast.admin`, awaited."""

from __future__ import annotations

from kafka_fast.aio.admin.client import Admin

__all__ = ["Admin"]
