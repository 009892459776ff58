"""Apache Kafka's jars, fetched from Maven Central once and kept in a cache.

`KAFKA_FAST_BROKER_DIR` names the cache (default `~/.cache/kafka-fast/brokers`). One folder holds
the runtime class path of one Kafka version. A folder is fetched under another name and then
renamed, so it is never incomplete. A file lock lets test runs that start together fetch only once.

    cache/
      kafka-4.4.0/       every jar that a broker of that version needs, and log4j2.yaml
      lock

`real_kafka` calls this module, which knows nothing of running processes. The tests of kafka_fast
keep further jars in the cache.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kafka_fast.errors import KafkaError

__all__ = [
    "DEFAULT_VERSION",
    "RELEASES",
    "RealKafkaError",
    "Release",
    "ToolMissingError",
    "appearing",
    "cache_dir",
    "class_path",
    "copy_jars",
    "dependency",
    "find_tool",
    "locked_cache",
    "project",
    "release",
]

DEFAULT_VERSION = "4.4.0"
MINIMUM_JAVA = 17
FETCH_TIMEOUT = 600.0

# Level INFO, because the harness reads from the log when a broker is ready.
LOG4J2_YAML = (
    "Configuration: {Appenders: {Console: {name: STDOUT, PatternLayout: "
    '{pattern: "[%d] %p %m (%c)%n"}}}, '
    "Loggers: {Root: {level: INFO, AppenderRef: [{ref: STDOUT}]}}}\n"
)
LOG4J_PROPERTIES = """\
log4j.rootLogger=INFO, stdout
log4j.appender.stdout=org.apache.log4j.ConsoleAppender
log4j.appender.stdout.layout=org.apache.log4j.PatternLayout
log4j.appender.stdout.layout.ConversionPattern=[%d] %p %m (%c)%n
"""


class RealKafkaError(KafkaError):
    """A real broker could not be fetched, started or steered; the message names log and cause."""


class ToolMissingError(RealKafkaError):
    """Java or Maven is not installed, or too old: the tests that need them cannot run here."""


@dataclass(frozen=True, slots=True)
class Release:
    """How one version of Apache Kafka is fetched and run."""

    version: str
    """Kafka's version in Maven."""
    scala: str = "2.13"
    """The Scala version in the artifact's name."""
    kraft: bool = True
    """False for the versions that need ZooKeeper."""
    log4j2: bool = False
    """Kafka 4 logs through log4j 2, earlier versions through log4j 1 (here reload4j)."""
    exclude: tuple[str, ...] = ()
    """Artifacts of `org.apache.kafka` that the POM names but that were never published."""
    extra: tuple[str, ...] = ()
    """Further `group:artifact:version`, which override those of Kafka's POM."""

    @property
    def ready_line(self) -> str:
        """A text that the broker logs when it serves clients; its port is open earlier."""
        return "Kafka Server started" if self.kraft else "started (kafka.server.KafkaServer)"

    @property
    def log_option(self) -> str:
        """The JVM option that points to the logging configuration in the jar folder."""
        if self.log4j2:
            return "-Dlog4j2.configurationFile=log4j2.yaml"
        return "-Dlog4j.configuration=file:log4j.properties"


RELEASES: dict[str, Release] = {
    release.version: release
    for release in (
        Release("4.4.0", log4j2=True, exclude=("kafka-tools-api", "kafka-tools")),
        Release("3.9.2"),
        Release("2.8.2", kraft=False),
        # The ZooKeeper 3.4 client of Kafka 2.1 fails on Java 17; that of Kafka 2.8 works.
        Release(
            "2.1.1",
            scala="2.12",
            kraft=False,
            extra=("org.apache.zookeeper:zookeeper:3.5.9",),
        ),
    )
}


def release(version: str) -> Release:
    """Return the release called `version`.

    Raises:
        RealKafkaError: the harness does not know that version.
    """
    if version not in RELEASES:
        raise RealKafkaError(f"no recipe for Kafka {version}; known: {', '.join(RELEASES)}")
    return RELEASES[version]


def cache_dir() -> Path:
    """Return the cache folder; make it if necessary."""
    configured = os.environ.get("KAFKA_FAST_BROKER_DIR")
    path = Path(configured) if configured else Path.home() / ".cache/kafka-fast/brokers"
    path.mkdir(parents=True, exist_ok=True)
    return path


def find_tool(name: str) -> str:
    """Return the path of `java` or `mvn`.

    Raises:
        ToolMissingError: the tool is not on the PATH, or Java is older than 17.
    """
    home = os.environ.get("JAVA_HOME")
    candidate = Path(home, "bin", name) if home else None
    if candidate is not None and candidate.exists():
        path = str(candidate)
    else:
        path = shutil.which(name) or ""
    if not path:
        package = {"java": f"a Java runtime, version {MINIMUM_JAVA} or later", "mvn": "Maven"}
        raise ToolMissingError(f"{name} is not on the PATH: install {package.get(name, name)}")
    if name == "java":
        _check_java(path)
    return path


def class_path(version: str = DEFAULT_VERSION) -> Path:
    """Return the folder with the jars of `version`; fetch them if they are not in the cache.

    Raises:
        ToolMissingError: the jars must be fetched and Maven is missing.
        RealKafkaError: Maven failed; the message ends with Maven's output.
    """
    kafka_release = release(version)
    folder = cache_dir() / f"kafka-{version}"
    if not folder.exists():
        with locked_cache():
            if not folder.exists():
                _fetch(kafka_release, folder)
    return folder


def _check_java(path: str) -> None:
    """Raise ToolMissingError unless `path` is a Java runtime that Kafka 4 accepts."""
    run = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(\d+)', run.stderr + run.stdout)
    if match is None or int(match[1]) < MINIMUM_JAVA:
        said = (run.stderr + run.stdout).strip().splitlines()
        version = said[0] if said else "it prints nothing"
        raise ToolMissingError(f"{path} is not Java {MINIMUM_JAVA} or later: {version}")


@contextlib.contextmanager
def locked_cache() -> Iterator[None]:
    """Hold the cache's lock, so that one process fetches while others wait."""
    with (cache_dir() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def appearing(folder: Path) -> Iterator[Path]:
    """Yield a new folder, which is renamed to `folder` if the block succeeds, else removed."""
    fresh = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        yield fresh
        if not folder.exists():
            fresh.rename(folder)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _pom(kafka_release: Release) -> str:
    """Return a POM with the runtime class path of a broker of that release."""
    excluded = [("org.apache.kafka", artifact) for artifact in kafka_release.exclude]
    extra = [tuple(coordinate.split(":")) for coordinate in kafka_release.extra]
    if kafka_release.log4j2:
        # Kafka 4 uses slf4j 1.7: with the binding for slf4j 2 it would not log.
        extra.append(("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.5"))
    else:
        excluded += [("log4j", "log4j"), ("org.slf4j", "slf4j-log4j12")]
        extra += [
            ("ch.qos.reload4j", "reload4j", "1.2.26"),
            ("org.slf4j", "slf4j-reload4j", "1.7.36"),
            ("org.slf4j", "slf4j-api", "1.7.36"),
        ]
    exclusions = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>{artifact}</artifactId></exclusion>"
        for group, artifact in excluded
    )
    kafka = ("org.apache.kafka", f"kafka_{kafka_release.scala}", kafka_release.version)
    return project(
        "".join(
            dependency(group, artifact, version, exclusions)
            for group, artifact, version in [kafka, *extra]
        )
    )


def dependency(group: str, artifact: str, version: str, exclusions: str = "") -> str:
    return (
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{version}</version><exclusions>{exclusions}</exclusions></dependency>\n"
    )


def project(dependencies: str) -> str:
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>\n'
        "<groupId>kafka-fast</groupId><artifactId>broker</artifactId><version>1</version>"
        f"<packaging>pom</packaging><dependencies>\n{dependencies}</dependencies></project>\n"
    )


def _fetch(kafka_release: Release, folder: Path) -> None:
    """Let Maven copy the class path of `kafka_release` into `folder`."""
    with appearing(folder) as fresh:
        (fresh / "log4j2.yaml").write_text(LOG4J2_YAML)
        (fresh / "log4j.properties").write_text(LOG4J_PROPERTIES)
        copy_jars(
            fresh, _pom(kafka_release), f"Kafka {kafka_release.version}", "kafka-clients-*.jar"
        )


def copy_jars(folder: Path, pom: str, what: str, proof: str) -> None:
    """Let Maven copy what a POM depends on into a folder; then a file like `proof` is there."""
    maven = find_tool("mvn")
    (folder / "pom.xml").write_text(pom)
    command = [maven, "-q", "-B", "-Dstyle.color=never", "-f", "pom.xml"]
    command += ["dependency:copy-dependencies", "-DoutputDirectory=.", "-DincludeScope=runtime"]
    try:
        run = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=FETCH_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise RealKafkaError(f"Maven did not fetch {what} in {FETCH_TIMEOUT:.0f} s") from late
    if run.returncode != 0 or not list(folder.glob(proof)):
        said = "\n".join((run.stdout + run.stderr).strip().splitlines()[-15:])
        raise RealKafkaError(f"Maven could not fetch {what}:\n{said}")
