"""`kafka-fast topics`: what there is, what it is made of; create, delete and extend topics."""

from __future__ import annotations

from kafka_fast.cli.frame.nouns import Noun
from kafka_fast.cli.operators.topics.creation import CREATE
from kafka_fast.cli.operators.topics.deletion import DELETE
from kafka_fast.cli.operators.topics.description import DESCRIBE
from kafka_fast.cli.operators.topics.extension import PARTITIONS
from kafka_fast.cli.operators.topics.listing import LIST

NOUN = Noun(
    "topics",
    help="list, describe, create, delete and extend topics",
    description="Look after topics. Without a command, and with names or options only, it lists "
    "them.",
    verbs=(LIST, DESCRIBE, CREATE, DELETE, PARTITIONS),
    default="list",
)

add_parser = NOUN.add_parser
