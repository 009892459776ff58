"""kafka_fast: an Apache Kafka client for Python with a compiled core."""

from kafka_fast._version import __version__

__all__ = ["__version__"]
