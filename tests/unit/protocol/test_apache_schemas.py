"""Our tables against Apache Kafka 4.4.0's own message definitions, field by field.

The definitions are in the client jar, which the harness of the real broker fetches. Nothing here
is approximate: a field that is missing, renamed, reordered or of another type, range, default,
tag or flexibility fails.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kafka_fast import errors
from kafka_fast.protocol.apis import api_keys, request_class
from kafka_fast.protocol.schema import (
    NO_VERSIONS,
    Field,
    Request,
    Struct,
    parse_versions,
    snake_case,
)
from kafka_fast.testing._kafka import broker_jars
from tests.reference.protocol_codec import MESSAGES
from tests.support.jars import schemas

pytestmark = pytest.mark.broker

PLAIN = {"string": "", "bool": False, "float64": 0.0, "uuid": bytes(16), "bytes": b""}


@pytest.fixture(scope="module")
def definitions() -> Path:
    """Return the folder with Apache's definitions."""
    try:
        return schemas()
    except broker_jars.ToolMissingError as missing:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(missing))


def load(folder: Path, name: str) -> dict[str, Any]:
    """Read one definition; their comments are whole lines."""
    text = (folder / f"{name}.json").read_text()
    loaded: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return loaded


def apache_default(theirs: dict[str, Any]) -> Any:
    """Return the default of a field of theirs as our tables say it."""
    kind, default = theirs["type"], theirs.get("default")
    if default == "null" or kind == "records":
        return None
    if kind.startswith("["):
        return []
    if kind == "bool":
        return str(default).lower() == "true"
    if kind in PLAIN:
        return PLAIN[kind] if default is None else default
    if re.fullmatch(r"u?int\d+", kind):
        return int(str(default or 0), 0)
    return ...


def type_of(field: Field) -> str:
    """Return the type of one of our fields as they write it, but for the names of structs."""
    name = field.struct.__name__ if field.struct is not None else field.wire_type.name
    if field.wire_type.name != "array":
        return name
    return f"[]{name if field.struct is not None else field.item.name}"


def compare(
    cls: type[Struct], theirs: list[dict[str, Any]], common: dict[str, Any], message: str
) -> int:
    """Compare a struct's fields, and those of the structs in it; return how many there were."""
    assert [field.name for field in cls._fields] == [snake_case(f["name"]) for f in theirs]
    count = len(theirs)
    for ours, field in zip(cls._fields, theirs, strict=True):
        where = f"{cls.__name__}.{ours.name}"
        prefix, name = re.fullmatch(r"(\[\])?(.*)", field["type"]).groups(default="")
        assert type_of(ours) in (field["type"], f"{prefix}{message}{name}"), where
        assert ours.versions == parse_versions(field["versions"]), where
        assert ours.nullable == parse_versions(field.get("nullableVersions", "none")), where
        assert ours.ignorable == (str(field.get("ignorable", False)).lower() == "true"), where
        assert ours.tag == field.get("tag", -1), where
        assert ours.tagged == parse_versions(field.get("taggedVersions", "none")), where
        assert ours.default == apache_default(field), where
        flexible = field.get("flexibleVersions")
        assert ours.flexible == (None if flexible is None else parse_versions(flexible)), where
        if ours.struct is not None:
            inner = field.get("fields") or common[name]
            count += compare(ours.struct, inner, common, message)
    return count


@pytest.mark.parametrize("cls", MESSAGES, ids=lambda cls: cls.__name__)
def test_a_table_is_apaches_definition(cls, definitions):
    theirs = load(definitions, cls.__name__)
    assert cls.versions == parse_versions(theirs["validVersions"])
    flexible = parse_versions(theirs["flexibleVersions"])
    assert cls.flexible == flexible or cls.flexible == flexible == NO_VERSIONS
    if "apiKey" in theirs:
        assert cls.api_key == theirs["apiKey"]
    if issubclass(cls, Request):
        unstable = bool(theirs.get("latestVersionUnstable", False))
        assert cls.stable == cls.versions.high - unstable
    common = {struct["name"]: struct["fields"] for struct in theirs.get("commonStructs", [])}
    assert compare(cls, theirs["fields"], common, cls.__name__) >= len(theirs["fields"])


COORDINATORS = {
    "InitializeShareGroupStateRequest",
    "ReadShareGroupStateRequest",
    "WriteShareGroupStateRequest",
    "DeleteShareGroupStateRequest",
    "ReadShareGroupStateSummaryRequest",
}
"""What brokers ask each other: where a share group goes on is kept by another coordinator."""


def test_every_request_to_a_broker_has_a_table(definitions):
    theirs = [load(definitions, path.stem) for path in definitions.glob("*Request.json")]
    accepted = {
        request["name"]
        for request in theirs
        if request["validVersions"] != "none" and "broker" in request["listeners"]
    }
    assert accepted - COORDINATORS == {request_class(key).__name__ for key in api_keys()}


JAVA = """
import org.apache.kafka.common.errors.InvalidMetadataException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

public class PrintErrors {
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            Exception exception = error.exception();
            System.out.println(error.code() + " " + error.name()
                + " " + (exception instanceof RetriableException)
                + " " + (exception instanceof InvalidMetadataException));
        }
    }
}
"""


def test_the_error_table_is_apaches(definitions, tmp_path):
    source = tmp_path / "PrintErrors.java"
    source.write_text(JAVA)
    run = subprocess.run(
        [broker_jars.find_tool("java"), "-cp", f"{broker_jars.class_path()}/*", str(source)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    theirs = [line.split() for line in run.stdout.splitlines()]
    ours = [
        [
            str(cls.code),
            cls.name,
            *(str(flag).lower() for flag in (cls.retriable, cls.refresh_metadata)),
        ]
        for cls in errors.ERRORS.values()
    ]
    assert ours == [row for row in theirs if row[0] != "0"]
