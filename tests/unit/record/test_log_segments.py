"""Segments as Apache Kafka 2.8.2 wrote them, in each message format, with each codec.

`tests/integration/consumer/test_log_segments.py` has a broker write them again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.reference.log_segments import check_segment, segment_names

FOLDER = Path(__file__).parents[2] / "corpus" / "segments"


@pytest.mark.parametrize("name", segment_names())
def test_segment(name: str) -> None:
    check_segment(name, (FOLDER / f"{name}.log").read_bytes())
