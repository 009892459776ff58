"""Declarations: ranges, instances, and what a class knows about itself."""

from __future__ import annotations

import copy
import pickle

import pytest

from kafka_fast.errors import MalformedError, UnsupportedVersionError
from kafka_fast.protocol.apis import api_keys, api_name, request_class, response_class
from kafka_fast.protocol.apis.configs import alter_configs, incremental_alter_configs
from kafka_fast.protocol.apis.records.produce import (
    LeaderIdAndEpoch,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from kafka_fast.protocol.apis.security.sasl_authenticate import SaslAuthenticateRequest
from kafka_fast.protocol.apis.transactions.init_producer_id import InitProducerIdRequest
from kafka_fast.protocol.consumer import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    ConsumerProtocolSubscriptionTopicPartition,
)
from kafka_fast.protocol.control_records import ControlRecordTypeSchema, EndTxnMarker
from kafka_fast.protocol.schema import (
    Versions,
    decode_versioned,
    encode_versioned,
    parse_versions,
    snake_case,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("3", Versions(3, 3)),
        ("3-5", Versions(3, 5)),
        ("3+", Versions(3, 32767)),
        ("none", Versions(1, 0)),
    ],
)
def test_ranges_parse_and_print(text, expected):
    assert parse_versions(text) == expected
    assert str(parse_versions(text)) == text


def test_a_range_contains_its_ends():
    assert [version for version in range(8) if version in parse_versions("3-5")] == [3, 4, 5]
    assert 0 not in parse_versions("none")
    assert "4" not in parse_versions("3-5")


@pytest.mark.parametrize(
    ("apache", "ours"),
    [
        ("TopicId", "topic_id"),
        ("ErrorCode", "error_code"),
        ("V3AndBelowTopics", "v3_and_below_topics"),
        ("Enable2Pc", "enable2_pc"),
        ("LogAppendTimeMs", "log_append_time_ms"),
        ("Name", "name"),
    ],
)
def test_names_are_apaches_in_snake_case(apache, ours):
    assert snake_case(apache) == ours


def test_defaults_are_fresh_objects():
    first, second = PartitionProduceResponse(), PartitionProduceResponse()
    assert first == second
    first.record_errors.append("x")
    first.current_leader.leader_id = 5
    assert second.record_errors == []
    assert second.current_leader == LeaderIdAndEpoch(leader_id=-1, leader_epoch=-1)


def test_instances_are_slotted_and_know_their_fields():
    with pytest.raises(AttributeError):
        ProduceRequest().ackz = 1
    with pytest.raises(TypeError, match="ProduceRequest has no field ackz, topics"):
        ProduceRequest(acks=1, topics=[], ackz=1)


def test_comparison_is_by_class_and_value():
    assert ProduceRequest(acks=1) == ProduceRequest(acks=1)
    assert ProduceRequest(acks=1) != ProduceRequest(acks=-1)
    assert ProduceRequest() != TopicProduceData()
    with pytest.raises(TypeError, match="unhashable"):
        hash(ProduceRequest())


def test_instances_copy_and_pickle():
    request = ProduceRequest(
        topic_data=[TopicProduceData(name="t", partition_data=[PartitionProduceData(records=b"r")])]
    )
    assert pickle.loads(pickle.dumps(request)) == request
    assert copy.deepcopy(request) == request


def test_repr_shows_what_is_set_and_never_bytes():
    assert repr(ProduceRequest(acks=-1)) == "ProduceRequest(acks=-1)"
    assert repr(ProduceRequest(transactional_id="tx")) == "ProduceRequest(transactional_id='tx')"
    partition = PartitionProduceResponse(current_leader=LeaderIdAndEpoch(leader_id=1))
    assert repr(PartitionProduceResponse()) == "PartitionProduceResponse()"
    assert repr(partition.current_leader) in repr(partition)
    assert (
        repr(TopicProduceData(topic_id=b"\x01" * 16)) == f"TopicProduceData(topic_id={'01' * 16})"
    )
    assert repr(PartitionProduceData(records=b"abc")) == "PartitionProduceData(records=<3 bytes>)"
    text = repr(SaslAuthenticateRequest(auth_bytes=b"\0user\0secret"))
    assert text == "SaslAuthenticateRequest(auth_bytes=<12 bytes>)"


@pytest.mark.parametrize("api", [alter_configs, incremental_alter_configs])
def test_repr_hides_what_a_setting_is_set_to(api):
    setting = api.AlterableConfig(name="ssl.keystore.password", value="hunter2")
    assert repr(setting) == "AlterableConfig(name='ssl.keystore.password', value=<hidden>)"
    assert "hunter2" not in repr(api.AlterConfigsResource(configs=[setting]))
    setting.value = None
    assert repr(setting) == "AlterableConfig(name='ssl.keystore.password', value=None)"


def test_a_version_that_does_not_exist():
    for version in (-1, 2, 14):
        with pytest.raises(UnsupportedVersionError, match=f"versions 3-13, not {version}"):
            ProduceRequest().encode(version)
        with pytest.raises(UnsupportedVersionError):
            ProduceRequest.decode(b"", version)


def test_unstable_versions_are_not_for_use():
    assert InitProducerIdRequest.versions.high == 6
    assert InitProducerIdRequest.stable == 5
    assert ProduceRequest.stable == ProduceRequest.versions.high


@pytest.mark.parametrize("api_key", api_keys())
def test_every_api_has_a_request_and_a_response_of_the_same_versions(api_key):
    request, response = request_class(api_key), response_class(api_key)
    assert request.__name__ == api_name(api_key) + "Request"
    assert response.__name__ == api_name(api_key) + "Response"
    assert request.api_key == response.api_key == api_key
    assert request.versions == response.versions
    assert request.flexible == response.flexible


def test_api_name_of_an_unknown_key():
    assert api_name(999) == "API 999"
    with pytest.raises(KeyError):
        request_class(999)


def test_subscription_golden_bytes_with_its_version_in_front():
    message = ConsumerProtocolSubscription(
        topics=["a"],
        user_data=None,
        owned_partitions=[ConsumerProtocolSubscriptionTopicPartition(topic="a", partitions=[0, 1])],
        generation_id=4,
        rack_id="r",
    )
    data = encode_versioned(message, 3)
    assert data == bytes.fromhex(
        "0003 00000001 0001 61 ffffffff"
        "00000001 0001 61 00000002 00000000 00000001"
        "00000004 0001 72"
    )  # fmt: skip
    assert decode_versioned(ConsumerProtocolSubscription, data) == message


def test_a_blob_of_a_newer_version_is_read_as_far_as_it_is_known():
    known = encode_versioned(ConsumerProtocolAssignment(user_data=b"u"), 3)
    newer = b"\x00\x09" + known[2:] + b"what comes later"
    assert decode_versioned(ConsumerProtocolAssignment, newer).user_data == b"u"


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x00\x01\x00\x00"])
def test_blobs_that_are_malformed(data):
    with pytest.raises(MalformedError, match="ConsumerProtocolAssignment"):
        decode_versioned(ConsumerProtocolAssignment, data)


def test_control_records_golden_bytes():
    assert encode_versioned(ControlRecordTypeSchema(type=1), 0) == bytes.fromhex("00000001")
    assert encode_versioned(EndTxnMarker(coordinator_epoch=7), 0) == bytes.fromhex("000000000007")
