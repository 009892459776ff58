"""Groups by an admin client that may not do everything, on real Kafka with ACLs."""

from __future__ import annotations

import uuid

import pytest

from kafka_fast import Admin, TopicPartition
from kafka_fast.admin import AclOperation, NewTopic, OffsetSpec, ResetTo
from kafka_fast.errors import GroupAuthorizationFailed, TopicAuthorizationFailed
from kafka_fast.testing._kafka.secure_kafka import SecureKafka

pytestmark = pytest.mark.broker


def secure_admin(kafka: SecureKafka, user: str) -> Admin:
    return Admin(kafka.client_properties("SASL_SSL", "SCRAM-SHA-256", user=user))


def test_what_bob_may_not_do_names_what_he_needs(secure_kafka: SecureKafka) -> None:
    name = f"admin-rights-{uuid.uuid4().hex}"
    seen, hidden = f"{name}-seen", f"{name}-hidden"
    here, there = TopicPartition(seen, 0), TopicPartition(hidden, 0)
    with secure_admin(secure_kafka, "alice") as alice:
        alice.create_topics([NewTopic(seen, 1, 1), NewTopic(hidden, 1, 1)]).raise_first()
        for group in (seen, hidden):
            alice.alter_consumer_group_offsets(group, {here: 0, there: 0}).raise_first()
    secure_kafka.allow("bob", "DESCRIBE", group=seen)
    secure_kafka.allow("bob", "DESCRIBE", topic=seen)
    with secure_admin(secure_kafka, "bob") as bob:
        listed = bob.list_groups()
        assert seen in listed
        assert hidden not in listed
        told = bob.describe_consumer_groups([seen, hidden], include_authorized_operations=True)
        assert told[seen].authorized_operations == {AclOperation.DESCRIBE}
        error = told.errors[hidden]
        assert isinstance(error, GroupAuthorizationFailed)
        offsets = bob.list_consumer_group_offsets({seen: [here, there], hidden: None})
        assert list(offsets[seen].succeeded) == [here]
        assert isinstance(offsets[seen].errors[there], TopicAuthorizationFailed)
        assert isinstance(offsets.errors[hidden], GroupAuthorizationFailed)
        lag = bob.consumer_group_lag([seen, hidden])
        assert [one.lag for one in lag[seen].partitions] == [0]
        assert isinstance(lag.errors[hidden], GroupAuthorizationFailed)
        ends = bob.list_offsets({here: OffsetSpec.LATEST, there: OffsetSpec.LATEST})
        assert ends.succeeded[here].offset == 0
        assert "needs DESCRIBE on the topic" in str(ends.errors[there])
        refused = bob.delete_groups([seen]).errors[seen]
        assert "(needs DELETE on the group)" in str(refused)
        plan = bob.reset_consumer_group_offsets(seen, ResetTo.earliest(), dry_run=True)
        done = bob.reset_consumer_group_offsets(seen, plan)
        assert isinstance(done.errors[here], GroupAuthorizationFailed)
        with pytest.raises(GroupAuthorizationFailed, match="needs READ on the group"):
            done.raise_first()
