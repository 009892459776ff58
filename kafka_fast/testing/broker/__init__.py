"""The embedded broker: Kafka's rules in memory, driven by bytes and `now`.

The core (everything but `serving`) calls no clock, thread, socket or global randomness, so the
simulation runs it under a virtual clock. It shares protocol/ and record/ with the client and must
not know control/ or dataplane/: the two sides meet on the wire only.

    Cluster    topics, partitions, logs, leaders, producer ids: what all brokers agree on
    Broker     one node: connections, frames in, replies out
    Faults     what goes wrong, on purpose and reproducibly
"""
