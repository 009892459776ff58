"""Operations under faults: the controller moves, answers are lost, topics are absent."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_fast.control.admin.operation import OperationResults
from kafka_fast.control.admin.operations.groups.listings import DeleteGroups
from kafka_fast.control.admin.operations.topics import (
    CreateTopics,
    DeleteRecords,
    DeleteTopics,
    DescribeTopics,
)
from kafka_fast.control.admin.types.topics import NewTopic
from kafka_fast.control.connections.connection_key import ConnectionKey, Role
from kafka_fast.control.messages import CloseReason, RawResponse
from kafka_fast.control.metadata.metadata import GETS_ROUND
from kafka_fast.control.requests import coordinators
from kafka_fast.control.requests.open_call import OpenCall
from kafka_fast.control.requests.targets import CoordinatorKind
from kafka_fast.errors import (
    BrokerError,
    ErrorCode,
    GroupAuthorizationFailed,
    KafkaTimeoutError,
    ThrottlingQuotaExceeded,
    TopicAlreadyExists,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
    UnsupportedVersionError,
    UsageError,
)
from kafka_fast.protocol.apis.cluster.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafka_fast.protocol.apis.cluster.metadata import MetadataRequest
from kafka_fast.protocol.apis.groups.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kafka_fast.protocol.apis.topics.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_fast.protocol.apis.topics.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from kafka_fast.protocol.apis.topics.delete_topics import DeleteTopicsRequest
from kafka_fast.types import TopicPartition
from tests.unit.control.admin.scripted_admin import AdminMachine


class Creating:
    """Brokers that create topics, with the error codes that a test wants first."""

    def __init__(self, *codes: int, throttle_time_ms: int = 0) -> None:
        self.codes = list(codes)
        self.throttle_time_ms = throttle_time_ms
        self.asked: list[tuple[int, list[str]]] = []
        self.at: list[float] = []
        self.machine = AdminMachine({CreateTopicsRequest: self.create})

    def create(self, request: CreateTopicsRequest, key: ConnectionKey) -> CreateTopicsResponse:
        names = [topic.name for topic in request.topics]
        self.asked.append((key.node_id, names))
        self.at.append(self.machine.now)
        code = self.codes.pop(0) if self.codes else 0
        return CreateTopicsResponse(
            throttle_time_ms=self.throttle_time_ms if code else 0,
            topics=[
                CreatableTopicResult(name=name, error_code=code, num_partitions=1) for name in names
            ],
        )


def create(*topics: NewTopic, retry_on_quota: bool = True) -> CreateTopics:
    return CreateTopics(topics, validate_only=False, retry_on_quota=retry_on_quota)


def test_the_controller_is_asked_and_found_again_when_it_has_moved() -> None:
    brokers = Creating(ErrorCode.NOT_CONTROLLER)
    ended, _ = brokers.machine.start(create(NewTopic("a", 1, 1)))
    brokers.machine.controller = 2
    brokers.machine.run(5.0)
    (results,) = ended
    assert isinstance(results, OperationResults)
    assert list(results.values) == ["a"]
    assert [node for node, _ in brokers.asked][-1] == 2


def test_a_controller_that_is_never_found_is_the_error() -> None:
    brokers = Creating(*[ErrorCode.NOT_CONTROLLER] * 1000)
    results = brokers.machine.results(create(NewTopic("a", 1, 1)), timeout=10.0)
    error = results.errors["a"]
    assert isinstance(error, KafkaTimeoutError)
    assert "CreateTopics of topic 'a': no answer in time" in str(error)
    assert "NOT_CONTROLLER" in str(error) or "controller" in str(error)
    assert len(brokers.asked) > 3


def test_a_first_try_without_an_answer_explains_why_the_topic_exists_already() -> None:
    brokers = Creating(ErrorCode.TOPIC_ALREADY_EXISTS)
    machine, answering = brokers.machine, brokers.create
    machine.handlers[CreateTopicsRequest] = lambda request, key: None
    ended, _ = machine.start(create(NewTopic("a", 1, 1)))
    machine.run(1.0)
    assert not ended
    machine.handlers[CreateTopicsRequest] = answering
    (request, _, _) = machine.unanswered.pop()
    lost = RawResponse(request.link_id, request.token, None, CloseReason.EOF)
    machine.control.handle_event(lost, machine.now)
    machine.close(ConnectionKey(Role.DATA, 1))
    machine.run(5.0)
    (results,) = ended
    assert isinstance(results, OperationResults)
    error = results.errors["a"]
    assert isinstance(error, TopicAlreadyExists)
    assert "an earlier try, of which no answer came, may have created it" in str(error)


def test_a_topic_that_exists_is_not_explained_by_a_try_that_was_answered() -> None:
    results = Creating(ErrorCode.TOPIC_ALREADY_EXISTS).machine.results(create(NewTopic("a", 1, 1)))
    assert "earlier try" not in str(results.errors["a"])


@pytest.mark.parametrize(
    ("first", "is_explained"),
    [
        (ErrorCode.NOT_CONTROLLER, False),
        (ErrorCode.THROTTLING_QUOTA_EXCEEDED, False),
        (ErrorCode.REQUEST_TIMED_OUT, True),
    ],
)
def test_a_try_that_has_changed_nothing_explains_nothing(first: int, is_explained: bool) -> None:
    """What NOT_CONTROLLER answers has not created the topic; who timed out may have."""
    brokers = Creating(first, ErrorCode.TOPIC_ALREADY_EXISTS)
    error = brokers.machine.results(create(NewTopic("a", 1, 1))).errors["a"]
    assert isinstance(error, TopicAlreadyExists)
    assert ("earlier try" in str(error)) is is_explained


def test_a_quota_on_changes_is_waited_for() -> None:
    brokers = Creating(ErrorCode.THROTTLING_QUOTA_EXCEEDED, throttle_time_ms=4000)
    results = brokers.machine.results(create(NewTopic("a", 1, 1)))
    assert list(results.values) == ["a"]
    assert results.throttle_time_ms == 4000
    first, second = brokers.at
    assert second - first >= 4.0


def test_a_quota_on_changes_is_an_error_if_the_user_wants_that() -> None:
    brokers = Creating(ErrorCode.THROTTLING_QUOTA_EXCEEDED, throttle_time_ms=4000)
    results = brokers.machine.results(create(NewTopic("a", 1, 1), retry_on_quota=False))
    assert isinstance(results.errors["a"], ThrottlingQuotaExceeded)
    assert results.throttle_time_ms == 4000


def test_what_is_not_permitted_names_the_permission() -> None:
    results = Creating(ErrorCode.TOPIC_AUTHORIZATION_FAILED).machine.results(
        create(NewTopic("a", 1, 1))
    )
    error = results.errors["a"]
    assert isinstance(error, TopicAuthorizationFailed)
    assert "CreateTopics of topic 'a'" in str(error)
    assert "(needs CREATE on the topic, or on the cluster)" in str(error)


def test_an_old_broker_needs_both_numbers() -> None:
    brokers = Creating()
    brokers.machine.max_versions[CreateTopicsRequest.api_key] = 3
    results = brokers.machine.results(create(NewTopic("a"), NewTopic("b", 1, 1)))
    assert list(results.values) == ["b"]
    assert isinstance(results.errors["a"], UnsupportedVersionError)
    assert "brokers older than Kafka 2.4 need num_partitions" in str(results.errors["a"])


def test_an_api_that_the_brokers_lack_is_an_error_at_once() -> None:
    brokers = Creating()
    brokers.machine.max_versions[CreateTopicsRequest.api_key] = 1  # below what this client speaks
    results = brokers.machine.results(create(NewTopic("a", 1, 1)))
    assert isinstance(results.errors["a"], UnsupportedVersionError)


@pytest.mark.parametrize("bad", [3, b"bytes", "\udcff"])
def test_what_cannot_be_sent_is_the_users_fault(bad: Any) -> None:
    brokers = Creating()
    results = brokers.machine.results(create(NewTopic("a", 1, 1, configs={"b": bad})))
    error = results.errors["a"]
    assert isinstance(error, UsageError)
    assert "create_topics" in str(error)
    assert brokers.machine.results(create(NewTopic("a", 1, 1))).errors == {}


def test_numbers_that_do_not_fit_are_the_users_fault() -> None:
    results = Creating().machine.results(create(NewTopic("a", 1 << 40, 1)))
    assert isinstance(results.errors["a"], UsageError)


def test_assignments_and_numbers_contradict_each_other() -> None:
    with pytest.raises(UsageError, match="'a': assignments say how many"):
        create(NewTopic("a", 1, 1, assignments={0: [1]}))
    with pytest.raises(UsageError, match="two new topics are called 'a'"):
        create(NewTopic("a", 1, 1), NewTopic("a", 2, 1))


def test_nothing_to_do_is_done_at_once() -> None:
    results = Creating().machine.results(create())
    assert (results.keys, results.values, results.errors) == ([], {}, {})


def test_an_operation_that_is_given_up_is_not_sent_again() -> None:
    brokers = Creating(*[ErrorCode.NOT_CONTROLLER] * 1000)
    ended, running = brokers.machine.start(create(NewTopic("a", 1, 1)))
    brokers.machine.run(1.0)
    assert running is not None
    running.give_up()
    count = len(brokers.asked)
    brokers.machine.run(20.0)
    assert len(brokers.asked) == count
    assert not ended


def test_a_client_that_cannot_go_on_says_so() -> None:
    brokers = Creating()
    brokers.machine.control.fatal = UsageError("over")
    ended, running = brokers.machine.start(create(NewTopic("a", 1, 1)))
    assert running is None
    assert [str(outcome) for outcome in ended] == ["over"]


# ---- leaders ----


class Deleting:
    """Brokers that delete records, in the partitions that they lead."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.machine = AdminMachine({DeleteRecordsRequest: self.delete})

    def delete(self, request: DeleteRecordsRequest, key: ConnectionKey) -> DeleteRecordsResponse:
        self.asked.append(key.node_id)
        return DeleteRecordsResponse(
            topics=[
                DeleteRecordsTopicResult(
                    name=topic.name,
                    partitions=[
                        DeleteRecordsPartitionResult(
                            partition_index=one.partition_index, low_watermark=one.offset
                        )
                        for one in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )


T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_each_leader_is_asked_about_its_partitions() -> None:
    brokers = Deleting()
    results = brokers.machine.results(DeleteRecords({T0: 5, T1: 6}))
    assert results.values == {T0: 5, T1: 6}
    assert sorted(brokers.asked) == [1, 2]


def test_partitions_that_are_absent_fail_after_a_while_and_the_others_do_not() -> None:
    brokers = Deleting()
    beyond, nowhere = TopicPartition("t", 9), TopicPartition("nowhere", 0)
    began = brokers.machine.now
    ended, _ = brokers.machine.start(DeleteRecords({T0: 5, beyond: 1, nowhere: 1}))
    while not ended:
        brokers.machine.run(0.1)
    assert GETS_ROUND <= brokers.machine.now - began < GETS_ROUND + 1
    (results,) = ended
    assert isinstance(results, OperationResults)
    assert results.values == {T0: 5}
    assert all(isinstance(error, UnknownTopicOrPartition) for error in results.errors.values())
    assert "its topic has 2" in str(results.errors[beyond])
    assert "DeleteRecords of t-9: there is no partition" in str(results.errors[beyond])
    assert "DeleteRecords of nowhere-0: there is no topic 'nowhere'" in str(results.errors[nowhere])


def test_operations_about_one_absent_topic_do_not_keep_each_other_waiting() -> None:
    """Regression: each new one had the wait of the others begin anew."""
    brokers = Deleting()
    nowhere = TopicPartition("nowhere", 0)
    began = brokers.machine.now
    first, _ = brokers.machine.start(DeleteRecords({nowhere: 1}))
    while not first:
        brokers.machine.run(0.7)
        brokers.machine.start(DeleteRecords({nowhere: 1}))
    assert brokers.machine.now - began < GETS_ROUND + 1.5


def test_one_name_is_not_taken_for_its_letters() -> None:
    for make in (
        lambda: DeleteTopics("ab", by_id=False, retry_on_quota=True),
        lambda: DescribeTopics("ab", by_id=False, include_authorized_operations=False),
    ):
        with pytest.raises(TypeError, match="are a list or a set, not the string 'ab'"):
            make()


def test_a_topic_that_may_not_be_seen_fails_at_once() -> None:
    brokers = Deleting()
    brokers.machine.topic_error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    ended, _ = brokers.machine.start(DeleteRecords({T0: 5}))
    brokers.machine.run(1.0)
    (results,) = ended
    assert isinstance(results, OperationResults)
    assert isinstance(results.errors[T0], TopicAuthorizationFailed)
    assert "DeleteRecords of t-0: " in str(results.errors[T0])


def test_a_topic_that_is_deleted_while_its_former_leader_is_asked_fails_after_a_while() -> None:
    """Older metadata still name that leader, which only says that it has no such partition."""
    brokers = Deleting()
    machine = brokers.machine
    assert machine.results(DeleteRecords({T0: 5})).values == {T0: 5}

    def deny(request: DeleteRecordsRequest, key: ConnectionKey) -> DeleteRecordsResponse:
        told = brokers.delete(request, key)
        told.topics[0].partitions[0].error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return told

    machine.handlers[DeleteRecordsRequest] = lambda request, key: None
    ended, _ = machine.start(DeleteRecords({T0: 5}))
    machine.run(0.1)
    machine.topic_error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    machine.control.cluster.request_refresh("somebody else wants to know", "t")
    machine.run(0.1)
    machine.handlers[DeleteRecordsRequest] = deny
    command, request, version = machine.unanswered.pop()
    assert isinstance(request, DeleteRecordsRequest)
    machine.answer(command, deny(request, ConnectionKey(Role.DATA, 1)), version)
    machine.run(GETS_ROUND)
    (results,) = ended
    assert isinstance(results, OperationResults)
    assert isinstance(results.errors[T0], UnknownTopicOrPartition)
    assert "DeleteRecords of t-0: there is no topic 't'" in str(results.errors[T0])


def test_each_operation_names_its_own_item_among_those_that_are_absent() -> None:
    """Two operations may wait for the same partition."""
    brokers = Deleting()
    nowhere, beside = TopicPartition("nowhere", 0), TopicPartition("nowhere", 1)
    first, _ = brokers.machine.start(DeleteRecords({nowhere: 1}))
    second, _ = brokers.machine.start(DeleteRecords({nowhere: 1, beside: 1}))
    brokers.machine.run(GETS_ROUND + 1)
    for (results,), keys in ((first, {nowhere}), (second, {nowhere, beside})):
        assert isinstance(results, OperationResults)
        assert set(results.errors) == keys
        assert all(f"DeleteRecords of {key}: " in str(results.errors[key]) for key in keys)


def test_a_leader_that_hangs_keeps_only_its_own_partitions_away() -> None:
    brokers = Deleting()
    machine = brokers.machine
    answering = brokers.delete
    machine.handlers[DeleteRecordsRequest] = lambda request, key: (
        answering(request, key) if key.node_id == 1 else None
    )
    results = machine.results(DeleteRecords({T0: 5, T1: 6}), timeout=10.0)
    assert results.values == {T0: 5}
    error = results.errors[T1]
    assert isinstance(error, KafkaTimeoutError)
    assert "DeleteRecords of t-1: no answer in time" in str(error)


def test_topics_that_nobody_asks_about_are_forgotten() -> None:
    brokers = Deleting()
    brokers.machine.results(DeleteRecords({T0: 5}))
    brokers.machine.run(400.0)
    assert brokers.machine.control.cluster.topic("t") is None


# ---- topics ----


def test_topics_without_an_answer_are_not_taken_for_described() -> None:
    """A broker that leaves one out of its answer is asked again."""
    machine = AdminMachine({})
    asked: list[int] = []
    plain = machine.metadata

    def metadata(request: Any, key: ConnectionKey) -> Any:
        told = plain(request, key)
        if request.topics and len(asked) < 2:
            asked.append(key.node_id)
            told.topics = []
        return told

    machine.handlers[MetadataRequest] = metadata
    operation = DescribeTopics(["t"], by_id=False, include_authorized_operations=False)
    results = machine.results(operation)
    assert results.values["t"].name == "t"
    assert len(asked) == 2


def test_ids_need_brokers_that_know_them() -> None:
    machine = AdminMachine({})
    machine.max_versions[DeleteTopicsRequest.api_key] = 5
    topic_id = "AAAAAAAAAAAAAAAAAAAAAQ"
    operation = DeleteTopics([topic_id], by_id=True, retry_on_quota=True)
    error = machine.results(operation).errors[topic_id]
    assert isinstance(error, UnsupportedVersionError)
    assert "since Kafka 2.8" in str(error)
    with pytest.raises(UsageError, match="'t' is no topic id"):
        DeleteTopics(["t"], by_id=True, retry_on_quota=True)


def test_what_is_open_is_described() -> None:
    brokers = Creating(*[ErrorCode.NOT_CONTROLLER] * 1000)
    _, running = brokers.machine.start(create(NewTopic("a", 1, 1)))
    brokers.machine.run(1.0)
    described = brokers.machine.control.describe(brokers.machine.now)
    assert "CreateTopics: 1 item open (a)" in described
    assert running is not None
    assert "a (" in running.missing().text
    assert isinstance(running.missing().cause, BrokerError)


class LazyConfigs(dict[str, "str | None"]):
    """A mapping that fails when it is read."""

    def items(self) -> Any:
        raise RuntimeError("no connection to the database of configurations")


def test_a_mapping_that_fails_is_the_users_fault() -> None:
    brokers = Creating()
    results = brokers.machine.results(create(NewTopic("a", 1, 1, configs=LazyConfigs())))
    error = results.errors["a"]
    assert isinstance(error, UsageError)
    assert "create_topics: RuntimeError: no connection" in str(error)
    assert isinstance(error.__cause__, RuntimeError)
    assert brokers.machine.results(create(NewTopic("b", 1, 1))).errors == {}


class NoCoordinator:
    """Brokers that know no coordinator yet."""

    def __init__(self, code: int = ErrorCode.COORDINATOR_NOT_AVAILABLE) -> None:
        self.code = code
        self.asked: list[list[str]] = []
        self.machine = AdminMachine({FindCoordinatorRequest: self.find})

    def find(self, request: FindCoordinatorRequest, key: ConnectionKey) -> FindCoordinatorResponse:
        self.asked.append(request.coordinator_keys)
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=name, error_code=self.code) for name in request.coordinator_keys
            ]
        )


def test_coordinators_that_nobody_waits_for_are_not_looked_for() -> None:
    """Regression: brokers were asked for them until they knew them, long after the call."""
    brokers = NoCoordinator()
    machine = brokers.machine
    ended, _ = machine.start(DeleteGroups(["a", "b"]), timeout=3.0)
    other, running = machine.start(DeleteGroups(["b", "c"]), timeout=60.0)
    machine.run(10.0)
    assert ended
    assert brokers.asked[0] == ["a", "b", "c"]
    assert sorted(brokers.asked[-1]) == ["b", "c"]
    assert running is not None
    running.give_up()
    machine.run(2.0)
    brokers.asked.clear()
    machine.run(60.0)
    assert brokers.asked == []
    assert not other


class KnownCoordinators:
    """Brokers of which the second coordinates everything."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.machine = AdminMachine(
            {FindCoordinatorRequest: self.find, DeleteGroupsRequest: self.delete}
        )

    def find(self, request: FindCoordinatorRequest, key: ConnectionKey) -> FindCoordinatorResponse:
        self.asked += request.coordinator_keys
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=name, node_id=2, host="b2", port=9092)
                for name in request.coordinator_keys
            ]
        )

    def delete(self, request: DeleteGroupsRequest, key: ConnectionKey) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=[DeletableGroupResult(group_id=name) for name in request.groups_names]
        )


def test_coordinators_that_nobody_waits_for_are_forgotten_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regression: every group that was ever asked about was remembered."""
    monkeypatch.setattr(coordinators, "UNUSED_KEPT", 2)
    brokers = KnownCoordinators()
    for group in ("a", "b", "a", "c", "a", "b"):
        assert not brokers.machine.results(DeleteGroups([group]), timeout=3.0).errors
    assert brokers.asked == ["a", "b", "c", "b"], "b was not used for longer than a"
    known = brokers.machine.control.requester.coordinators
    assert [known.node(CoordinatorKind.GROUP, group) is None for group in "abc"] == [
        False,
        False,
        True,
    ]


def test_coordinators_of_one_large_call_are_not_forgotten_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(coordinators, "UNUSED_KEPT", 2)
    brokers = KnownCoordinators()
    groups = [f"g{number}" for number in range(50)]
    assert not brokers.machine.results(DeleteGroups(groups), timeout=3.0).errors
    assert sorted(brokers.asked) == sorted(groups)


def test_who_may_not_look_for_the_coordinator_is_told_what_the_call_needs() -> None:
    brokers = NoCoordinator(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    error = brokers.machine.results(DeleteGroups(["a"])).errors["a"]
    assert isinstance(error, GroupAuthorizationFailed)
    assert "needs DESCRIBE on the group" in str(error)
    assert str(error).endswith("; DeleteGroups of group 'a' needs DELETE on the group")


def test_of_many_items_a_few_are_asked_what_they_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a call about 50,000 partitions kept its event loop for seconds to say it."""
    machine = AdminMachine({})
    offsets = {TopicPartition("nope", number): 0 for number in range(5000)}
    _, running = machine.start(DeleteRecords(offsets))
    assert running is not None
    asked: list[object] = []
    why_waiting = OpenCall.why_waiting

    def counted(opened: OpenCall[Any, Any], key: Any) -> Any:
        asked.append(key)
        return why_waiting(opened, key)

    monkeypatch.setattr(OpenCall, "why_waiting", counted)
    assert "and 4995 more" in running.missing().text
    assert len(asked) == 100
