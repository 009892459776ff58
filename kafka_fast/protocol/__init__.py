"""Kafka's messages as declarative tables, and their codec. Part of the public wire API.

    apis/<subject>/      a module for each API: its request and response, for all versions
    consumer, control    blobs inside messages and records: subscriptions, transaction markers
    headers, frame       headers before a body; whole frames for client and broker
    versions             which version to speak with a broker
    schema               how tables are written; the methods of every message
    _program             a table compiled for one version; _decode and _encode run it

No I/O, no clock, no state: bytes in, messages out, and back. docs/protocol.md shows how to use it.
"""
