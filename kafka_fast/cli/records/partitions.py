"""Partitions and start of `kafka-fast consume` without a group."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kafka_fast import Consumer, TopicPartition
from kafka_fast.cli.records.points import BEGINNING, END, Point, time_meant
from kafka_fast.consumer.arguments import is_pattern
from kafka_fast.errors import PositionError, UnknownTopicOrPartition, UsageError

TopicOrPartition: TypeAlias = str | TopicPartition
"""A topic, or one partition."""

NAMED = 5
"""Most partitions that a message names."""

_LAST = 2**31 - 1


def parse_partition(text: str) -> int:
    """Return the number of a partition."""
    if not (text.isascii() and text.isdigit()) or int(text) > _LAST:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a partition")
    return int(text)


def check_topics(names: Iterable[str]) -> None:
    """Refuse patterns: the command reads topics by name.

    Raises:
        UsageError: a name is a pattern.
    """
    for name in names:
        if is_pattern(name):
            raise UsageError(f"{name!r} is no name of a topic: kafka-fast topics lists them")


def sources(topics: Iterable[str], numbers: Iterable[int]) -> list[TopicOrPartition]:
    """Return the partitions of one topic, or whole topics, without duplicates.

    Raises:
        UsageError: there are numbers of partitions, but several topics.
    """
    names, chosen = list(dict.fromkeys(topics)), dict.fromkeys(numbers)
    if not chosen:
        return [*names]
    if len(names) > 1:
        raise UsageError("--partition is of one topic, not of several")
    return [TopicPartition(names[0], number) for number in chosen]


def assign(consumer: Consumer, wanted: Sequence[TopicOrPartition], start: Point | None) -> None:
    """Have the consumer read from a point on; None: from the end.

    Raises:
        UnknownTopicOrPartition: the topic has no such partition.
        PositionError: a log does not, or no longer, contain the offset.
    """
    partitions = partitions_of(consumer, wanted)
    consumer.assign(partitions)
    if start is BEGINNING:
        consumer.seek_to_beginning()
    elif start is None or start is END:
        consumer.seek_to_end()
    elif start.is_time:
        consumer.seek_to_timestamp(start.time)
    else:
        _check_offset(consumer, partitions, start.number)
        for partition in partitions:
            consumer.seek(partition, start.number)


def partitions_of(
    consumer: Consumer, selection: Sequence[TopicOrPartition]
) -> list[TopicPartition]:
    """Return the partitions of topics, and those that are named.

    Raises:
        UnknownTopicOrPartition: there is no such partition.
    """
    known = {
        topic: [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        for topic in dict.fromkeys(
            chosen if isinstance(chosen, str) else chosen.topic for chosen in selection
        )
    }
    partitions: list[TopicPartition] = []
    for selected in selection:
        if isinstance(selected, str):
            partitions += known[selected]
        elif selected in known[selected.topic]:
            partitions.append(selected)
        else:  # a consumer would wait for such a partition
            raise UnknownTopicOrPartition(
                f"there is no partition {selected} (its topic has {len(known[selected.topic])})"
            )
    return partitions


def _check_offset(consumer: Consumer, partitions: Sequence[TopicPartition], offset: int) -> None:
    """Refuse an offset that is not in all logs: the reset policy would skip records in silence.

    Raises:
        PositionError: a log does not contain the offset; the error names the first such partition.
    """
    firsts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    without = [
        partition for partition in partitions if not firsts[partition] <= offset <= ends[partition]
    ]
    if not without:
        return
    text = ", ".join(
        f"{partition} ({firsts[partition]} to {ends[partition]})" for partition in without[:NAMED]
    )
    if len(without) > NAMED:
        text += f" and {len(without) - NAMED} more"
    if len(without) < len(partitions):
        text += ": choose others with --partition"
    else:
        text += time_meant(offset)
    raise PositionError(
        f"offset {offset} is not in {text}",
        topic=without[0].topic,
        partition=without[0].partition,
        offset=offset,
    )
