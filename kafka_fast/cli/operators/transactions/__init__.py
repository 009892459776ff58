"""`kafka-fast txn`: list and describe transactions, find those that hang, abort them."""

from __future__ import annotations

from kafka_fast.cli.frame.nouns import Noun
from kafka_fast.cli.operators.transactions.abortion import ABORT
from kafka_fast.cli.operators.transactions.coordinated import DESCRIBE, LIST
from kafka_fast.cli.operators.transactions.hanging import HANGING

NOUN = Noun(
    "txn",
    help="list and describe transactions; find and abort those that hang",
    description="Look after transactions. Without a command it lists them.",
    verbs=(LIST, DESCRIBE, HANGING, ABORT),
    default="list",
)

add_parser = NOUN.add_parser
