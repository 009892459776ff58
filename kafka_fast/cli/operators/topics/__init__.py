"""`kafka-fast topics`: what there is, what it is made of; create, change and delete topics."""

from __future__ import annotations

from kafka_fast.cli.frame.nouns import Noun
from kafka_fast.cli.operators.topics.alteration import ALTER
from kafka_fast.cli.operators.topics.creation import CREATE
from kafka_fast.cli.operators.topics.deletion import DELETE
from kafka_fast.cli.operators.topics.description import DESCRIBE
from kafka_fast.cli.operators.topics.extension import PARTITIONS
from kafka_fast.cli.operators.topics.listing import LIST
from kafka_fast.cli.operators.topics.offsets import OFFSETS

NOUN = Noun(
    "topics",
    help="list, describe, create, delete and change topics; their offsets",
    description="Look after topics. Without a command, and with names or options only, it lists "
    "them.",
    verbs=(LIST, DESCRIBE, CREATE, DELETE, ALTER, PARTITIONS, OFFSETS),
    default="list",
)

add_parser = NOUN.add_parser
