"""The reference page of the configuration, printed from the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import fill
from typing import TYPE_CHECKING

from kafka_fast.config._admin import ADMIN_ONLY
from kafka_fast.config._common import COMMON
from kafka_fast.config._consumer import CONSUMER_ONLY
from kafka_fast.config._key import EVERY_CLIENT, Key
from kafka_fast.config._producer import PRODUCER_ONLY
from kafka_fast.config._values import describe_range
from kafka_fast.config.security._security import SECURITY

if TYPE_CHECKING:
    from kafka_fast.config.spelling._foreign import Advice

_INTRODUCTION = """\
# Configuration

<!-- Printed from the table by `python -m kafka_fast config --markdown`: edit the table. -->

Give properties in a dictionary, as keyword arguments, or both:

```python
from kafka_fast import ConfigError, Producer

Producer({"bootstrap.servers": "localhost:9092", "linger.ms": 20}).close()
Producer(bootstrap_servers="localhost:9092", linger_ms="20").close()
try:
    Producer({"bootstrap.servers": "localhost:9092", "lingr.ms": 20})
except ConfigError as error:
    print(error)
```

prints

```text
unknown property 'lingr.ms'; did you mean 'linger.ms'?
```

* Names and defaults are those of Kafka's Java client 4.x. This page says where they differ.
* A name is dotted (`linger.ms`) or has underscores (`linger_ms`), in upper or lower case. The names
  that other clients use for a property are accepted too.
* A value has the property's type, or is a string. A list may be a string with commas.
* Three mistakes are a `ConfigError`: an unknown property, a value out of range, and one property
  that is given twice with different values.
* A property that only other libraries have is a `ConfigError` as well, if its effect matters. The
  error says [what to do instead](#properties-of-other-clients). A harmless one is taken and logged.
* One mapping may serve several clients: a producer leaves out what only consumers have, and the
  reverse.
* Values are data: no environment variable is put in, and no name is imported.

## Files of properties

`read_properties` reads the file of a Java client, or of a librdkafka client, as it stands:

```python
from pathlib import Path

from kafka_fast import Consumer, Producer, read_properties

Path("client.properties").write_text(
    "bootstrap.servers=localhost:9092\\nacks=all\\nsession.timeout.ms=45000\\n"
    "schema.registry.url=http://localhost:8081\\n"
)
Producer(read_properties("client.properties"), linger_ms=20).close()
Consumer(read_properties("client.properties"), group_id="audit").close()
```

* The syntax is that of `java.util.Properties`: comments, continued lines, escapes.
* One file may serve all clients. Give the file's properties as they are, with more as keywords or
  with `|`.
* Properties of other programs, such as `schema.registry.url`, and classes that only a JVM can load
  are left out. Their names are logged at INFO. A name that looks like a misspelt property is a
  `ConfigError`.

## Secrets

A property of the type `password` takes a string, or a function that returns one and may block.

* Secrets are shown as `****` wherever a configuration is printed, also in errors and logs.
* A client keeps no reference to your dictionary. Its settings refuse to be pickled if they have
  secrets in them.
* With PLAIN, OAUTHBEARER and AWS_MSK_IAM a client refuses to send its credentials without TLS,
  unless `allow.insecure.sasl` is true.
"""

WIDTH = 100
"""Columns of the page. A list can be folded to them and a table's rows cannot: it has no tables."""

_SECTIONS = (
    ("All clients", COMMON),
    ("Producer", PRODUCER_ONLY),
    ("Consumer", CONSUMER_ONLY),
    ("Admin", ADMIN_ONLY),
    ("Security", SECURITY),
)


def reference_page() -> str:
    """Return docs/configuration.md: every property of the table."""
    lines = [_INTRODUCTION]
    for title, keys in _SECTIONS:
        lines.append(f"## {title}\n")
        lines += [reference_entry(key) for key in keys if not (key.pending or key.ignored)]
        lines += _pending(keys)
        lines += _ignored(keys)
    lines += _foreign()
    return "\n".join(lines).rstrip("\n") + "\n"


def reference_entry(key: Key) -> str:
    """Return the paragraphs of one property, in lines that can be read and compared."""
    return "\n\n".join(map(_folded, _paragraphs(key))) + "\n"


def as_written(key: Key, value: object) -> str:
    """Return a value of `key` as a user would write it in a file of properties."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    for word, meaning in key.words.items():
        if meaning == value and not isinstance(value, str) and key.choices:
            return word
    return str(value)


def _paragraphs(key: Key) -> Iterator[str]:
    yield f"### `{key.name}`"
    yield f"{key.doc}"
    if key.pending:
        yield f"Not supported yet: this version has no {key.pending}."
    if key.ignored:
        yield f"Accepted, and without meaning here: {key.ignored}."
    if key.refused:
        yield f"Other values are a `ConfigError`: {key.refused}."
    facts = [f"Type: {key.kind.value}", f"default: {_defaults(key)}"]
    if describe_range(key):
        allowed = describe_range(key)
        if key.choices or key.pattern:
            allowed = ", ".join(_code(choice) for choice in allowed.split(", "))
        facts.append(f"allowed: {allowed}{f' {key.unit}' if key.unit else ''}")
    elif key.unit:
        facts.append(f"in {key.unit}")
    if set(key.clients) != set(EVERY_CLIENT) and len(key.clients) > 1:
        facts.append(f"for: {', '.join(key.clients)}")
    if key.own:
        facts.append("not a property of the Java client")
    facts.append(f"since {key.since}")
    yield f"{'; '.join(facts)}."
    if key.later:
        yield f"Not supported yet: {', '.join(f'`{choice}`' for choice in key.later)}."
    if key.differs:
        yield f"{key.differs}"
    if key.aliases:
        names = (f"`{alias.name}` ({_origin(alias.peer, alias.scale)})" for alias in key.aliases)
        yield f"Also: {', '.join(names)}."


def _pending(keys: Iterable[Key]) -> Iterator[str]:
    """Yield one list of the properties whose feature does not exist yet."""
    rows = [key for key in keys if key.pending]
    if not rows:
        return
    yield "Not supported yet. Any value but the default is a `ConfigError`:\n"
    for key in rows:
        facts = f"default: {_defaults(key)}; needs {key.pending}"
        yield _item(f"`{key.name}` ({facts}). {key.doc} {key.differs}".rstrip())
    yield ""


def _ignored(keys: Iterable[Key]) -> Iterator[str]:
    """Yield one list of the properties that only a JVM, or a broker, has a use for."""
    rows = [key for key in keys if key.ignored]
    if not rows:
        return
    yield "Accepted, so that files of a Java client work, and without meaning here:\n"
    for key in rows:
        yield _item(f"`{key.name}`: {key.ignored}. {key.doc}")
    yield ""


def _foreign() -> Iterator[str]:
    """Yield the list of what other clients have and this one has not."""
    from kafka_fast.config.spelling._foreign import ADVICE, Acceptance  # a page is printed once

    yield "## Properties of other clients\n"
    yield "Each of these is a `ConfigError` that says what to do instead. Where a client stands in"
    yield "brackets, the advice is for that client only.\n"
    for advice in ADVICE:
        if advice.taken is Acceptance.NEVER:
            yield _advice(advice)
    yield ""
    yield "These are harmless. A client takes them, and logs one warning for each that is given:\n"
    for advice in ADVICE:
        if advice.taken is Acceptance.ALOUD:
            yield _advice(advice)
    yield ""
    yield "A client also takes the following, and what only another kind of client has, because"
    yield "programs often share one mapping. One line of its log says so, at DEBUG.\n"
    for advice in ADVICE:
        if advice.taken is Acceptance.QUIETLY:
            yield _advice(advice)
    yield ""


def _advice(advice: Advice) -> str:
    """Return the item of one advice."""
    names = ", ".join(map(_code, advice.names))
    facts = () if advice.clients == EVERY_CLIENT else advice.clients
    if advice.so_anyway:
        facts = (*facts, f"{' and '.join(map(_code, advice.so_anyway))}: taken")
    brackets = f" ({', '.join(facts)})" if facts else ""
    return _item(f"{names}{brackets}: {advice.text}")


def _folded(text: str, indent: str = "") -> str:
    return fill(
        text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def _item(text: str) -> str:
    return _folded(f"* {text}", indent="  ")


def _defaults(key: Key) -> str:
    shown = _value(key, key.default)
    for client, default in key.default_for.items():
        shown += f" ({client}: {_value(key, default)})"
    return shown


def _value(key: Key, value: object) -> str:
    written = as_written(key, value)
    if written:
        return _code(written)
    return "none, must be given" if key.name == "bootstrap.servers" else "none"


def _code(text: str) -> str:
    return f"`{text}`"


def _origin(peer: str, scale: int) -> str:
    return f"{peer}, in units of {scale}" if scale != 1 else peer
