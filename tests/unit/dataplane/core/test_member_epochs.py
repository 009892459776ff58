"""Repeated heartbeats go by the epochs and generations that answers tell.

By KIP-848 any answer may tell one; a classic member is told in the answer to JoinGroup.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_fast.control.messages import RawResponse
from kafka_fast.errors import UsageError
from kafka_fast.protocol import frame
from kafka_fast.protocol.apis.groups.consumer_group_heartbeat import (
    Assignment,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from kafka_fast.protocol.apis.groups.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_fast.protocol.apis.groups.join_group import JoinGroupRequest, JoinGroupResponse
from tests.unit.dataplane.fetch.fetch_rig import FetchRig

TOKEN, BETWEEN = 9, 10
VERSION = 1
PERIOD = 5.0
TIMEOUT = 20.0
ALIVE = 1000.0
MEMBER = "a-member"
OWNED = Assignment(topic_partitions=[])


def beat(epoch: int) -> bytes:
    body = ConsumerGroupHeartbeatRequest(group_id="g", member_id=MEMBER, member_epoch=epoch)
    return frame.encode_request(body, VERSION, 0, "rig")


EPOCH_POS = next(pos for pos, (a, b) in enumerate(zip(beat(0), beat(-1), strict=True)) if a != b)


def well(epoch: int, interval_ms: int = 5_000, **more: object) -> ConsumerGroupHeartbeatResponse:
    """Return the answer to one that had nothing to tell."""
    said: dict[str, object] = {
        "member_id": MEMBER,
        "member_epoch": epoch,
        "heartbeat_interval_ms": interval_ms,
    }
    return ConsumerGroupHeartbeatResponse(**{**said, **more})  # type: ignore[arg-type]


def body_of(response: ConsumerGroupHeartbeatResponse) -> bytes:
    return frame.encode_response(response, VERSION, 0)[8:]


def rig_with_member(epoch: int = 3) -> FetchRig:
    """Return a rig that sends a member's heartbeats; epoch 0: it has sent the join, too."""
    rig = FetchRig(start=False)
    rig.plane.set_alive_until(ALIVE)
    interval_ms = 5_000 if epoch else 0
    expected = body_of(well(epoch, interval_ms))
    period = interval_ms / 1000
    rig.start_heartbeats(1, TOKEN, beat(epoch), period, expected, TIMEOUT, period, EPOCH_POS)
    rig.turn()
    if epoch == 0:
        rig.send_between(TOKEN, BETWEEN, 0, beat(0), TIMEOUT)
        assert epochs(rig) == [0]
    return rig


def epochs(rig: FetchRig) -> list[int]:
    """Return the epochs of the heartbeats sent since the last call."""
    member_epochs = []
    for data in rig.frames():
        _, request = frame.decode_request(data[4:])
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        member_epochs.append(request.member_epoch)
    return member_epochs


class Talk:
    """A broker that answers the heartbeats of a rig, one by one."""

    def __init__(self, rig: FetchRig, answered: int = 0) -> None:
        self.rig = rig
        self.answered = answered

    def answer(self, body: bytes) -> None:
        data = self.answered.to_bytes(4, "big") + body
        self.answered += 1
        self.rig.arrive(len(data).to_bytes(4, "big") + data)

    def up(self) -> list[tuple[int, bytes]]:
        """Return what went up since the last call."""
        return [(event.token, (event.frame or b"")[4:]) for event in self.rig.take(RawResponse)]

    def next_epoch(self, after: float = PERIOD) -> int:
        """Return the epoch of the next heartbeat, which goes out so many seconds from now."""
        self.rig.advance(after - 0.002)
        assert epochs(self.rig) == []
        self.rig.advance(0.004)
        (epoch,) = epochs(self.rig)
        return epoch


def test_nothing_is_repeated_before_there_is_an_epoch() -> None:
    rig = rig_with_member(0)
    talk = Talk(rig)
    error = body_of(ConsumerGroupHeartbeatResponse(error_code=14))
    talk.answer(error)
    assert talk.up() == [(BETWEEN, error)]
    rig.advance(10 * PERIOD)
    assert epochs(rig) == []
    rig.send_between(TOKEN, BETWEEN + 1, 1, beat(0), TIMEOUT)
    assert epochs(rig) == [0]
    joined = body_of(well(7, assignment=OWNED))
    talk.answer(joined)
    assert talk.up() == [(BETWEEN + 1, joined)]
    for _ in range(3):
        assert talk.next_epoch() == 7
        talk.answer(body_of(well(7)))
    assert rig.events == []


def test_a_new_epoch_is_gone_by_at_once() -> None:
    """Also while nobody hears of it: here nothing is done about what goes up."""
    rig = rig_with_member()
    talk = Talk(rig)
    for epoch in (3, 4, 5):
        assert talk.next_epoch() == epoch
        news = body_of(well(epoch + 1, assignment=OWNED))
        talk.answer(news)
        assert talk.up() == [(TOKEN, news)]
    assert talk.next_epoch() == 6
    talk.answer(body_of(well(6)))
    assert rig.events == []


def test_a_new_pace_is_kept() -> None:
    rig = rig_with_member()
    talk = Talk(rig)
    assert talk.next_epoch() == 3
    talk.answer(body_of(well(3, 1_000)))
    assert len(talk.up()) == 1
    for _ in range(3):
        assert talk.next_epoch(1.0) == 3
        talk.answer(body_of(well(3, 1_000)))
    assert rig.events == []


def test_no_pace_is_a_storm() -> None:
    rig = rig_with_member()
    talk = Talk(rig)
    assert talk.next_epoch() == 3
    talk.answer(body_of(well(3, 1)))
    assert talk.next_epoch(0.01) == 3


def test_who_is_not_heard_is_not_talked_at_for_ever() -> None:
    """A coordinator that wants an answer each 10 ms, and never gives the expected one."""
    rig = rig_with_member()
    talk = Talk(rig)
    assert talk.next_epoch() == 3
    count, ends = 1, rig.machine.now + 300.0
    while rig.machine.now < ends:
        talk.answer(body_of(well(3, 1, error_message="as if")))
        while not epochs(rig):
            rig.advance(0.005)
        count += 1
    assert count == len(talk.up()) + 1
    assert 100 < count < 200
    rig.send_between(TOKEN, BETWEEN, count - 1, beat(3), TIMEOUT)
    talk.answer(body_of(well(3, 1)))
    assert epochs(rig) == [3]  # between two: somebody listens
    talk.answer(body_of(well(3, 1)))
    assert talk.next_epoch(0.01) == 3


@pytest.mark.parametrize(
    "response",
    [
        ConsumerGroupHeartbeatResponse(error_code=110),
        ConsumerGroupHeartbeatResponse(error_code=15, member_epoch=9, heartbeat_interval_ms=1),
        well(0),
        well(-1),
        well(9, 0),
        well(9, -5_000),
    ],
)
def test_other_answers_change_nothing(response: ConsumerGroupHeartbeatResponse) -> None:
    rig = rig_with_member()
    talk = Talk(rig)
    for _ in range(2):
        assert talk.next_epoch() == 3
        talk.answer(body_of(response))
        assert talk.up() == [(TOKEN, body_of(response))]


@pytest.mark.parametrize(
    "body",
    [
        body_of(well(4, throttle_time_ms=100)),
        body_of(well(4, error_message="none, in fact")),
        body_of(well(4, member_id=None)),
        body_of(well(4, member_id="")),
        body_of(well(4, member_id="x" * 300)),
        b"\1\7\2ab" + body_of(well(4))[1:],  # a tagged field in the header
    ],
    ids=["throttled", "message", "no id", "empty id", "long id", "tag"],
)
def test_what_else_an_answer_says_is_no_matter(body: bytes) -> None:
    rig = rig_with_member()
    talk = Talk(rig)
    assert talk.next_epoch() == 3
    talk.answer(body)
    assert talk.up() == [(TOKEN, body)]
    assert talk.next_epoch() == 4


def test_answers_that_were_cut_off() -> None:
    whole = body_of(well(4, assignment=OWNED))
    told_at = whole.index((5_000).to_bytes(4, "big")) + 4
    for size in range(len(whole)):
        rig = rig_with_member()
        talk = Talk(rig)
        assert talk.next_epoch() == 3
        talk.answer(whole[:size])
        assert talk.up() == [(TOKEN, whole[:size])]
        assert talk.next_epoch() == (4 if size >= told_at else 3)


@given(st.binary(max_size=60))
def test_any_bytes_go_up(body: bytes) -> None:
    rig = rig_with_member()
    talk = Talk(rig)
    assert talk.next_epoch() == 3
    talk.answer(body)
    assert talk.up() == [(TOKEN, body)]
    rig.advance(ALIVE - 2 * PERIOD)
    told = epochs(rig)
    if told:  # else the broker asked for very long pauses
        assert told[0] > 0


def test_news_under_an_epoch_that_has_passed_are_not_sent() -> None:
    rig = rig_with_member()
    talk = Talk(rig)
    assert talk.next_epoch() == 3
    rig.send_between(TOKEN, BETWEEN, 0, beat(3), TIMEOUT)
    talk.answer(body_of(well(4, assignment=OWNED)))
    assert len(talk.up()) == 1
    assert epochs(rig) == []
    rig.send_between(TOKEN, BETWEEN + 1, 1, beat(4), TIMEOUT)
    assert epochs(rig) == [4]


@pytest.mark.parametrize("pos", [-1, len(beat(0)) - 3, 1 << 30])
def test_an_epoch_stands_in_its_frame(pos: int) -> None:
    rig = FetchRig(start=False)
    with pytest.raises(UsageError, match="epoch"):
        rig.start_heartbeats(1, TOKEN, beat(0), 1.0, b"", TIMEOUT, 0.0, pos)


# ---- classic members ----

NO_GENERATION = -1
CLASSIC_VERSION = 4
WELL = frame.encode_response(HeartbeatResponse(), CLASSIC_VERSION, 0)[8:]
JOIN_VERSIONS = JoinGroupRequest.versions
GENERATION_POS = next(
    pos
    for pos, (a, b) in enumerate(
        zip(
            frame.encode_request(HeartbeatRequest(generation_id=0), CLASSIC_VERSION, 0, "rig"),
            frame.encode_request(HeartbeatRequest(generation_id=-1), CLASSIC_VERSION, 0, "rig"),
            strict=True,
        )
    )
    if a != b
)


def rig_that_joins(version: int) -> Talk:
    """Return a rig that has sent JoinGroup, and heartbeats to send as soon as it is answered."""
    rig = FetchRig(start=False)
    rig.plane.set_alive_until(ALIVE)
    alive = frame.encode_request(
        HeartbeatRequest(generation_id=NO_GENERATION), CLASSIC_VERSION, 0, "rig"
    )
    rig.start_heartbeats(1, TOKEN, alive, PERIOD, WELL, TIMEOUT, 0.0, GENERATION_POS)
    join = frame.encode_request(JoinGroupRequest(), version, 0, "rig")
    rig.send_between(TOKEN, BETWEEN, 0, join, 10 * TIMEOUT)
    (sent,) = rig.frames()
    assert frame.decode_request(sent[4:])[1] == frame.decode_request(join[4:])[1]
    return Talk(rig)


def generations(rig: FetchRig) -> list[int]:
    generation_ids = []
    for data in rig.frames():
        _, request = frame.decode_request(data[4:])
        assert isinstance(request, HeartbeatRequest)
        generation_ids.append(request.generation_id)
    return generation_ids


def joined(version: int, **said: object) -> bytes:
    whole = {"generation_id": 8, "protocol_name": "range", "leader": "a", "member_id": "a", **said}
    return frame.encode_response(JoinGroupResponse(**whole), version, 0)[8:]  # type: ignore[arg-type]


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_a_generation_is_known_once_the_others_have_come(version: int) -> None:
    """The answer may take long, and nobody may hear of it for long."""
    talk = rig_that_joins(version)
    talk.rig.advance(5 * TIMEOUT)
    assert generations(talk.rig) == []
    talk.answer(joined(version))
    assert talk.up() == [(BETWEEN, joined(version))]
    assert generations(talk.rig) == []
    for _ in range(3):
        talk.rig.advance(PERIOD + 0.002)
        assert generations(talk.rig) == [8]
        talk.answer(WELL)
    assert talk.rig.events == []


@pytest.mark.parametrize("version", JOIN_VERSIONS)
@pytest.mark.parametrize("said", [{"error_code": 27}, {"generation_id": -1}])
def test_who_is_in_no_generation_says_nothing(version: int, said: dict[str, object]) -> None:
    talk = rig_that_joins(version)
    talk.answer(joined(version, **said))
    assert len(talk.up()) == 1
    talk.rig.advance(10 * PERIOD)
    assert generations(talk.rig) == []


def test_a_broker_may_count_generations_from_0() -> None:
    talk = rig_that_joins(5)
    talk.answer(joined(5, generation_id=0))
    talk.rig.advance(PERIOD + 0.002)
    assert generations(talk.rig) == [0]


@pytest.mark.parametrize("version", JOIN_VERSIONS)
def test_an_answer_to_join_that_was_cut_off(version: int) -> None:
    whole = joined(version)
    told_at = whole.index((8).to_bytes(4, "big")) + 4
    for size in range(len(whole)):
        talk = rig_that_joins(version)
        talk.answer(whole[:size])
        assert talk.up() == [(BETWEEN, whole[:size])]
        talk.rig.advance(PERIOD + 0.002)
        assert generations(talk.rig) == ([8] if size >= told_at else [])


def test_answers_to_classic_heartbeats_tell_no_generation() -> None:
    talk = rig_that_joins(5)
    talk.answer(joined(5))
    for code in (27, 22):
        talk.rig.advance(PERIOD + 0.002)
        assert generations(talk.rig) == [8]
        talk.answer(frame.encode_response(HeartbeatResponse(error_code=code), 4, 0)[8:])
    assert [token for token, _ in talk.up()] == [BETWEEN, TOKEN, TOKEN]


def test_a_join_that_nobody_answers_ends_with_the_link() -> None:
    talk = rig_that_joins(5)
    talk.rig.advance(10 * TIMEOUT + 0.1)
    assert [event.token for event in talk.rig.take(RawResponse)] == [TOKEN]
