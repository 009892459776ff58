"""The admin client over real sockets: threads, tasks, interruptions and ends."""

from __future__ import annotations

import asyncio
import base64
import gc
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_fast import Admin, TopicPartition, aio
from kafka_fast.admin import (
    AlterConfigOp,
    ConfigResource,
    ConfigResourceType,
    NewTopic,
    Secret,
)
from kafka_fast.admin.workflows.groups import describe_groups
from kafka_fast.errors import (
    ConfigError,
    KafkaError,
    KafkaTimeoutError,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
    UnsupportedEndpointType,
    UsageError,
    WakeupError,
)
from kafka_fast.net.waiting.steps import Wait, Yielded, run_steps
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import CREATE_TOPICS, METADATA
from tests.embedded import processes
from tests.embedded.consuming import fill
from tests.unit.canary import CANARY, traces
from tests.waiting import eventually


@pytest.fixture(name="kafka")
def embedded_kafka() -> Iterator[EmbeddedKafka]:
    """Three brokers."""
    with EmbeddedKafka(brokers=3) as kafka:
        yield kafka


@pytest.fixture
def admin(kafka: EmbeddedKafka) -> Iterator[Admin]:
    with Admin(bootstrap_servers=kafka.bootstrap) as made:
        yield made


def test_what_only_brokers_do_is_refused_before_anything_is_sent() -> None:
    """No node listens here."""
    with Admin(bootstrap_controllers="127.0.0.1:1") as admin:
        with pytest.raises(UnsupportedEndpointType, match="list_topics: controllers are not asked"):
            admin.list_topics()
        with pytest.raises(UnsupportedEndpointType, match="delete_groups: controllers are not"):
            admin.delete_groups(["g"])
        with pytest.raises(KafkaTimeoutError, match="DescribeCluster"):
            admin.describe_cluster(timeout=0.1)


def test_topics_from_their_beginning_to_their_end(admin: Admin, kafka: EmbeddedKafka) -> None:
    created = admin.create_topics([NewTopic("a", 3), NewTopic("b", assignments={0: [2, 3]})])
    assert created["a"].partition_count == 3
    assert admin.describe_topics(["b"])["b"].partitions[0].replicas == (2, 3)
    assert isinstance(admin.create_topics([NewTopic("a")]).errors["a"], TopicAlreadyExists)
    fill(kafka, "a", 10)
    records = sum(admin.delete_records({TopicPartition("a", n): -1 for n in range(3)}).values())
    assert records == 10
    assert set(admin.list_topics()) == {"a", "b"}
    deleted = admin.delete_topics(["a", "c"])
    assert deleted["a"] is None
    assert isinstance(deleted.errors["c"], UnknownTopicOrPartition)
    assert set(admin.list_topics()) == {"b"}


def test_threads_share_a_client(admin: Admin) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for turn in range(5):
                admin.create_topics([NewTopic(f"t-{number}-{turn}", 1)]).raise_first()
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(admin.list_topics()) == 40


def test_a_call_without_an_answer_ends_in_time(admin: Admin, kafka: EmbeddedKafka) -> None:
    kafka.faults.drop(api=CREATE_TOPICS, close=False)
    result = admin.create_topics([NewTopic("a", 1)], timeout=0.3)
    assert isinstance(result.errors["a"], KafkaTimeoutError)
    assert "CreateTopics of topic 'a': no answer in time" in str(result.errors["a"])


def test_a_close_ends_the_calls_of_other_threads(kafka: EmbeddedKafka) -> None:
    admin = Admin(bootstrap_servers=kafka.bootstrap)
    rule = kafka.faults.drop(api=CREATE_TOPICS, close=False)
    raised: list[BaseException] = []

    def create() -> None:
        try:
            admin.create_topics([NewTopic("a", 1)])
        except BaseException as error:  # noqa: BLE001  the test looks at it
            raised.append(error)

    thread = threading.Thread(target=create)
    thread.start()
    eventually(lambda: rule.strikes)
    admin.close()
    thread.join()
    assert [type(error) for error in raised] == [WakeupError]
    with pytest.raises(UsageError, match="the admin is closed"):
        admin.list_topics()
    admin.close()
    assert repr(admin) == f"<Admin {admin.client_id} closed>"


def test_closing_ends_a_call_between_two_of_its_operations(admin: Admin) -> None:
    """ConsumerGroupDescribe was answered; DescribeGroups does not follow any more."""
    steps = admin._steps
    described = describe_groups(
        steps, ["g"], include_authorized_operations=False, deadline=steps.begin_call(30.0)
    )

    def answer(request: Yielded) -> None:
        assert isinstance(request, Wait)
        eventually(request.is_over)
        admin.close()

    with pytest.raises(WakeupError, match="the admin was closed meanwhile"):
        run_steps(described, answer)


def test_one_that_is_dropped_says_so(kafka: EmbeddedKafka) -> None:
    admin = Admin(bootstrap_servers=kafka.bootstrap, client_id="dropped")
    admin.list_topics()
    held = [admin]
    del admin
    with pytest.warns(ResourceWarning, match="admin 'dropped' was collected before it was closed"):
        held.clear()
    gc.collect()


def test_a_configuration_is_checked() -> None:
    with pytest.raises(
        ConfigError, match=r"bootstrap\.servers or bootstrap\.controllers is required"
    ):
        Admin()
    with pytest.raises(ConfigError, match="did you mean"):
        Admin(bootstrap_server="a:1")  # type: ignore[call-arg]


def test_properties_of_other_clients_are_left_out(kafka: EmbeddedKafka) -> None:
    with Admin({"bootstrap.servers": kafka.bootstrap, "acks": "all", "group.id": "g"}) as admin:
        assert admin.list_topics() == {}


def test_it_is_not_pickled(admin: Admin) -> None:
    with pytest.raises(TypeError, match="make one in each process"):
        pickle.dumps(admin)


def test_results_are_pickled(admin: Admin) -> None:
    created = admin.create_topics([NewTopic("a", 1)])["a"]
    assert pickle.loads(pickle.dumps(created)) == created


def test_metrics_and_dump(admin: Admin) -> None:
    admin.create_topics([NewTopic("a", 1)]).raise_first()
    assert admin.metrics()["client_id"] == admin.client_id
    assert "sent CreateTopics" in admin.debug_dump()


# ---- asyncio ----


def test_tasks_share_a_client(kafka: EmbeddedKafka) -> None:
    async def main() -> None:
        async with aio.Admin(bootstrap_servers=kafka.bootstrap) as admin:
            await asyncio.gather(
                *(admin.create_topics([NewTopic(f"t-{number}", 1)]) for number in range(20))
            )
            assert len(await admin.list_topics()) == 20
            assert "sent CreateTopics" in await admin.debug_dump()
        with pytest.raises(UsageError, match="the admin is closed"):
            await admin.list_topics()

    asyncio.run(main())


def test_a_cancelled_call_leaves_the_client_as_it_was(kafka: EmbeddedKafka) -> None:
    async def main() -> None:
        async with aio.Admin(
            # If the request is on its way already, its connection is silent for this long.
            bootstrap_servers=kafka.bootstrap,
            request_timeout_ms=1000,
        ) as admin:
            await admin.list_topics()
            rule = kafka.faults.drop(api=METADATA, close=False)
            call = asyncio.create_task(admin.list_topics())
            await asyncio.sleep(0)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            rule.cancel()
            assert await admin.list_topics(timeout=30.0) == {}

    asyncio.run(main())


# ---- processes ----

MADE = "admin = Admin(bootstrap_servers=sys.argv[1])\nadmin.list_topics()\n"


def run(kafka: EmbeddedKafka, body: str) -> str:
    done = processes.run(MADE + body, kafka.bootstrap)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_the_end_of_the_process_ends_a_client_that_is_open(kafka: EmbeddedKafka) -> None:
    assert run(kafka, "print('end')") == "end\n"


def test_a_forked_child_is_refused(kafka: EmbeddedKafka) -> None:
    said = run(
        kafka,
        """
warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads, since Python 3.12
pid = os.fork()
if not pid:
    try:
        admin.list_topics()
    except UsageError as error:
        print(error, flush=True)
    admin.close()
    os._exit(0)
os.waitpid(pid, 0)
print(len(admin.list_topics()))
admin.close()
""",
    )
    assert "belongs to the parent of this process" in said
    assert said.endswith("0\n")


def test_ctrl_c_ends_a_call(kafka: EmbeddedKafka) -> None:
    kafka.faults.drop(api=CREATE_TOPICS, applied=False, close=False)
    said = run(
        kafka,
        """
from kafka_fast.admin import NewTopic
def press():
    while "sent CreateTopics" not in admin.debug_dump():
        time.sleep(0.001)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=press).start()
try:
    admin.create_topics([NewTopic("a", 1)])
except KeyboardInterrupt:
    print("interrupted", len(admin.list_topics()))
admin.close()
""",
    )
    assert said == "interrupted 0\n"


BROKER = ConfigResource(ConfigResourceType.BROKER, "1")
TOKEN = base64.b64encode(CANARY.encode()).decode()


@pytest.mark.parametrize(
    "call",
    [
        lambda admin: admin.renew_delegation_token(TOKEN),
        lambda admin: admin.renew_delegation_token(TOKEN + "!"),
        lambda admin: admin.renew_delegation_token(TOKEN, renew_period_ms=-5),
        lambda admin: admin.expire_delegation_token(Secret(TOKEN)),
        lambda admin: admin.expire_delegation_token(TOKEN + "!"),
        lambda admin: admin.alter_configs({BROKER: {"ssl.key.password": CANARY}}, timeout=-1),
        lambda admin: admin.incremental_alter_configs(
            {BROKER: [AlterConfigOp("ssl.key.password", CANARY)]}, timeout=-1
        ),
        lambda admin: admin.incremental_alter_configs(
            {BROKER: [AlterConfigOp("ssl.key.password", CANARY.encode())]}  # type: ignore[arg-type]
        ),
    ],
)
def test_no_error_shows_a_secret(admin: Admin, call: Callable[[Any], object]) -> None:
    with pytest.raises((KafkaError, TypeError)) as raised:
        call(admin)
    assert traces(raised.value) == []
