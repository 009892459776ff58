"""`kafka-fast cluster`: its nodes, its features, its controllers, and where its logs are."""

from __future__ import annotations

from kafka_fast.cli.frame.nouns import Noun
from kafka_fast.cli.operators.cluster.features import DISABLE, DOWNGRADE, FEATURES, UPGRADE
from kafka_fast.cli.operators.cluster.log_dirs import LOG_DIRS, MOVE_REPLICA
from kafka_fast.cli.operators.cluster.nodes import (
    DESCRIBE,
    UNREGISTER_BROKER,
    UNREGISTER_CONTROLLER,
)
from kafka_fast.cli.operators.cluster.quorum import ADD_VOTER, QUORUM, REMOVE_VOTER

NOUN = Noun(
    "cluster",
    help="the nodes of a cluster, its features, controllers and log directories",
    description="Look after a cluster. Without a command it shows the nodes.",
    verbs=(
        DESCRIBE,
        UNREGISTER_BROKER,
        UNREGISTER_CONTROLLER,
        FEATURES,
        UPGRADE,
        DOWNGRADE,
        DISABLE,
        QUORUM,
        ADD_VOTER,
        REMOVE_VOTER,
        LOG_DIRS,
        MOVE_REPLICA,
    ),
    default="describe",
)

add_parser = NOUN.add_parser
