"""Compression by Python packages on the control thread, if the build has no library for a codec.

Thread: control.
"""

from __future__ import annotations

import warnings
from functools import partial

from kafka_fast.logs import get_logger
from kafka_fast.net._compressor import Handover
from kafka_fast.record import Codec, compress

logger = get_logger("kafka_fast.producer")


class PackageCompressor:
    """Compresses the batches that the data plane hands over."""

    def __init__(self, codec: Codec, level: int) -> None:
        """Find the package, and warn that it is slow.

        Raises:
            ImportError: no package for this codec is installed.
        """
        self._compress = partial(compress, codec, level=None if codec is Codec.SNAPPY else level)
        self._compress(b"")  # a missing package raises here, not in the control thread
        warnings.warn(
            f"this build has no library for {codec.name.lower()}: a Python package compresses, "
            "which is slow; `kafka-fast info` says how to mend it",
            RuntimeWarning,
            stacklevel=5,
        )
        self.handover = Handover()

    def work(self) -> None:
        """Compress all batches that were handed over."""
        self.handover.work(self._compress, _report)


def _report(error: Exception) -> None:
    logger.error("a batch could not be compressed and goes out as it is", exc_info=error)
