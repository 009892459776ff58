"""What becomes of a consumer when its process is interrupted, forks, ends or is busy in C.

Each case is a script in a process of its own, for that is what it is about. The broker lives here.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from kafka_fast import Consumer, RebalanceListener, TopicPartition
from kafka_fast.net.waiting.waits import GRACE
from kafka_fast.testing.broker.faults import Rule
from kafka_fast.testing.broker.serving.server import EmbeddedKafka
from kafka_fast.testing.broker.versions import CONSUMER_GROUP_HEARTBEAT, JOIN_GROUP
from tests.embedded import processes
from tests.embedded.consuming import committed, fill, read
from tests.embedded.sanitized import shown_by
from tests.waiting import eventually

DRIVERS = True

TIMEOUT = 60
INTERRUPT_LIMIT = 0.05
"""Seconds from Ctrl-C to KeyboardInterrupt."""
GOODBYE_LIMIT = INTERRUPT_LIMIT + 2 * GRACE
"""The same where the last commit, and after it the goodbye, may still go through."""

PRELUDE = (
    processes.DIARY
    + """
partition = TopicPartition("t", 0)
def make(**config):
    start = {"auto_offset_reset": "earliest", **config}
    return Consumer(bootstrap_servers=sys.argv[1], **start)
"""
)


@pytest.fixture(name="kafka")
def embedded_kafka() -> Iterator[EmbeddedKafka]:
    """One broker with 100 records in t-0."""
    with EmbeddedKafka(brokers=1) as kafka:
        kafka.create_topic("t", 1)
        fill(kafka, "t", 100)
        yield kafka


def start(kafka: EmbeddedKafka, body: str, driver: str = "threads") -> subprocess.Popen[str]:
    return processes.start(body, kafka.bootstrap, prelude=PRELUDE, driver=driver)


def run(kafka: EmbeddedKafka, body: str) -> str:
    """Run a script to its end, which must be a good one; return what it said."""
    done = processes.run(body, kafka.bootstrap, prelude=PRELUDE)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout


BY_HAND = """consumer.assign([partition])
        consumer.seek(partition, 5)"""
LOST = """consumer.assign([partition])"""
MEMBER = """consumer.subscribe(["t"])
        while not consumer.poll(1):
            pass"""
RANGE = """steps = read_range("t", max_records=5, max_partition_fetch_bytes=100,
                           fetch_buffer_bytes=100, bootstrap_servers=sys.argv[1])
        next(steps)"""

WAITS = {  # what comes before the broker stands still, what comes after it, and then waits
    "poll": ("", LOST, "consumer.poll(60)"),
    "iteration": ("", LOST, "next(iter(consumer))"),
    "batches": ("", LOST, "next(consumer.batches())"),
    "commit": ("", LOST, "consumer.commit({partition: 1})"),
    "position": ("", LOST, "consumer.position(partition)"),
    "beginnings": ("", LOST, "consumer.beginning_offsets([partition])"),
    "ends": ("", LOST, "consumer.end_offsets([partition])"),
    "times": ("", LOST, "consumer.offsets_for_times({partition: 10**12})"),
    "lag": ("", LOST, "consumer.lag()"),
    "committed": ("", LOST, "consumer.committed([partition])"),
    "partitions": ("", LOST, "consumer.partitions_for('absent')"),
    "topics": ("", LOST, "consumer.topics()"),
    "close": ("", BY_HAND, "consumer.close()"),
    "unsubscribe": ("", BY_HAND, "consumer.unsubscribe()"),
    "a member's commit": (MEMBER, "", "consumer.commit()"),
    "a member's goodbye": (MEMBER, "", "consumer.close()"),
    "a member's end": (MEMBER, "", "consumer.unsubscribe()"),
    "a subscriber's poll": ("", "consumer.subscribe(['t'])", "consumer.poll(60)"),
    "a new range": ("", "", "read_range('t', bootstrap_servers=sys.argv[1])"),
    "a range": (RANGE, "", "list(steps)"),
}

GOODBYES = ("close", "unsubscribe", "a member's goodbye", "a member's end")


SHOWN = ("poll", "times", "a member's goodbye", "a range")
WHY = "each wait is a generator in Python, and all drivers wait for it in the same compiled way"


@pytest.mark.parametrize("wait", shown_by(SHOWN, WAITS, WHY))
def test_ctrl_c_ends_every_wait_at_once(kafka: EmbeddedKafka, wait: str) -> None:
    """What else runs on this machine may delay one of three, not all of them."""
    limit = GOODBYE_LIMIT if wait in GOODBYES else INTERRUPT_LIMIT
    for _ in range(3):
        seconds = interrupt(kafka, *WAITS[wait])
        if seconds < limit:
            break
        kafka.resume(1)
    assert seconds < limit


def interrupt(kafka: EmbeddedKafka, before: str, after: str, call: str) -> float:
    """Press Ctrl-C in a call that waits for a broker; return how many seconds that takes."""
    process = start(
        kafka,
        f"""
        consumer = make(group_id="g")
        {before}
        print("ready", flush=True)
        input()
        {after}
        def interrupt():
            time.sleep(0.3)
            global sent
            sent = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=interrupt).start()
        try:
            {call}
            print("ended by itself")
        except KeyboardInterrupt:
            print(time.monotonic() - sent)
        sys.stdout.flush()
        os._exit(0)
        """,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()
        kafka.pause(1)
        out, err = process.communicate("go\n", timeout=TIMEOUT)
    finally:
        process.kill()
        process.communicate()
    assert out, err
    return float(out)


@pytest.mark.not_under("thread", "a forked child must not start threads there")
def test_a_forked_child_is_told_and_the_parent_goes_on(kafka: EmbeddedKafka) -> None:
    out = run(
        kafka,
        """
        consumer = make(group_id="g")
        consumer.subscribe(["t"])
        first = next(iter(consumer))
        child = os.fork()
        if child == 0:
            for use in (consumer.poll, consumer.commit, consumer.assignment, consumer.unsubscribe):
                try:
                    use()
                except UsageError as error:
                    assert "parent" in str(error), error
                    print("told", flush=True)
            consumer.wakeup()
            consumer.close()
            del consumer
            gc.collect()
            own = make()
            own.assign([partition])
            print("child", next(iter(own)).offset, flush=True)
            own.close()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        print("parent", [r.offset for r in itertools.islice(consumer, 99)] == list(range(1, 100)))
        consumer.commit()
        consumer.close()
        """,
    )
    assert out.splitlines() == ["told"] * 4 + ["child 0", "parent True"]
    assert committed(kafka, "g") == {("t", 0): 100}


ENDINGS = {
    "return": "",
    "sys.exit": "sys.exit(3)",
    "exception": "raise RuntimeError('the end')",
    "a live thread": "threading.Thread(target=time.sleep, args=(0.2,)).start()",
    "a daemon thread that polls": """
def poll():
    while True:
        consumer.poll(0.1)
threading.Thread(target=poll, daemon=True).start()
time.sleep(0.2)
""",
}


ENDINGS_SHOWN = ("return", "a daemon thread that polls")
WHY_ENDINGS = "with no other thread in the client, the interpreter ends it as after the last line"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("ending", shown_by(ENDINGS_SHOWN, ENDINGS, WHY_ENDINGS))
def test_a_process_that_ends_without_closing_leaves_its_group(
    kafka: EmbeddedKafka, driver: str, ending: str, protocol: str
) -> None:
    """It commits nothing: nobody knows what is done. The next member need not wait for it."""
    body = f"""
consumer = make(group_id="g", group_protocol={protocol!r})
consumer.subscribe(["t"])
print(next(iter(consumer)).offset, flush=True)
"""
    process = start(kafka, body + ENDINGS[ending], driver)
    out, err = process.communicate(timeout=TIMEOUT)
    assert process.returncode in (0, 1, 3), err
    assert out == "0\n", err
    assert "the interpreter ends with consumer 'consumer-g-1' in its group" in err
    assert ("Traceback" in err) == (ending == "exception"), err
    assert committed(kafka, "g").get(("t", 0), 0) == 0
    with Consumer(
        bootstrap_servers=kafka.bootstrap,
        group_id="g",
        group_protocol=protocol,
        auto_offset_reset="earliest",
    ) as follower:
        follower.subscribe(["t"])
        assert len(read(follower, 100, timeout=20)) == 100  # a session lasts 45 s


JOINS = {"classic": JOIN_GROUP, "consumer": CONSUMER_GROUP_HEARTBEAT}


def end_while_joining(
    kafka: EmbeddedKafka, driver: str, protocol: str, join: Rule, **config: str
) -> str:
    """Have a process end before its join is answered; return what it complained of."""
    process = start(
        kafka,
        f"""
        consumer = make(group_id="g", group_protocol={protocol!r}, **{config!r})
        consumer.subscribe(["t"])
        sys.stdin.readline()
        """,
        driver,
    )
    try:
        eventually(lambda: join.used_up, "a join")
        _, err = process.communicate("\n", timeout=15)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0, err
    return err


def test_an_id_that_a_process_leaves_behind_does_not_delay_the_group(
    kafka: EmbeddedKafka, driver: str
) -> None:
    """Regression: it had joined without one, and a rebalance waited for it until a session ends."""
    with Consumer(
        bootstrap_servers=kafka.bootstrap, group_id="g", auto_offset_reset="earliest"
    ) as member:
        member.subscribe(["t"])
        assert len(read(member, 100)) == 100
        delay = kafka.faults.delay(0.5, api=JOIN_GROUP, count=1)
        end_while_joining(kafka, driver, "classic", delay)
        generation, deadline = member.group_metadata().generation, time.monotonic() + 20
        member.enforce_rebalance()
        while member.group_metadata().generation == generation:
            assert time.monotonic() < deadline, "no rebalance; a session lasts 45 s"
            member.poll(0.05)


def test_a_process_that_ends_while_it_joins_gets_no_partitions(
    kafka: EmbeddedKafka, driver: str
) -> None:
    """Regression: with KIP-848 it was a member, with partitions, until its session ended."""
    delay = kafka.faults.delay(0.5, api=CONSUMER_GROUP_HEARTBEAT, count=1)
    end_while_joining(kafka, driver, "consumer", delay)
    with Consumer(
        bootstrap_servers=kafka.bootstrap,
        group_id="g",
        group_protocol="consumer",
        auto_offset_reset="earliest",
    ) as follower:
        follower.subscribe(["t"])
        assert len(read(follower, 100, timeout=20)) == 100  # a session lasts 45 s


@pytest.mark.parametrize("instance", [{}, {"group_instance_id": "i"}])
@pytest.mark.parametrize("protocol", JOINS)
def test_a_process_ends_soon_when_its_join_is_not_answered(
    kafka: EmbeddedKafka, driver: str, protocol: str, instance: dict[str, str]
) -> None:
    lost = kafka.faults.drop(api=JOINS[protocol], count=1)
    assert end_while_joining(kafka, driver, protocol, lost, **instance) == ""


def test_a_child_of_multiprocessing_leaves_its_group(kafka: EmbeddedKafka) -> None:
    """Regression: a forked one runs none of atexit's functions, and its session had to end."""
    out = run(
        kafka,
        """
        import multiprocessing
        def read():
            global kept
            kept = make(group_id="g")
            kept.subscribe(["t"])
            print(next(iter(kept)).offset, flush=True)
        child = multiprocessing.get_context("fork").Process(target=read)
        child.start()
        child.join()
        """,
    )
    assert out == "0\n"
    with Consumer(
        bootstrap_servers=kafka.bootstrap, group_id="g", auto_offset_reset="earliest"
    ) as follower:
        follower.subscribe(["t"])
        assert len(read(follower, 100, timeout=20)) == 100  # a session lasts 45 s


def test_a_process_that_only_commits_for_a_group_ends_without_a_warning(
    kafka: EmbeddedKafka, driver: str
) -> None:
    done = processes.run(
        """
        consumer = make(group_id="g")
        consumer.assign([partition])
        next(iter(consumer))
        consumer.commit()
        """,
        kafka.bootstrap,
        prelude=PRELUDE,
        driver=driver,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert committed(kafka, "g") == {("t", 0): 1}


def test_a_process_ends_soon_when_its_coordinator_does_not_answer(
    kafka: EmbeddedKafka, driver: str
) -> None:
    process = start(
        kafka,
        """
        consumer = make(group_id="g")
        consumer.subscribe(["t"])
        next(iter(consumer))
        print("go", flush=True)
        sys.stdin.readline()
        """,
        driver,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "go\n"
    kafka.pause(1)
    process.communicate("\n", timeout=15)
    assert process.returncode == 0


@pytest.mark.parametrize("way", ["close", "unsubscribe"])
def test_a_listener_that_raises_does_not_keep_a_member_in_its_group(
    kafka: EmbeddedKafka, consumer_class: Any, way: str
) -> None:
    class Refuses(RebalanceListener):
        def on_partitions_revoked(
            self, consumer: Consumer, partitions: Iterable[TopicPartition]
        ) -> None:
            raise RuntimeError("no")

    config = {
        "bootstrap_servers": kafka.bootstrap,
        "group_id": "g",
        "auto_offset_reset": "earliest",
        "enable_auto_commit": False,
    }
    with consumer_class(**config) as consumer:
        consumer.subscribe(["t"], listener=Refuses())
        assert len(read(consumer, 100)) == 100
        with pytest.raises(RuntimeError, match="no"):
            getattr(consumer, way)()
        assert (way == "close") == ("closed" in repr(consumer))
        with Consumer(**config) as follower:
            follower.subscribe(["t"])
            assert len(read(follower, 100, timeout=20)) == 100


def test_a_fork_inside_a_listener(kafka: EmbeddedKafka) -> None:
    out = run(
        kafka,
        """
        class Forks(RebalanceListener):
            def on_partitions_assigned(self, consumer, partitions):
                child = os.fork()
                if child == 0:
                    try:
                        consumer.position(partition)
                    except UsageError as error:
                        assert "parent" in str(error), error
                        print("told", flush=True)
                    consumer.close()
                    os._exit(0)
                _, status = os.waitpid(child, 0)
                print("child", status, flush=True)
        consumer = make(group_id="g")
        consumer.subscribe(["t"], listener=Forks())
        print("parent", [r.offset for r in itertools.islice(consumer, 100)] == list(range(100)))
        consumer.close()
        """,
    )
    assert out.splitlines() == ["told", "child 0", "parent True"]


def test_a_process_that_is_killed_loses_nothing(kafka: EmbeddedKafka, driver: str) -> None:
    process = start(
        kafka,
        """
        consumer = make(group_id="g", auto_commit_interval_ms=0)
        consumer.subscribe(["t"])
        for record in consumer:
            print(record.offset, flush=True)
            sys.stdin.readline()
        """,
        driver,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    for offset in range(30):
        assert process.stdout.readline() == f"{offset}\n"
        process.stdin.write("\n")
        process.stdin.flush()
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=TIMEOUT)
    assert committed(kafka, "g").get(("t", 0), 0) <= 30


@pytest.mark.slow
@pytest.mark.repeats("heartbeats are sent in the same way whoever holds the GIL; it takes 15 s")
def test_a_member_survives_c_code_that_holds_the_gil(kafka: EmbeddedKafka) -> None:
    """Twice its session timeout, and records are fetched meanwhile."""
    out = run(
        kafka,
        """
        consumer = make(group_id="g", session_timeout_ms=6_000, heartbeat_interval_ms=1_000)
        consumer.subscribe(["t"], listener=Diary())
        assert len(consumer.poll(30)) == 100
        before = consumer.metrics()["heartbeats"]
        ctypes.PyDLL(None).usleep(13_000_000)
        print(consumer.metrics()["heartbeats"] - before >= 11)
        deadline = time.monotonic() + 2
        while time.monotonic() < deadline:
            consumer.poll(0.1)
        print(Diary.heard, consumer.group_metadata().generation)
        consumer.close()
        """,
    )
    assert out.splitlines() == ["True", "['assigned'] 1"]
    assert committed(kafka, "g") == {("t", 0): 100}
