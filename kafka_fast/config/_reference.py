"""The reference page of the configuration, printed from the table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from textwrap import fill

from kafka_fast.config._common import COMMON
from kafka_fast.config._consumer import CONSUMER_ONLY
from kafka_fast.config._key import EVERY_CLIENT, Key, Kind
from kafka_fast.config._producer import PRODUCER_ONLY
from kafka_fast.config._security import SECURITY
from kafka_fast.config._values import describe_range

_INTRODUCTION = """\
# Configuration

<!-- Printed from the table by `python -m kafka_fast config --markdown`: edit the table. -->

Names and defaults are those of Kafka's Java client 4.x; differences are named. Every property can
be spelled dotted (`linger.ms`) in a dictionary or with underscores (`linger_ms`) as a keyword
argument, in any case; other clients' names for it are accepted too. A value may be given as its
type or as a string. An unknown property, a value out of range, and one property given twice with
different values are a `ConfigError`. Lists are lists, or strings with commas. What other clients
have and this one has not is refused with what to do instead, see the end of the page.
"""

WIDTH = 100
"""Columns of the page; tables are wider, because Markdown gives no choice."""

_SECTIONS = (
    ("All clients", COMMON),
    ("Producer", PRODUCER_ONLY),
    ("Consumer", CONSUMER_ONLY),
    ("Security", SECURITY),
)


def reference_page() -> str:
    """Return docs/configuration.md: every property of the table."""
    lines = [_INTRODUCTION]
    for title, keys in _SECTIONS:
        lines.append(f"## {title}\n")
        lines += [reference_entry(key) for key in keys if not key.pending]
        lines += _pending(keys)
    lines += _foreign()
    return "\n".join(lines).rstrip("\n") + "\n"


def reference_entry(key: Key) -> str:
    """Return the paragraphs of one property, in lines that can be read and compared."""
    paragraphs = (
        fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)
        for text in _paragraphs(key)
    )
    return "\n\n".join(paragraphs) + "\n"


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
    """Yield one table of the properties whose feature does not exist yet."""
    rows = [key for key in keys if key.pending]
    if not rows:
        return
    yield "Known, and refused with any value but the default until the feature is there:\n"
    yield "| property | default | needs | meaning |"
    yield "|---|---|---|---|"
    for key in rows:
        notes = f"{key.doc} {key.differs}".strip()
        yield f"| `{key.name}` | {_defaults(key)} | {key.pending} | {notes} |"
    yield ""


def _foreign() -> Iterator[str]:
    """Yield the table of what other clients have and this one has not."""
    from kafka_fast.config._foreign import ADVICE  # a page is printed once

    yield "## Properties of other clients\n"
    yield "Refused, with what to do instead:\n"
    yield "| property | client | instead |"
    yield "|---|---|---|"
    for advice in ADVICE:
        names = ", ".join(map(_code, advice.names))
        clients = "" if advice.clients == EVERY_CLIENT else ", ".join(advice.clients)
        yield f"| {names} | {clients} | {advice.text} |"
    yield ""


def _defaults(key: Key) -> str:
    shown = _value(key, key.default)
    for client, default in key.default_for.items():
        shown += f" ({client}: {_value(key, default)})"
    return shown


def _value(key: Key, value: object) -> str:
    written = as_written(key, value)
    if written:
        return _code(written)
    return "none, must be given" if key.kind is Kind.ADDRESSES else "none"


def _code(text: str) -> str:
    return f"`{text}`"


def _origin(peer: str, scale: int) -> str:
    return f"{peer}, in units of {scale}" if scale != 1 else peer
