"""An `ssl.SSLContext` from the settings, for the relay.

Python's `ssl` reads certificates and keys from files only, and no PKCS12. What is no such file goes
through a file in memory; PKCS12 needs the package `cryptography`.
"""

from __future__ import annotations

import os
import re
import ssl
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kafka_fast.config.security._security_settings import Store, TlsSettings
from kafka_fast.errors import ConfigError, MissingPackageError
from kafka_fast.net.tls.expiry import end_of, warn_of_expiry
from kafka_fast.net.tls.stores import (
    Blob,
    JavaStore,
    open_key_log,
    read_file,
    read_identity,
    read_jks,
    read_store,
    reveal,
)

__all__ = ["make_ssl_context"]

PEM_CERTIFICATE = re.compile(
    "-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n?", re.DOTALL
)
VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}


def make_ssl_context(settings: TlsSettings) -> ssl.SSLContext:
    """Return the user's context, or one that does what the settings say.

    Raises:
        ConfigError: a file cannot be read or used; the text names it and says why.
        MissingPackageError: reading a key store needs a package.
    """
    if settings.context is not None:
        return settings.context
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = VERSIONS[settings.minimum_version]
    context.maximum_version = VERSIONS[settings.maximum_version]
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.check_hostname = settings.checks_host and settings.verifies
    context.verify_mode = ssl.CERT_REQUIRED if settings.verifies else ssl.CERT_NONE
    _choose_suites(context, settings)
    if settings.verifies:
        _trust(context, settings)
    if settings.keystore is not None:
        _identify(context, settings.keystore)
    if settings.key_log_location is not None:
        os.close(open_key_log(settings.key_log_location))  # Python's would be open to all
        context.keylog_filename = settings.key_log_location
    return context


def _choose_suites(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.tls13_cipher_suites:
        raise ConfigError(
            "ssl.cipher.suites: the relay cannot choose suites of TLS 1.3, only the native TLS can"
        )
    if settings.cipher_suites:
        suites = ":".join(settings.cipher_suites)
        try:
            context.set_ciphers(suites)
        except ssl.SSLError as error:
            raise ConfigError(f"ssl.cipher.suites: {suites}: {error}") from error


def _trust(context: ssl.SSLContext, settings: TlsSettings) -> None:
    if settings.truststore is None:
        context.load_default_certs()
    else:
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        _trust_store(context, settings.truststore)
        warn_of_expiry(_first_end(context.get_ca_certs(binary_form=True)), None)
    if settings.crl_location is not None:
        if b"-----BEGIN X509 CRL-----" not in read_file(settings.crl_location):
            raise ConfigError(f"{settings.crl_location}: there is no revocation list in it")
        try:
            context.load_verify_locations(cafile=settings.crl_location)
        except ssl.SSLError as error:
            text = f"{settings.crl_location}: it has no readable revocation list"
            raise ConfigError(text) from error
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _trust_store(context: ssl.SSLContext, store: Store) -> None:
    place = store.location or "ssl.truststore.certificates"
    if store.location is not None and Path(store.location).is_dir():
        context.load_verify_locations(capath=store.location)
        return
    blob = read_store(store)
    data: bytes | str
    if blob.kind == "JKS":
        data = b"".join(read_jks(blob, place).trusted)
    elif blob.kind == "PKCS12":
        data = b"".join(_read_pkcs12(blob, place).trusted)
    else:
        data = blob.data if blob.kind == "DER" else blob.data.decode("ascii", "replace")
    try:
        context.load_verify_locations(cadata=data)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"{place}: there is no certificate in it") from error


def _identify(context: ssl.SSLContext, store: Store) -> None:
    place = store.location or "ssl.keystore.certificate.chain"
    blob = read_store(store)
    if blob.kind in ("JKS", "PKCS12"):
        held = (
            read_identity(blob, place, store) if blob.kind == "JKS" else _read_pkcs12(blob, place)
        )
        chain = held.chain
        parts = [ssl.DER_cert_to_PEM_cert(der).encode() for der in chain]
        parts.append(_pem_key(held.key))
        password = b""
    else:
        certificates = PEM_CERTIFICATE.findall(blob.data.decode("ascii", "replace"))
        chain = tuple(map(ssl.PEM_cert_to_DER_cert, certificates))
        parts = [blob.data]
        if store.key is not None:
            parts.append(store.key.reveal().encode())
        elif store.key_location is not None:
            place = f"{place}, {store.key_location}"
            parts.append(read_file(store.key_location))
        password = reveal(store.key_password or store.password) or b""
    _load_chain(context, b"\n".join(parts), password, place)
    warn_of_expiry(None, _first_end(chain))


def _first_end(ders: Iterable[bytes]) -> tuple[str, int] | None:
    """Return what `warn_of_expiry` wants to know of certificates that OpenSSL has accepted."""
    return min(map(end_of, ders), key=lambda end: end[1], default=None)


def _load_chain(context: ssl.SSLContext, pem: bytes, password: bytes, place: str) -> None:
    fd = os.memfd_create("kafka_fast", os.MFD_CLOEXEC)
    try:
        os.write(fd, pem)
        context.load_cert_chain(f"/proc/self/fd/{fd}", password=lambda: password)
    except ssl.SSLError as error:
        is_mismatch = error.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")
        if is_mismatch:
            why = "the private key is not the one of the certificate"
        elif b"ENCRYPTED" in pem:
            why = "the password is wrong or missing"
        else:
            why = "it has no readable certificate with its key"
        raise ConfigError(f"{place}: {why}") from error
    finally:
        os.close(fd)


def _pem_key(der: bytes) -> bytes:
    return ssl.DER_cert_to_PEM_cert(der).replace("CERTIFICATE", "PRIVATE KEY").encode()


def _read_pkcs12(blob: Blob, place: str) -> JavaStore:
    try:
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.serialization import pkcs12
    except ImportError as error:
        raise MissingPackageError(
            f"{place} is a PKCS12 file: without the native TLS the package cryptography "
            "reads it (pip install cryptography), or make PEM of it: openssl pkcs12",
            package="cryptography",
            extra="oauth",
        ) from error
    try:
        held: Any = pkcs12.load_pkcs12(blob.data, blob.password)
    except ValueError as error:
        raise ConfigError(f"{place}: the password is wrong or missing") from error
    own = [held.cert.certificate] if held.cert is not None else []
    others = [entry.certificate for entry in held.additional_certs]
    chain = tuple(one.public_bytes(form.Encoding.DER) for one in (*own, *others))
    _take_chain_out(own, others)
    trusted = tuple(one.public_bytes(form.Encoding.DER) for one in (*own, *others))
    key = b""
    if held.key is not None:
        key = held.key.private_bytes(
            form.Encoding.DER, form.PrivateFormat.PKCS8, form.NoEncryption()
        )
    return JavaStore(trusted, key, chain)


def _take_chain_out(own: list[Any], others: list[Any]) -> None:
    """Remove the chain behind a private key, which is not trusted: see kf_tls_context.c."""
    last = own[0] if own else None
    while last is not None and last.issuer != last.subject:
        last = next((one for one in others if one.subject == last.issuer), None)
        if last is not None:
            others.remove(last)
