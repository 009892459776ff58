"""What is right and wrong about what was found, and what to do about it."""

from __future__ import annotations

import ipaddress
import time

from kafka_fast.config import CommonSettings
from kafka_fast.net.probe import ClusterProbe, Probed, Step

__all__ = [
    "advice",
    "days_left",
    "is_loopback",
    "is_well",
    "sends_astray",
    "user_of",
    "warnings_of",
]

DAY = 86_400
DAYS_TO_WARN = 14
"""As the client itself warns."""

OF_DOCKER = (
    "If it is a container, give it two listeners: one advertised by the container's name, and one "
    "by a name and port that clients elsewhere can reach"
)

OF_LOG = "ask the owner of the broker, whose log may say more"

_OF_TLS = (
    ("plaintext listener?", "use security.protocol={plain} here, or the port of a TLS listener"),
    (
        "client certificate, and this client has none",
        "give this client's certificate and key: --cert and --key, or ssl.keystore.location",
    ),
    (
        "refused this client's certificate",
        "ask the owner of the broker which authority must issue certificates of clients",
    ),
    ("is not for", "connect by a name that the certificate has, or have one issued for {host}"),
    (
        "not trusted",
        "get the CA's certificate from the owner of the broker: --ca, or ssl.truststore.location",
    ),
    ("expired", "renew the broker's certificate; look at this machine's clock ({today}) first"),
    ("not valid before", "look at this machine's clock ({today}), then at the broker's"),
    ("was revoked", "have another certificate issued to the broker"),
    ("no TLS version in common", "allow TLS 1.2 or 1.3 at the broker: ssl.enabled.protocols"),
    ("no cipher suite in common", "compare ssl.cipher.suites of this client and of the broker"),
    ("did not finish the TLS handshake", "look at the broker's log; is the port a TLS listener's?"),
)
"""Words of a TLS error -> what to do."""


def is_well(found: ClusterProbe) -> bool:
    """Return whether a client can use every server and every broker."""
    has_brokers = bool(found.brokers)
    return all(probed.is_well for probed in (*found.servers, *found.brokers)) and has_brokers


def advice(found: Probed, settings: CommonSettings) -> str:
    """Return what to do about a failure; it ends without a full stop."""
    text, advertised = str(found.error), found.node_id is not None
    protocol, host = settings.security_protocol, found.address.host
    match found.reached:
        case Step.DNS if advertised:
            return (
                f"let the broker advertise a name that is known here, not {host!r}: "
                f"advertised.listeners. {OF_DOCKER}"
            )
        case Step.DNS:
            return "correct the name, or run this where it is known"
        case Step.TCP if advertised:
            what = f"nothing is reached at {found.address} from here"
            if is_loopback(host):
                what = f"{found.address} means each client's own machine"
            return (
                f"{what}. Let the broker advertise an address at which it is reached: "
                f"advertised.listeners. {OF_DOCKER}"
            )
        case Step.TCP if "refused" in text:
            return "see whether the broker runs, and whether this is its port"
        case Step.TCP:
            return "look for a firewall on the way; see whether the address is right"
        case Step.TLS:
            plain = protocol.replace("SSL", "PLAINTEXT")
            today = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
            words = {"plain": plain, "host": host, "today": today}
            said = next((told for clue, told in _OF_TLS if clue in text), None)
            return OF_LOG if said is None else said.format(**words)
        case Step.SASL:
            return _advice_on_login(found, settings, text)
        case _:
            return _advice_on_protocol(found, settings, text)


def _advice_on_login(probed: Probed, settings: CommonSettings, text: str) -> str:
    if "does not offer the SASL mechanism" in text:
        offered = ", ".join(probed.mechanisms)
        return f"choose one of these by --sasl-mechanism, or by sasl.mechanism: {offered}"
    if "does not expect a login" in text:
        plain = settings.security_protocol.removeprefix("SASL_")
        return f"use security.protocol={plain} here, or the port of a listener with SASL"
    if "waits for a login" in text:
        return "see why that takes so long, or give it more time: --timeout"
    user = user_of(settings)
    whose = f" of {user}" if user else ""
    return f"check the credentials{whose}; the broker's log says more than the broker tells clients"


def _advice_on_protocol(probed: Probed, settings: CommonSettings, text: str) -> str:
    """Return what to do about a connection that breaks as soon as it is used."""
    protocol = settings.security_protocol
    if "the port of a controller" in text:
        return (
            "use the port of another listener: one of the broker's listeners= that its "
            "controller.listener.names does not name"
        )
    if settings.tls is None and "TLS listener" in text:
        return f"use security.protocol={protocol.replace('PLAINTEXT', 'SSL')} (--tls)"
    if probed.tls is not None and "client certificate" in text:
        return _OF_TLS[1][1]
    if probed.reached is Step.METADATA and settings.sasl is None:
        return f"the listener may want SASL: security.protocol=SASL_{protocol} and sasl.mechanism"
    if "REBOOTSTRAP_REQUIRED" in text:
        return "another broker answers at this address: correct the broker's advertised.listeners"
    return "see whether a Kafka broker listens on this port, and look at its log"


def warnings_of(found: Probed) -> list[str]:
    """Return what works, and is about to fail."""
    if not found.is_well:
        return []
    slow = [
        f"{ip}: {why}; a client that begins there loses that time"
        for ip, why in found.unreachable.items()
        if why.startswith("no answer")
    ]
    chain = () if found.tls is None else found.tls.chain
    ending = [
        f"a certificate ends in {days_left(one.not_after)} days: {one.subject}"
        for one in chain
        if days_left(one.not_after) < DAYS_TO_WARN
    ]
    return slow + ending


def sends_astray(found: ClusterProbe) -> bool:
    """Return whether brokers advertise this machine itself, although they are elsewhere."""
    servers = [server for server in found.servers if server.metadata is not None]
    are_elsewhere = all(not is_loopback(ip) for server in servers for ip in (server.ip,))
    return are_elsewhere and any(is_loopback(broker.address.host) for broker in found.brokers)


def is_loopback(host: str) -> bool:
    """Return whether a name or an address means the machine that uses it."""
    if host.rstrip(".").lower() in ("localhost", "localhost.localdomain", "0.0.0.0"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def days_left(until: int) -> int:
    """Return the whole days until a time in Unix seconds."""
    return int((until - time.time()) // DAY)


def user_of(settings: CommonSettings) -> str:
    """Return who the client says it is, as far as the settings have it; "" if they do not."""
    sasl = settings.sasl
    if sasl is None:
        return ""
    of_provider = sasl.oidc.client_id if sasl.oidc is not None else None
    return sasl.username or sasl.kerberos_principal or of_provider or ""
