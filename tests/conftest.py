"""Fixtures and options that all tests share.

`real_kafka` (one node), `real_kafka_cluster` (three) and `secure_kafka` (TLS and SASL) are real
Apache Kafka, started once for the whole run; tests that use them are marked `broker`. Without Java
or Maven they are skipped with that reason, and fail where CI=true, because there nothing may be
skipped silently. The same holds for tests marked `native_codec` in a build that has no library for
the codec.
Tests of a peer that has no wheels for this Python are skipped, too.
Tests marked `not_under` are skipped under the sanitizer that they name (tests/sanitize), or under
the emulator of another processor (tests/platforms).
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from kafka_fast.logs import RateLimit
from kafka_fast.record import codecs_available
from kafka_fast.testing._kafka.broker_jars import DEFAULT_VERSION, ToolMissingError
from kafka_fast.testing._kafka.real_kafka import RealKafka
from kafka_fast.testing._kafka.secure_kafka import SecureKafka
from kafka_fast.testing.certificates import CertificateAuthority
from kafka_fast.testing.secure_broker import SecureBroker

# How fast the machine is says nothing of the code.
settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("any machine")

# A shell has its background jobs ignore Ctrl-C, and so would the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

NOT_PACKAGED = {"confluent_kafka"} if sys.version_info >= (3, 15) else set()
"""Peers without wheels for this Python; pyproject.toml leaves them out, too."""


class NotPackaged(MetaPathFinder):
    """Skips each test, or file of tests, that imports such a peer and does not find it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> None:
        """Find nothing."""
        if fullname in NOT_PACKAGED:
            why = f"{fullname} has no wheels for Python {sys.version_info[0]}.{sys.version_info[1]}"
            pytest.skip(why, allow_module_level=True)


sys.meta_path.append(NotPackaged())

SHORT_ENOUGH_FOR_AN_ID = 20
BROKER_FIXTURES = {
    "real_kafka",
    "real_kafka_cluster",
    "secure_kafka",
    "eager_kafka",
    "stock_kafka",
}


IS_CI = os.environ.get("CI") == "true"

UNDER = {
    os.environ.get("KAFKA_FAST_SANITIZER"),
    "emulator" if "KAFKA_FAST_EMULATOR" in os.environ else None,
}
"""What runs the tests, beside Python: a sanitizer, or the emulator of another processor."""

MEANT_TO_LACK_CODECS = os.environ.get("KAFKA_FAST_NATIVE_CODECS") == "0"
"""Said by `make test-without-codecs`, whose build has no headers on purpose."""

FOREIGN_CODECS = [codec for codec, by in codecs_available().items() if by != "native"]
"""Those that Python packages serve here, because the build found no headers."""


def pytest_configure(config: pytest.Config) -> None:
    """Set how often Python changes threads, here and in scripts (tests/embedded/processes.py).

    Let producers say what is true of this build; of other codecs it stays an error.
    """
    interval = config.getoption("--switch-interval")
    if interval is not None:
        sys.setswitchinterval(interval)
        os.environ["KAFKA_FAST_TEST_SWITCH_INTERVAL"] = str(interval)
    for codec in FOREIGN_CODECS:
        config.addinivalue_line(
            "filterwarnings", f"ignore:this build has no library for {codec}:RuntimeWarning"
        )


def without_codec_warnings(errors: str) -> str:
    """Return what a command wrote to stderr, less what it says of the codecs that are missing."""
    told = tuple(f"kafka-fast: this build has no library for {codec}:" for codec in FOREIGN_CODECS)
    return "".join(line for line in errors.splitlines(True) if not line.startswith(told or "\0"))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what a sanitizer cannot run, and what needs a codec in C that this build lacks.

    A codec that is missing is a failure with CI=true.
    """
    for mark in item.iter_markers("not_under"):
        what, why = mark.args
        if what in UNDER:
            pytest.skip(f"not under {what}: {why}")
    for mark in item.iter_markers("native_codec"):
        codec, why = mark.args
        if codec not in FOREIGN_CODECS:
            continue
        if IS_CI and not MEANT_TO_LACK_CODECS:
            pytest.fail(f"CI must have {codec} compiled in: {why}")
        pytest.skip(f"this build has no library for {codec}: {why}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the simulation, of the old-broker run and of the long tests."""
    parser.addoption(
        "--seeds", type=int, default=200, help="how many seeds each simulation runs (tests/sim)"
    )
    parser.addoption("--seed", type=int, default=None, help="run this seed only (tests/sim)")
    parser.addoption(
        "--kafka-version", default=None, help="run the broker tests on this version of Kafka"
    )
    parser.addoption(
        "--switch-interval",
        type=float,
        default=None,
        help="how many seconds a Python thread runs before another one may (Python's own: 0.005)",
    )
    parser.addoption(
        "--long", action="store_true", help="run the tests that are marked so, and no others"
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that use a real broker; scenarios carry the word in a parameter.

    Long tests are left to `make test-long`. Files with slow tests come first: workers that share
    the files then end at the same time.
    """
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
        if BROKER_FIXTURES & fixtures or ("real" in parameters and "integration" in item.nodeid):
            item.add_marker(pytest.mark.broker)
    long = config.getoption("--long")
    items[:] = [item for item in items if is_marked(item, "long") == long]
    slow = {item.path for item in items if is_marked(item, "slow") or is_marked(item, "spark")}
    items.sort(key=lambda item: item.path not in slow)


def is_marked(item: pytest.Item, name: str) -> bool:
    """Return whether a test has a mark; its keywords have the names of folders as well."""
    return item.get_closest_marker(name) is not None


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name long bytes by their parameter: some hold the time, and workers compare their tests."""
    return argname if isinstance(val, bytes) and len(val) > SHORT_ENOUGH_FOR_AN_ID else None


@pytest.fixture(autouse=True)
def _every_test_may_hear_everything() -> None:
    """What one test was told often, the next may want to hear."""
    for name, logger in logging.root.manager.loggerDict.items():
        if name.startswith("kafka_fast") and isinstance(logger, logging.Logger):
            for limit in logger.filters:
                if isinstance(limit, RateLimit):
                    limit.forget_messages()


def started(
    nodes: int,
    version: str | None,
    overrides: Mapping[str, str | int | bool] | None = None,
    *,
    stock: bool = False,
) -> RealKafka:
    """Start a cluster, or skip the test that wants it (fail with CI=true)."""
    kafka = RealKafka(nodes, version or DEFAULT_VERSION, overrides=overrides, stock=stock)
    start_or_skip(kafka)
    return kafka


def start_or_skip(kafka: RealKafka) -> None:
    """Start a cluster, or skip the test that wants it (fail with CI=true)."""
    try:
        kafka.start()
    except ToolMissingError as missing:
        if IS_CI:
            pytest.fail(f"CI must run the real-broker tests: {missing}")
        pytest.skip(f"no real Kafka here: {missing}")


@pytest.fixture(scope="session")
def real_kafka(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """One real broker, shared by all tests: make topics of your own."""
    with started(1, request.config.getoption("--kafka-version")) as kafka:
        yield kafka


@pytest.fixture(scope="session")
def secure_kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecureKafka]:
    """One real broker with TLS, SASL and ACLs, shared by all tests: make topics of your own.

    What is allowed to bob stays allowed: name topics and groups that only your test has.
    """
    version = request.config.getoption("--kafka-version") or DEFAULT_VERSION
    if version == "2.1.1":
        pytest.skip("Kafka 2.7: certificates in PEM")
    kafka = SecureKafka(tmp_path_factory.mktemp("secure"), version=version)
    start_or_skip(kafka)
    with kafka:
        yield kafka


@pytest.fixture(scope="session")
def certificate_authority(tmp_path_factory: pytest.TempPathFactory) -> CertificateAuthority:
    """An authority that nobody else trusts."""
    return CertificateAuthority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def secure_broker(certificate_authority: CertificateAuthority) -> Iterator[SecureBroker]:
    """An embedded broker with TLS and SASL for one test, as kafka_fast's plugin has it."""
    with SecureBroker(certificate_authority) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def old_kafka() -> Iterator[RealKafka]:
    """The last release of Kafka 2, which still writes the old message formats."""
    with started(1, "2.8.2") as kafka:
        yield kafka


@pytest.fixture(scope="session")
def shared_cluster(request: pytest.FixtureRequest) -> Iterator[RealKafka]:
    """Three real brokers; tests take `real_kafka_cluster`, which is healed first."""
    with started(3, request.config.getoption("--kafka-version")) as kafka:
        yield kafka


@pytest.fixture
def real_kafka_cluster(shared_cluster: RealKafka) -> RealKafka:
    """Three real brokers, all of them running; a test may kill, pause and restart them."""
    shared_cluster.heal()
    return shared_cluster
