"""The peers' admin clients and ours on one broker: the same calls tell the same facts.

Each row is played twice with each peer: the peer sees what ours has done, and the other way round.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from kafka_fast import Admin, Consumer, Producer
from kafka_fast.testing._kafka.real_kafka import RealKafka
from tests.integration.admin.admin_clients import admin
from tests.integration.admin.peers.confluent import Confluent
from tests.integration.admin.peers.contenders import OK, Client, Facts, Group, Setting
from tests.integration.admin.peers.kafka_python import KafkaPython
from tests.integration.admin.peers.ours import Ours
from tests.integration.admin.peers.scene import FIRST_TIMESTAMP_MS, RECORDS, Row, Rows, Scene
from tests.waiting import eventually

__all__ = ["admin"]

pytestmark = [
    pytest.mark.broker,
    pytest.mark.needs_kafka("4.1", "peers and ours have the newest calls to compare"),
    pytest.mark.filterwarnings("ignore"),  # they are the peers' own
]

ROWS = Rows()
CONFLUENT = ("confluent-kafka",)
KAFKA_PYTHON = ("kafka-python",)
UNKNOWN_TOPIC = "UNKNOWN_TOPIC_OR_PARTITION"
DYNAMIC_TOPIC = 1
"""The source of a property that was set on its topic."""


# ---- topics ----


@ROWS("topics: create", (OK, (False, [(number, 1, [1], [1]) for number in range(3)])))
def _(scene: Scene) -> Facts:
    name = scene.new_name()
    done = scene.actor.create_topic(name, 3)
    eventually(lambda: name in scene.watcher.topics())
    return done, scene.both(lambda client: client.describe_topic(name))


@ROWS("topics: create with settings", (OK, "1234", "compact"))
def _(scene: Scene) -> Facts:
    name = scene.new_name()
    configs = {"retention.ms": "1234", "cleanup.policy": "compact"}
    done = scene.actor.create_topic(name, 1, configs=configs)
    eventually(lambda: name in scene.watcher.topics())
    settings = scene.watcher.settings("TOPIC", name)
    return done, settings["retention.ms"].value, settings["cleanup.policy"].value


@ROWS("topics: only validate", (OK, False))
def _(scene: Scene) -> Facts:
    name = scene.new_name()
    done = scene.actor.create_topic(name, 3, validate_only=True)
    return done, name in scene.watcher.topics()


@ROWS("topics: create one that exists", "TOPIC_ALREADY_EXISTS")
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    return scene.both(lambda client: client.create_topic(name, 3))


@ROWS("topics: create without partitions", "INVALID_PARTITIONS")
def _(scene: Scene) -> Facts:
    return scene.both(lambda client: client.create_topic(scene.new_name(), 0))


@ROWS("topics: create with more replicas than nodes", "INVALID_REPLICATION_FACTOR")
def _(scene: Scene) -> Facts:
    return scene.both(lambda client: client.create_topic(scene.new_name(), 1, replication=9))


@ROWS("topics: create with a bad name", "INVALID_TOPIC_EXCEPTION")
def _(scene: Scene) -> Facts:
    return scene.both(lambda client: client.create_topic("not a topic!", 1))


@ROWS("topics: create with an unknown setting", "INVALID_CONFIG")
def _(scene: Scene) -> Facts:
    configs = {"no.such.setting": "1"}
    return scene.both(lambda client: client.create_topic(scene.new_name(), 1, configs=configs))


@ROWS("topics: list", (True, False))
def _(scene: Scene) -> Facts:
    name, other = scene.new_topic(), scene.new_name()
    return scene.both(lambda client: (name in client.topics(), other in client.topics()))


@ROWS("topics: describe an unknown one", UNKNOWN_TOPIC)
def _(scene: Scene) -> Facts:
    name = scene.new_name()
    return scene.both(lambda client: client.describe_topic(name))


@ROWS("topics: describe an internal one", True)
def _(scene: Scene) -> Facts:
    scene.new_group(scene.new_topic(), 0)
    return scene.both(lambda client: client.describe_topic("__consumer_offsets"))[0]


@ROWS("topics: id", 22)
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    return len(scene.both(lambda client: client.topic_id(name)))


@ROWS(
    "topics: what a client may do",
    {"READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE_CONFIGS", "ALTER_CONFIGS"},
)
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    return scene.both(lambda client: client.topic_operations(name))


@ROWS("topics: delete", (OK, UNKNOWN_TOPIC))
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    done = scene.actor.delete_topic(name)
    eventually(lambda: name not in scene.watcher.topics())
    return done, scene.both(lambda client: client.describe_topic(name))


@ROWS("topics: delete an unknown one", UNKNOWN_TOPIC)
def _(scene: Scene) -> Facts:
    name = scene.new_name()
    return scene.both(lambda client: client.delete_topic(name))


# ---- partitions and records ----


@ROWS("partitions: create", (OK, [0, 1, 2, 3]))
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    done = scene.actor.create_partitions(name, 4)
    eventually(lambda: len(scene.watcher.describe_topic(name)[1]) == 4)
    return done, [one[0] for one in scene.both(lambda client: client.describe_topic(name))[1]]


@ROWS("partitions: create fewer than there are", "INVALID_PARTITIONS")
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    return scene.both(lambda client: client.create_partitions(name, 1))


@ROWS("partitions: create for an unknown topic", UNKNOWN_TOPIC)
def _(scene: Scene) -> Facts:
    name = scene.new_name()
    return scene.both(lambda client: client.create_partitions(name, 4))


@ROWS("partitions: elect a leader that leads", "ELECTION_NOT_NEEDED")
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    return scene.both(lambda client: client.elect("PREFERRED", name, 0))


@ROWS("partitions: elect for an unknown topic", UNKNOWN_TOPIC)
def _(scene: Scene) -> Facts:
    name = scene.new_name()
    return scene.both(lambda client: client.elect("PREFERRED", name, 0))


@ROWS(
    "partitions: reassign to a node that there is not",
    "INVALID_REPLICA_ASSIGNMENT",
    peers=KAFKA_PYTHON,
)
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    return scene.both(lambda client: client.reassign(name, 0, [9]))


@ROWS("partitions: cancel no reassignment", ("NO_REASSIGNMENT_IN_PROGRESS", 0), peers=KAFKA_PYTHON)
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    cancelled = scene.both(lambda client: client.reassign(name, 0, None))
    return cancelled, scene.both(lambda client: client.reassignments(name, 0))


@ROWS("records: delete", (3, 3))
def _(scene: Scene) -> Facts:
    name = scene.topic_with_records()
    done = scene.actor.delete_records(name, 0, 3)
    return done, scene.watcher.offset(name, 0, "EARLIEST")


@ROWS("records: delete all", (RECORDS, RECORDS))
def _(scene: Scene) -> Facts:
    name = scene.topic_with_records()
    done = scene.actor.delete_records(name, 0, -1)
    return done, scene.watcher.offset(name, 0, "EARLIEST")


@ROWS("records: delete beyond the end", "OFFSET_OUT_OF_RANGE")
def _(scene: Scene) -> Facts:
    name = scene.topic_with_records()
    return scene.both(lambda client: client.delete_records(name, 0, RECORDS + 1))


@ROWS("offsets: first, last, latest timestamp", [0, RECORDS, RECORDS - 1])
def _(scene: Scene) -> Facts:
    name = scene.topic_with_records()
    specs = ("EARLIEST", "LATEST", "MAX_TIMESTAMP")
    return scene.both(lambda client: [client.offset(name, 0, spec) for spec in specs])


@ROWS("offsets: by time", [0, 3, -1])
def _(scene: Scene) -> Facts:
    name = scene.topic_with_records()
    times = [FIRST_TIMESTAMP_MS + ms for ms in (0, 2500, 99_000_000)]
    return scene.both(lambda client: [client.offset(name, 0, time) for time in times])


@ROWS("records: producers", 1, peers=KAFKA_PYTHON)
def _(scene: Scene) -> Facts:
    name = scene.topic_with_records()
    return len(scene.both(lambda client: client.producers(name, 0)))


@ROWS("records: size on disk", 1, peers=KAFKA_PYTHON)
def _(scene: Scene) -> Facts:
    name = scene.topic_with_records()
    ((node, _path, size),) = scene.both(lambda client: client.size_on_disk(name, 0))
    assert size > RECORDS
    return node


# ---- settings ----


def has_retention(client: Client, topic: str) -> bool:
    """Tell whether the client sees that retention.ms was set on a topic."""
    source: int = client.settings("TOPIC", topic)["retention.ms"].source
    return source == DYNAMIC_TOPIC


@ROWS("settings: describe a topic")
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    settings = scene.both(lambda client: client.settings("TOPIC", name))
    assert settings["max.message.bytes"] == Setting("1048588", 5, False, False)
    assert len(settings) > 20


@ROWS("settings: describe a broker")
def _(scene: Scene) -> Facts:
    settings = scene.both(lambda client: client.settings("BROKER", "1"))
    assert settings["broker.id"].is_read_only
    assert settings["ssl.key.password"].is_sensitive


# kafka-python drops the error, and has found nothing.
@ROWS("settings: describe an unknown topic", UNKNOWN_TOPIC, peers=CONFLUENT)
def _(scene: Scene) -> Facts:
    name = scene.new_name()
    return scene.both(lambda client: client.settings("TOPIC", name))


@ROWS("settings: set and delete", (OK, Setting("4321", 1, False, False), OK, False))
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    done = scene.actor.alter_setting("TOPIC", name, "SET", "retention.ms", "4321")
    eventually(
        lambda: scene.watcher.settings("TOPIC", name)["retention.ms"].source == DYNAMIC_TOPIC
    )
    seen = scene.both(lambda client: client.settings("TOPIC", name)["retention.ms"])
    undone = scene.actor.alter_setting("TOPIC", name, "DELETE", "retention.ms", None)
    eventually(
        lambda: scene.watcher.settings("TOPIC", name)["retention.ms"].source != DYNAMIC_TOPIC
    )
    after = scene.both(lambda client: client.settings("TOPIC", name)["retention.ms"])
    return done, seen, undone, after.value == seen.value


@ROWS("settings: append and subtract", (OK, "delete,compact", OK, "compact"))
def _(scene: Scene) -> Facts:
    name = scene.new_topic()

    def policy(client: Client) -> str | None:
        value: str | None = client.settings("TOPIC", name)["cleanup.policy"].value
        return value

    done = scene.actor.alter_setting("TOPIC", name, "APPEND", "cleanup.policy", "compact")
    eventually(lambda: policy(scene.watcher) != "delete")
    seen = scene.both(policy)
    undone = scene.actor.alter_setting("TOPIC", name, "SUBTRACT", "cleanup.policy", "delete")
    eventually(lambda: policy(scene.watcher) != seen)
    return done, seen, undone, scene.both(policy)


@ROWS("settings: replace all", (OK, "1000", False), peers=CONFLUENT)
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    scene.watcher.alter_setting("TOPIC", name, "SET", "retention.ms", "4321")
    done = scene.actor.replace_settings("TOPIC", name, {"retention.bytes": "1000"})
    eventually(
        lambda: scene.watcher.settings("TOPIC", name)["retention.ms"].source != DYNAMIC_TOPIC
    )
    settings = scene.both(lambda client: client.settings("TOPIC", name))
    return done, settings["retention.bytes"].value, settings["retention.ms"].value == "4321"


@ROWS("settings: set an unknown one", "INVALID_CONFIG")
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    return scene.both(
        lambda client: client.alter_setting("TOPIC", name, "SET", "no.such.setting", "1")
    )


@ROWS("settings: set a bad value", "INVALID_CONFIG")
def _(scene: Scene) -> Facts:
    name = scene.new_topic()
    return scene.both(
        lambda client: client.alter_setting("TOPIC", name, "SET", "retention.ms", "soon")
    )


@ROWS("settings: of an unknown topic", UNKNOWN_TOPIC)
def _(scene: Scene) -> Facts:
    name = scene.new_name()
    return scene.both(
        lambda client: client.alter_setting("TOPIC", name, "SET", "retention.ms", "1")
    )


@ROWS("settings: set of a group", (OK, "50000"))
def _(scene: Scene) -> Facts:
    name, key = scene.new_name("group"), "consumer.session.timeout.ms"
    done = scene.actor.alter_setting("GROUP", name, "SET", key, "50000")
    eventually(lambda: scene.watcher.settings("GROUP", name)[key].value == "50000")
    return done, scene.both(lambda client: client.settings("GROUP", name)[key].value)


@ROWS("settings: list resources", {"1"}, peers=KAFKA_PYTHON)
def _(scene: Scene) -> Facts:
    return scene.both(lambda client: client.resources("BROKER"))


# ---- groups ----


@ROWS("groups: list", ("EMPTY", "CLASSIC"))
def _(scene: Scene) -> Facts:
    group = scene.new_group(scene.new_topic(), 0)
    return scene.both(lambda client: client.groups()[group])


@ROWS("groups: describe one without members", Group("EMPTY", "", True, []))
def _(scene: Scene) -> Facts:
    group = scene.new_group(scene.new_topic(), 0)
    return scene.both(lambda client: client.describe_group(group))


@ROWS("groups: describe one with a member", Group("STABLE", "range", False, [[0, 1]]))
def _(scene: Scene) -> Facts:
    return scene.both(lambda client: client.describe_group(MEMBERS_GROUP))


@ROWS("groups: delete", (OK, False))
def _(scene: Scene) -> Facts:
    group = scene.new_group(scene.new_topic(), 0)
    done = scene.actor.delete_group(group)
    return done, scene.both(lambda client: group in client.groups())


@ROWS("groups: delete an unknown one", "GROUP_ID_NOT_FOUND")
def _(scene: Scene) -> Facts:
    group = scene.new_name("group")
    return scene.both(lambda client: client.delete_group(group))


@ROWS("groups: delete one with a member", "NON_EMPTY_GROUP")
def _(scene: Scene) -> Facts:
    return scene.both(lambda client: client.delete_group(MEMBERS_GROUP))


@ROWS("group offsets: list", [5, -1])
def _(scene: Scene) -> Facts:
    topic = scene.new_topic()
    group = scene.new_group(topic, 5)
    return scene.both(lambda client: [client.committed(group, topic, one) for one in (0, 1)])


@ROWS("group offsets: list all", True)
def _(scene: Scene) -> Facts:
    topic = scene.new_topic()
    group = scene.new_group(topic, 5)
    return scene.both(lambda client: client.all_committed(group)) == {(topic, 0): 5}


@ROWS("group offsets: list of an unknown group", -1)
def _(scene: Scene) -> Facts:
    topic, group = scene.new_topic(), scene.new_name("group")
    return scene.both(lambda client: client.committed(group, topic, 0))


@ROWS("group offsets: alter", (OK, 7))
def _(scene: Scene) -> Facts:
    topic = scene.topic_with_records()
    group = scene.new_group(topic, 5)
    done = scene.actor.commit(group, topic, 0, 7)
    return done, scene.both(lambda client: client.committed(group, topic, 0))


@ROWS("group offsets: alter for an unknown topic", UNKNOWN_TOPIC)
def _(scene: Scene) -> Facts:
    topic, group = scene.new_name(), scene.new_name("group")
    return scene.both(lambda client: client.commit(group, topic, 0, 7))


@ROWS("group offsets: alter of a group with a member", "UNKNOWN_MEMBER_ID")
def _(scene: Scene) -> Facts:
    topic = scene.new_topic()
    return scene.both(lambda client: client.commit(MEMBERS_GROUP, topic, 0, 7))


@ROWS("group offsets: delete", (OK, -1), peers=KAFKA_PYTHON)
def _(scene: Scene) -> Facts:
    topic = scene.new_topic()
    group = scene.new_group(topic, 5)
    done = scene.actor.delete_offset(group, topic, 0)
    return done, scene.both(lambda client: client.committed(group, topic, 0))


@ROWS("group offsets: delete of an unknown group", "GROUP_ID_NOT_FOUND", peers=KAFKA_PYTHON)
def _(scene: Scene) -> Facts:
    topic, group = scene.new_topic(), scene.new_name("group")
    return scene.both(lambda client: client.delete_offset(group, topic, 0))


# ---- the cluster ----


@ROWS("cluster: describe")
def _(scene: Scene) -> Facts:
    cluster_id, controller, ((node, _host, _port),) = scene.both(lambda client: client.cluster())
    assert cluster_id
    assert controller == node == 1


@ROWS("cluster: features", peers=KAFKA_PYTHON)
def _(scene: Scene) -> Facts:
    finalized, supported = scene.both(lambda client: client.features())
    assert "metadata.version" in finalized
    assert "metadata.version" in supported


@ROWS("cluster: quorum", peers=KAFKA_PYTHON)
def _(scene: Scene) -> Facts:
    leader, _epoch, voters = scene.both(lambda client: client.quorum())
    assert voters == [leader]


# The transactions of other tests are there, too.
@ROWS("transactions: list", True, peers=KAFKA_PYTHON)
def _(scene: Scene) -> Facts:
    return isinstance(scene.both(lambda client: client.transactions()), list)


# ---- access ----


# librdkafka drops the error, and has found nothing.
@ROWS("access: describe without an authorizer", "SECURITY_DISABLED", peers=KAFKA_PYTHON)
def _(scene: Scene) -> Facts:
    return scene.both(lambda client: client.acls())


@ROWS("access: allow without an authorizer", "SECURITY_DISABLED")
def _(scene: Scene) -> Facts:
    return scene.both(lambda client: client.create_acl(scene.new_name(), "User:bob"))


@ROWS("access: delete without an authorizer", "SECURITY_DISABLED")
def _(scene: Scene) -> Facts:
    return scene.both(lambda client: client.delete_acls(scene.new_name()))


@ROWS("users: set and delete a password", (OK, [(1, 5000)], OK, False))
def _(scene: Scene) -> Facts:
    user = scene.new_name("user")
    done = scene.actor.set_password(user, "SCRAM_SHA_256", 5000)
    eventually(lambda: user in scene.watcher.users())
    seen = scene.both(lambda client: client.user(user))
    undone = scene.actor.delete_password(user, "SCRAM_SHA_256")
    eventually(lambda: user not in scene.watcher.users())
    return done, seen, undone, user in scene.both(lambda client: client.users())


@ROWS("users: one with two mechanisms", [(1, 4096), (2, 8192)])
def _(scene: Scene) -> Facts:
    user = scene.new_name("user")
    scene.actor.set_password(user, "SCRAM_SHA_256", 4096)
    scene.watcher.set_password(user, "SCRAM_SHA_512", 8192)
    eventually(lambda: len(scene.watcher.user(user)) == 2)
    return scene.both(lambda client: client.user(user))


# kafka-python tells the text of the error, and not its code.
@ROWS("users: describe an unknown one", "RESOURCE_NOT_FOUND", peers=CONFLUENT)
def _(scene: Scene) -> Facts:
    user = scene.new_name("user")
    return scene.both(lambda client: client.user(user))


@ROWS("users: delete the password of an unknown one", "RESOURCE_NOT_FOUND", peers=CONFLUENT)
def _(scene: Scene) -> Facts:
    user = scene.new_name("user")
    return scene.both(lambda client: client.delete_password(user, "SCRAM_SHA_256"))


# ---- the table is played ----

MEMBERS_GROUP = f"admin-peers-{uuid.uuid4().hex}"
"""A group that has a member as long as this module runs; its topic has the same name."""


@pytest.fixture(scope="module")
def clients(real_kafka: RealKafka, admin: Admin) -> Iterator[dict[str, Client]]:
    """Ours and each peer's, by name."""
    peers = [Confluent(real_kafka.bootstrap), KafkaPython(real_kafka.bootstrap)]
    yield {client.name: client for client in (Ours(admin), *peers)}
    for peer in peers:
        peer.close()


@pytest.fixture(scope="module")
def producer(real_kafka: RealKafka) -> Iterator[Producer]:
    with Producer(bootstrap_servers=real_kafka.bootstrap) as made:
        yield made


@pytest.fixture(scope="module")
def member(real_kafka: RealKafka) -> Iterator[Consumer]:
    """The member of MEMBERS_GROUP."""
    real_kafka.create_topic(MEMBERS_GROUP, partitions=2)
    properties = {
        "bootstrap.servers": real_kafka.bootstrap,
        "group.id": MEMBERS_GROUP,
        "partition.assignment.strategy": "range",
    }
    with Consumer(properties) as made:
        made.subscribe([MEMBERS_GROUP])
        eventually(lambda: made.poll(timeout=0.1) is not None and made.assignment())
        yield made


@pytest.mark.parametrize(
    ("row", "peer"),
    [pytest.param(row, peer, id=f"{row.name}, {peer}") for row in ROWS for peer in row.peers],
)
@pytest.mark.usefixtures("member")
def test_the_facts_are_the_same(
    row: Row, peer: str, clients: dict[str, Client], admin: Admin, producer: Producer
) -> None:
    ours = clients["kafka_fast"]
    for actor, watcher in ((ours, clients[peer]), (clients[peer], ours)):
        facts = row.play(Scene(actor, watcher, admin, producer))
        assert facts == row.facts, f"{actor.name} has acted, {watcher.name} has looked"


def test_there_are_forty_rows_and_both_peers_take_part() -> None:
    assert len({row.name for row in ROWS}) == len(ROWS) >= 40
    for peer in ("confluent-kafka", "kafka-python"):
        assert len([row for row in ROWS if peer in row.peers]) >= 40
