"""Consumer groups as the brokers coordinate them: both protocols, and the committed offsets.

    Coordinator      one broker's part: the groups whose partition of the offsets topic it leads,
                     and their timers
    ClassicGroup     join, sync, heartbeat: the members assign
    ConsumerGroup    KIP-848: the broker assigns, members reconcile
    GroupOffsets     what a group has committed

Groups are kept for the whole cluster, as Kafka keeps them in its offsets topic. What a group would
not have written there is lost when its coordinator moves: rebalances under way, promised member
ids, timers.
"""
