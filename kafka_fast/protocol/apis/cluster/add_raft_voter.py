"""AddRaftVoter (80): make a controller a voter of the quorum (KIP-853).

Version 1 can answer before the new set of voters is committed.
"""

from __future__ import annotations

from kafka_fast.protocol.schema import (
    Request,
    Response,
    Struct,
    array,
    bool_,
    int16,
    int32,
    string,
    uint16,
    uuid,
)


class Listener(Struct):
    """An entry of `AddRaftVoterRequest.listeners`."""

    name: str = string("0+")
    host: str = string("0+")
    port: int = uint16("0+")


class AddRaftVoterRequest(Request, api_key=80, versions="0-1", flexible="0+"):
    """The controller, and how voters reach it; a null cluster id is not checked."""

    cluster_id: str | None = string("0+", nullable="0+")
    timeout_ms: int = int32("0+")
    voter_id: int = int32("0+")
    voter_directory_id: bytes = uuid("0+")
    listeners: list[Listener] = array(Listener, "0+")
    ack_when_committed: bool = bool_("1+", default=True)


class AddRaftVoterResponse(Response, api_key=80, versions="0-1", flexible="0+"):
    """Whether it is a voter now."""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+", ignorable=True)
