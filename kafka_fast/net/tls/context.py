"""A native TLS context from the settings: versions, suites, trust, the client's certificate."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from kafka_fast.config.security._security_settings import Store, TlsSettings
from kafka_fast.errors import ConfigError
from kafka_fast.net.tls import _tls
from kafka_fast.net.tls._tls import TlsContext
from kafka_fast.net.tls.expiry import warn_of_expiry
from kafka_fast.net.tls.stores import (
    Blob,
    open_key_log,
    read_file,
    read_identity,
    read_jks,
    read_store,
    reveal,
)

__all__ = ["make_context"]

VERSIONS = {"TLSv1.2": 0x0303, "TLSv1.3": 0x0304}

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where distributions keep the authorities that they trust."""


def make_context(settings: TlsSettings) -> TlsContext:
    """Return a context.

    Raises:
        ConfigError: a file cannot be read or used; the text names it and says why.
    """
    context = TlsContext(
        minimum=VERSIONS[settings.minimum_version],
        maximum=VERSIONS[settings.maximum_version],
        verifies=settings.verifies,
        checks_host=settings.checks_host,
    )
    _choose_suites(context, settings)
    if settings.verifies:
        _trust(context, settings)
    if settings.keystore is not None:
        _identify(context, settings.keystore)
    if settings.key_log_location is not None:
        context.log_keys(open_key_log(settings.key_log_location))
    warn_of_expiry(context.trusted_until if settings.truststore else None, context.certified_until)
    return context


def _choose_suites(context: TlsContext, settings: TlsSettings) -> None:
    tls12, tls13 = ":".join(settings.cipher_suites), ":".join(settings.tls13_cipher_suites)
    if not context.suites(tls12.encode() or None, tls13.encode() or None):
        suites = ", ".join(filter(None, (tls12, tls13)))
        raise ConfigError(f"ssl.cipher.suites: {suites}: {context.reason()}")


def _trust(context: TlsContext, settings: TlsSettings) -> None:
    if settings.truststore is None:
        _trust_system(context)
    else:
        _trust_store(context, settings.truststore)
    if settings.crl_location is not None:
        pem = read_file(settings.crl_location)
        _check(context, context.revoke(pem), settings.crl_location, "revocation list")


def _trust_system(context: TlsContext) -> None:
    """Trust what OpenSSL does; or, if its own folders are of another system, what this one does."""
    context.trust_system()
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return
    python = ssl.get_default_verify_paths()
    for place in filter(None, (python.cafile, *SYSTEM_BUNDLES)):
        if Path(place).exists():
            context.trust_at(os.fsencode(place), None)
            return


def _trust_store(context: TlsContext, store: Store) -> None:
    place = store.location or "ssl.truststore.certificates"
    if store.location is not None and Path(store.location).is_dir():
        _check(context, context.trust_at(None, os.fsencode(store.location)), place, "certificate")
        return
    blob = read_store(store)
    if blob.kind == "JKS":
        for der in read_jks(blob, place).trusted:
            _check(context, context.trust(der, None), place, "certificate")
        return
    _check(context, context.trust(blob.data, reveal(store.password)), place, "certificate")


def _identify(context: TlsContext, store: Store) -> None:
    place = store.location or "ssl.keystore.certificate.chain"
    blob = read_store(store)
    if blob.kind == "PKCS12":
        _check(context, context.identity(blob.data, reveal(store.password)), place, "key")
    elif blob.kind == "JKS":
        entry = read_identity(blob, place, store)
        for der in entry.chain:
            _check(context, context.certify(der), place, "certificate")
        _check(context, context.key(entry.key, None), place, "key")
    else:
        _check(context, context.certify(blob.data), place, "certificate")
        _check(context, *_use_key(context, store, blob, place))


def _use_key(context: TlsContext, store: Store, blob: Blob, place: str) -> tuple[int, str, str]:
    """Use the key of a store in PEM, from wherever it is."""
    if store.key is not None:
        data, place = store.key.reveal().encode(), "ssl.keystore.key"
    elif store.key_location is not None:
        data, place = read_file(store.key_location), store.key_location
    else:
        data = blob.data
    return context.key(data, reveal(store.key_password or store.password)), place, "key"


def _check(context: TlsContext, status: int, place: str, what: str) -> None:
    """Raise what is wrong with a file, if anything is."""
    if status == _tls.LOADED:
        return
    words = {
        _tls.EMPTY: f"there is no {what} in it",
        _tls.MALFORMED: f"it has no readable {what}",
        _tls.PASSWORD: "the password is wrong or missing",
        _tls.MISMATCH: "the private key is not the one of the certificate",
    }
    raise ConfigError(f"{place}: {words.get(status) or context.reason()}")
