"""`kafka-fast groups`: list and describe groups, say where they go on, remove members, delete."""

from __future__ import annotations

from kafka_fast.cli import lag
from kafka_fast.cli.frame.nouns import Noun
from kafka_fast.cli.operators.groups.deletion import DELETE
from kafka_fast.cli.operators.groups.description import DESCRIBE
from kafka_fast.cli.operators.groups.forgetting import DELETE_OFFSETS
from kafka_fast.cli.operators.groups.listing import LIST
from kafka_fast.cli.operators.groups.members import MEMBERS
from kafka_fast.cli.operators.groups.resets import RESET

NOUN = Noun(
    "groups",
    help="list, describe, reset and delete groups; their lag and members",
    description="Look after groups of all types. Without a command it lists them.",
    verbs=(LIST, DESCRIBE, MEMBERS, RESET, DELETE_OFFSETS, DELETE),
    default="list",
    also={"lag": lag.add_parser},
)

add_parser = NOUN.add_parser
