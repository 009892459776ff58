"""Jars and message definitions that tests and benchmarks need beside a broker's own.

They are in the same cache (`broker_jars`):

    spark-sql-kafka-…/   Spark's own connector, and so for each other artifact
    schemas-4.4.0/       Apache's message definitions (JSON with // comments)
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from kafka_fast.testing._kafka.broker_jars import (
    DEFAULT_VERSION,
    appearing,
    cache_dir,
    class_path,
    copy_jars,
    dependency,
    locked_cache,
    project,
)

#: Works on PySpark 4.3, too.
SPARK_CONNECTOR = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0"
CONNECTOR_PARTS = (
    "spark-sql-kafka-0-10_2.13",
    "spark-token-provider-kafka-0-10_2.13",
    "kafka-clients",
    "commons-pool2",
)


def jars(artifact: str) -> Path:
    """Return the folder with the jars of a `group:artifact:version`, and of all that it needs.

    Raises:
        ToolMissingError: the jars must be fetched and Maven is missing.
        RealKafkaError: Maven failed; the message ends with Maven's output.
    """
    group, name, version = artifact.split(":")
    folder = cache_dir() / f"{name}-{version}"
    if not folder.exists():
        with locked_cache():
            if not folder.exists():
                with appearing(folder) as fresh:
                    pom = project(dependency(group, name, version))
                    copy_jars(fresh, pom, artifact, f"{name}-*.jar")
    return folder


def spark_connector() -> str:
    """Return the jars of Spark's own connector, as the setting `spark.jars` takes them.

    Raises:
        ToolMissingError, RealKafkaError: As for `jars`.
    """
    there = jars(SPARK_CONNECTOR)
    return ",".join(str(next(there.glob(f"{part}-[0-9]*.jar"))) for part in CONNECTOR_PARTS)


def schemas(version: str = DEFAULT_VERSION) -> Path:
    """Return a folder with Apache's message definitions, unpacked from the client jar."""
    folder = cache_dir() / f"schemas-{version}"
    if folder.exists():
        return folder
    jar = class_path(version) / f"kafka-clients-{version}.jar"
    with locked_cache(), appearing(folder) as fresh, zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"common/message/\w+\.json", name):
                (fresh / Path(name).name).write_bytes(archive.read(name))
    return folder
