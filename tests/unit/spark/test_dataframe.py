"""What is no DataFrame, or no RDD, and the function that takes it."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.errors import UsageError
from kafka_fast.spark import write_df, write_rdd


class Frame:
    """A DataFrame, as far as the check of arguments looks."""

    mapInArrow = None  # noqa: N815  Spark's name
    isStreaming = True  # noqa: N815


class Rdd:
    """The same of an RDD."""

    mapPartitions = None  # noqa: N815


CONFIG = {"bootstrap.servers": "a:1"}


@pytest.mark.parametrize(
    ("write", "given", "said"),
    [
        (write_df, CONFIG, "write_df takes a DataFrame of Spark's, not dict: write_df(df, config,"),
        (write_df, Rdd(), "a DataFrame of Spark's, not Rdd: write_rdd(rdd, config, topic)"),
        (write_rdd, [b"1"], "write_rdd takes an RDD, not list: write_rdd(rdd, config, topic)"),
        (write_rdd, Frame(), "an RDD, not Frame: write_df(df, config, topic)"),
    ],
)
def test_the_error_names_the_function_that_takes_it(write: Any, given: Any, said: str) -> None:
    with pytest.raises(TypeError) as raised:
        write(given, CONFIG, "t")
    assert said in str(raised.value)


def test_a_stream_has_no_end() -> None:
    with pytest.raises(UsageError, match=r"a streaming DataFrame has no end: .*foreachBatch"):
        write_df(Frame(), CONFIG, "t")  # type: ignore[arg-type]
