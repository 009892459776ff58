"""`kafka-fast reassign`: plan which brokers have the replicas of partitions, and move them."""

from __future__ import annotations

from kafka_fast.cli.frame.nouns import Noun
from kafka_fast.cli.operators.reassign.planning import PLAN
from kafka_fast.cli.operators.reassign.progress import CANCEL, STATUS
from kafka_fast.cli.operators.reassign.running import RUN

NOUN = Noun(
    "reassign",
    help="move replicas to other brokers: plan, run, status, cancel",
    description="Move replicas to other brokers, with files as kafka-reassign-partitions has them. "
    "Needs Kafka 2.4.",
    verbs=(PLAN, RUN, STATUS, CANCEL),
)

add_parser = NOUN.add_parser
