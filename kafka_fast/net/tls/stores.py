"""Reads key stores and trust stores, whose type their content tells."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kafka_fast.config.security._security_settings import Store, TlsSettings
from kafka_fast.errors import ConfigError, MissingPackageError
from kafka_fast.logs import UNLIMITED, get_logger
from kafka_fast.secret import Secret
from kafka_fast.values import Value

__all__ = [
    "Blob",
    "Fingerprint",
    "JavaStore",
    "fingerprint",
    "open_key_log",
    "read_file",
    "read_identity",
    "read_jks",
    "read_store",
    "reveal",
]

logger = get_logger("kafka_fast.net.tls")

Fingerprint = tuple[tuple[int, int, int] | None, ...]
"""Time of change, size and inode of each file."""

MAX_BYTES = 16 << 20
"""A store that is larger is none."""


class Blob(Value):
    """A store as it was read."""

    kind: str
    """PEM, DER, PKCS12 or JKS."""
    data: bytes
    password: bytes | None


class JavaStore(Value):
    """What a JKS or PKCS12 file holds, in DER."""

    trusted: tuple[bytes, ...]
    """As Java does: what stands in it by itself, and a key's own certificate without its chain."""
    key: bytes
    chain: tuple[bytes, ...]


def reveal(secret: Secret | None) -> bytes | None:
    """Return a password as OpenSSL wants it. May block.

    Raises:
        ConfigError: it cannot be written in UTF-8. The exceptions of a user's function pass.
    """
    if secret is None:
        return None
    try:
        return secret.reveal().encode()
    except UnicodeEncodeError:
        pass  # it has the password in it, and must not be chained
    raise ConfigError("a password of ssl.… cannot be written in UTF-8")


def open_key_log(location: str) -> int:
    """Open the file for the sessions' keys, of which only its owner reads; return its descriptor.

    Each start says so in the log: whoever has these keys reads all that the client sends.

    Raises:
        ConfigError: it cannot be written.
    """
    try:
        fd = os.open(location, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(f"{location}: {error.strerror}") from error
    logger.warning("the keys of all TLS sessions are written to %s", location, extra=UNLIMITED)
    return fd


def read_file(location: str) -> bytes:
    """Return what is in a file.

    Raises:
        ConfigError: it cannot be read, or is too large.
    """
    try:
        with Path(location).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{location}: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{location}: more than {MAX_BYTES:,} bytes are no key store")
    return data


def read_store(store: Store) -> Blob:
    """Return what is in a store, and of which type it is.

    Raises:
        ConfigError: it cannot be read, or is of a type that this client does not know.
    """
    if store.location is None:
        return Blob("PEM", (store.certificates or "").encode(), None)
    data = read_file(store.location)
    if not data:
        raise ConfigError(f"{store.location}: the file is empty")
    kind = _kind(data)
    if kind == "JCEKS":
        raise ConfigError(
            f"{store.location}: JCEKS is not supported; make a PKCS12 file of it: keytool "
            "-importkeystore -deststoretype PKCS12"
        )
    return Blob(kind, data, reveal(store.password))


def _kind(data: bytes) -> str:
    if b"-----BEGIN " in data:
        return "PEM"
    if data.startswith(b"\xfe\xed\xfe\xed"):
        return "JKS"
    if data.startswith(b"\xce\xce\xce\xce"):
        return "JCEKS"
    # Both are DER sequences; a PKCS12 file begins with its version, a certificate does not.
    header = 2 + (data[1] & 0x7F if len(data) > 1 and data[1] & 0x80 else 0)
    if data[:1] == b"\x30" and data[header : header + 3] == b"\x02\x01\x03":
        return "PKCS12"
    return "DER" if data[:1] == b"\x30" else "PEM"


def read_jks(blob: Blob, place: str, key_password: bytes | None = None) -> JavaStore:
    """Return what is in a JKS file.

    Args:
        blob: the file.
        place: its name, for errors.
        key_password: of the private key, if it is not the file's.

    Raises:
        ConfigError: the password is wrong, or the file is damaged.
        MissingPackageError: pyjks is not installed.
    """
    try:
        import jks  # type: ignore[import-untyped]  # only those who have such a file
    except ImportError as error:
        raise MissingPackageError(
            f"{place} is a JKS file: pip install pyjks reads it, or make a PKCS12 file "
            "of it: keytool -importkeystore -deststoretype PKCS12",
            package="pyjks",
            extra="jks",
            name="jks",
        ) from error
    wrong = (jks.util.KeystoreSignatureException, jks.util.DecryptionFailureException)
    try:
        store: Any = jks.KeyStore.loads(blob.data, (blob.password or b"").decode())
        return _contents(store, key_password)
    except wrong as error:
        raise ConfigError(f"{place}: the password is wrong or missing") from error
    except Exception as error:  # of the package, and of the parsers that it calls
        raise ConfigError(f"{place}: it has no readable key or certificate") from error


def read_identity(blob: Blob, place: str, store: Store) -> JavaStore:
    """Return what is in a JKS file, with its private key.

    Raises:
        ConfigError, MissingPackageError: as `read_jks`; or the key's own password is missing.
    """
    identity = read_jks(blob, place, reveal(store.key_password))
    if identity.chain and not identity.key:
        raise ConfigError(f"{place}: the key has a password of its own (see ssl.key.password)")
    return identity


def _contents(store: Any, key_password: bytes | None) -> JavaStore:
    keys = list(store.private_keys.values())
    chains = [tuple(cert for _, cert in entry.cert_chain) for entry in keys]
    trusted = (
        *(entry.cert for entry in store.certs.values()),
        *(chain[0] for chain in chains if chain),
    )
    if not keys:
        return JavaStore(trusted, b"", ())
    first = keys[0]
    if key_password is not None:
        first.decrypt(key_password.decode())  # does nothing if the file's password did it
    # A key that stays encrypted harms nobody who wants the certificates alone.
    return JavaStore(trusted, first.pkey_pkcs8 if first.is_decrypted() else b"", chains[0])


def fingerprint(settings: TlsSettings) -> Fingerprint:
    """Return what changes when a file of the settings does."""
    stores = [store for store in (settings.truststore, settings.keystore) if store is not None]
    places = [place for store in stores for place in (store.location, store.key_location)]
    return tuple(_stamp(place) for place in (*places, settings.crl_location) if place is not None)


def _stamp(place: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(place)  # noqa: PTH116 - for each connection: a Path costs more than this
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
