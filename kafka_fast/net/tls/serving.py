"""Chooses which TLS this installation uses, and makes the connector for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from kafka_fast.errors import ConfigError, MissingPackageError, drop_frames
from kafka_fast.logs import get_logger

if TYPE_CHECKING:
    from kafka_fast.config.security._security_settings import TlsSettings
    from kafka_fast.net.tls.connector import TlsConnector

__all__ = ["make_connector", "serving"]

logger = get_logger("kafka_fast.net.tls")


def serving() -> str:
    """Return which TLS this installation uses, for `info` and the log."""
    from kafka_fast.net.tls import _tls  # loads OpenSSL, which a plaintext client has no use for

    version = _tls.library_version()
    if os.environ.get("KAFKA_FAST_TLS") == "relay" or version is None:
        import ssl

        why = "KAFKA_FAST_TLS=relay" if version is not None else "built without OpenSSL's headers"
        return f"relay, {ssl.OPENSSL_VERSION} ({why})"
    return f"native, {version}"


def make_connector(tls: TlsSettings, protocol: str) -> TlsConnector:
    """Return what makes a client's links.

    Called by the thread that makes the client. It may block: it reads files.

    Args:
        tls: the client's settings.
        protocol: its `security.protocol`, for errors.

    Raises:
        ConfigError: a certificate or key cannot be used; KAFKA_FAST_TLS has an unknown value.
    """
    way = os.environ.get("KAFKA_FAST_TLS", "native")
    if way not in ("native", "relay"):
        raise ConfigError(f"KAFKA_FAST_TLS is 'native' or 'relay', not {way!r}")
    by = "relay, the user's ssl_context" if tls.context is not None else serving()
    logger.info("TLS: %s", by)
    try:
        return _connector(tls, protocol, by)
    except (ConfigError, MissingPackageError) as error:
        drop_frames(error)  # passwords and private keys stand in them
        failure = error
    raise failure  # not in the handler, where Python 3.10 brings the frames back


def _connector(tls: TlsSettings, protocol: str, by: str) -> TlsConnector:
    # Imported here, because each loads an OpenSSL.
    if by.startswith("relay"):
        from kafka_fast.net.tls.relay import RelayConnector

        return RelayConnector(tls, protocol)
    from kafka_fast.net.tls.native import NativeConnector

    return NativeConnector(tls, protocol)
