"""What was found, on one screen: a line for what is well, and the details where they help.

localhost:9093 by SASL_SSL
  ok    DNS          127.0.0.1, ::1
  ok    TCP          127.0.0.1, in 0.2 ms
  FAIL  TLS          localhost:9093 [127.0.0.1]: its certificate expired on ...
        to do        renew the broker's certificate ...
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Iterable, Iterator

from kafka_fast.cli.check.verdict import (
    advice,
    days_left,
    is_well,
    sends_astray,
    user_of,
    warnings_of,
)
from kafka_fast.config import CommonSettings
from kafka_fast.instants import NEVER
from kafka_fast.net.probe import CertificateFacts, ClusterProbe, Probed, Step, TlsFacts

__all__ = ["screen"]

WIDTH = 100
OK, FAIL, WARN = "ok", "FAIL", "warn"
MAX_SHOWN = 6
"""Addresses, names of a certificate and the like: more of them are counted."""
MAX_CHAIN = 3


def screen(found: ClusterProbe, settings: CommonSettings) -> Iterator[str]:
    """Yield the lines."""
    for server in found.servers:
        yield f"{server.address} by {settings.security_protocol}"
        yield from _steps(server, settings)
    checked = {probed.address for probed in found.servers}
    for broker in found.brokers:
        yield from _broker(broker, settings, was_checked=broker.address in checked)
    yield from _of_cluster(found)


def _of_cluster(probe: ClusterProbe) -> Iterator[str]:
    """Yield what no single address shows, and the end."""
    if len(probe.cluster_ids) > 1:
        yield from _row(
            WARN, "cluster", f"the servers are of several: {_listed(probe.cluster_ids)}"
        )
    if sends_astray(probe):
        yield from _row(
            WARN,
            "advertised",
            "a broker elsewhere advertises localhost: each client takes its own machine for it. "
            "Correct advertised.listeners at the broker",
        )
    failed = sum(not server.is_well for server in probe.servers)
    astray = sum(not broker.is_well for broker in probe.brokers)
    if is_well(probe):
        servers, brokers = _counted(probe.servers, "server"), _counted(probe.brokers, "broker")
        yield f"all is well: {servers}, {brokers}"
        return
    parts = []
    if failed:
        parts.append(f"{failed} of {_counted(probe.servers, 'server')}")
    if astray:
        parts.append(f"{astray} of {_counted(probe.brokers, 'broker')}")
    if parts:
        yield f"not well: {' and '.join(parts)} cannot be used from here"
    else:
        yield "not well: the servers name no broker"


def _counted(things: Iterable[object], noun: str) -> str:
    count = len(list(things))
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _broker(probed: Probed, settings: CommonSettings, *, was_checked: bool) -> Iterator[str]:
    """Yield one line for a broker that is well, all steps for another."""
    where = f"node {probed.node_id}, advertised as {probed.address}"
    if was_checked:
        yield f"{where}: see above"
    elif probed.is_well:
        yield f"{where}: ok, from DNS to {Step.METADATA.title}"
        for text in warnings_of(probed):
            yield from _row(WARN, "", text)
    else:
        yield where
        yield from _steps(probed, settings)


def _steps(probed: Probed, settings: CommonSettings) -> Iterator[str]:
    """Yield the steps of one address."""
    texts = _texts(probed, settings)
    for step in Step:
        if step < probed.reached or probed.is_well:
            for index, text in enumerate(texts[step]):
                yield from _row("" if index else OK, "" if index else step.title, text)
        elif step == probed.reached:
            yield from _row(FAIL, step.title, str(probed.error))
            if step is Step.TLS and probed.tls is not None:
                for text in _shown(probed.tls):
                    yield from _row("", "", text)
            yield from _row("", "to do", advice(probed, settings))
    for text in warnings_of(probed):
        yield from _row(WARN, "", text)


def _texts(probed: Probed, settings: CommonSettings) -> dict[Step, list[str]]:
    """Return what each step has shown if it has succeeded; empty: there is no such step."""
    texts: dict[Step, list[str]] = {step: [] for step in Step}
    texts[Step.DNS] = [_listed(probed.ips)] if probed.ips else []
    others = "; ".join(f"{ip}: {why}" for ip, why in probed.unreachable.items())
    took = f"{probed.ip}, in {1000 * probed.connect_seconds:.1f} ms"
    texts[Step.TCP] = [f"{took} ({others})" if others else took]
    if probed.tls is not None:
        by = ", ".join(filter(None, (probed.tls.version, probed.tls.cipher)))
        texts[Step.TLS] = [f"{by}; {_checked(probed, settings)}", *_shown(probed.tls)]
    texts[Step.API_VERSIONS] = [_apis(probed)]
    if settings.sasl is not None:
        texts[Step.SASL] = [_login(probed, settings)]
    if probed.metadata is not None:
        cluster = probed.metadata.cluster_id or "without a name"
        brokers = _counted(probed.metadata.brokers, "broker")
        texts[Step.METADATA] = [f"cluster {cluster}, {brokers}"]
    return texts


def _checked(probed: Probed, settings: CommonSettings) -> str:
    """Return what of the certificate was checked."""
    tls = settings.tls
    assert tls is not None
    if not tls.verifies:
        return "the certificate is not checked at all"
    if not tls.checks_host:
        return "trusted, but its names are not checked"
    return f"trusted, and is for {probed.address.host}"


def _shown(tls: TlsFacts) -> Iterator[str]:
    """Yield what the broker has shown of itself."""
    for certificate in tls.chain[:MAX_CHAIN]:
        yield _certificate(certificate)
    if len(tls.chain) > MAX_CHAIN:
        yield f"and {len(tls.chain) - MAX_CHAIN} more certificates"
    if tls.chain and tls.chain[-1].issuer:
        yield f"issued by {tls.chain[-1].issuer}"
    if tls.chain:
        what = "a client certificate" if tls.asks_certificate else "no client certificate"
        yield f"the broker asks for {what}"


def _certificate(shown: CertificateFacts) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(shown.not_after))
    days = days_left(shown.not_after)
    until = f"until {day}, {days:,} days" if days >= 0 else f"ended on {day}"
    names = f" for {_listed(shown.names)}" if shown.names else ""
    return f"{shown.subject or 'a certificate'}{names}, {until}"


def _apis(probed: Probed) -> str:
    text = f"{probed.api_count} APIs"
    if probed.release is None:
        return text
    if probed.release.is_told:
        return f"{text}; the broker is Kafka {probed.release.name}"
    return f"{text}, like those of Kafka {probed.release.name}"


def _login(probed: Probed, settings: CommonSettings) -> str:
    assert settings.sasl is not None
    user = user_of(settings)
    text = f"{settings.sasl.mechanism}{' as ' + user if user else ''}"
    if probed.session_seconds != NEVER:
        text += f", for {_duration(probed.session_seconds)}, then again"
    others = [mechanism for mechanism in probed.mechanisms if mechanism != settings.sasl.mechanism]
    return f"{text}; the broker also offers {_listed(others)}" if others else text


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def _listed(items: Iterable[str]) -> str:
    """Return the first items, and how many more there are."""
    known = list(items)
    more = f" and {len(known) - MAX_SHOWN} more" if len(known) > MAX_SHOWN else ""
    return ", ".join(known[:MAX_SHOWN]) + more


def _row(mark: str, title: str, text: str) -> Iterator[str]:
    """Yield a step in as many lines as it needs; nothing that a broker sent can leave its place."""
    clean = "".join(character if character.isprintable() else "?" for character in text)
    head = f"  {mark:<6}{title:<13}"
    yield from textwrap.wrap(
        clean,
        WIDTH,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    ) or [head.rstrip()]
