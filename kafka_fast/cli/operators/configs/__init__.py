"""`kafka-fast configs`: what topics, brokers, groups and others are set to; change it."""

from __future__ import annotations

from kafka_fast.cli.frame.nouns import Noun
from kafka_fast.cli.operators.configs.alteration import ALTER
from kafka_fast.cli.operators.configs.description import DESCRIBE

NOUN = Noun(
    "configs",
    help="show and change settings of topics, brokers, groups and others",
    description="Look after the settings of topics, brokers, loggers, groups and metrics.",
    verbs=(DESCRIBE, ALTER),
)

add_parser = NOUN.add_parser
