"""Certificates for tests: an authority, and what it issues. Needs trustme.

Never use them elsewhere: the private keys lie beside them, readable.
"""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

from kafka_fast.values import Value

__all__ = ["Certificate", "CertificateAuthority"]


class Certificate(Value):
    """A private key and its certificate, with the chain up to the authority, as PEM files."""

    key: Path
    chain: Path
    both: Path
    """The key and the chain in one file."""


class CertificateAuthority:
    """Issues certificates into a folder."""

    def __init__(self, folder: Path) -> None:
        """Make an authority; its own certificate is `folder`/ca.pem."""
        import trustme  # only those who test with TLS

        self._folder = folder
        self._authority: Any = trustme.CA()
        self._count = 0
        self.certificate = folder / "ca.pem"
        self._authority.cert_pem.write_to_path(str(self.certificate))

    def issue(
        self,
        *names: str,
        common_name: str | None = None,
        not_before: dt.datetime | None = None,
        not_after: dt.datetime | None = None,
    ) -> Certificate:
        """Issue a certificate.

        Args:
            names: host names and IP addresses that it is for. A client's certificate may have any.
            common_name: of its subject; for mutual TLS, what the broker's principal is made of.
            not_before: when it begins to be valid; None: long ago.
            not_after: when it ends; None: in years.
        """
        issued = self._authority.issue_cert(
            *names, common_name=common_name, not_before=not_before, not_after=not_after
        )
        self._count += 1
        stem = self._folder / f"certificate-{self._count}"
        made = Certificate(
            stem.with_suffix(".key"), stem.with_suffix(".crt"), stem.with_suffix(".pem")
        )
        key = _pkcs8(issued.private_key_pem.bytes())
        chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
        made.key.write_bytes(key)
        made.chain.write_bytes(chain)
        made.both.write_bytes(key + chain)
        return made


def _pkcs8(pem: bytes) -> bytes:
    """Return a private key in the form that Java reads; trustme writes OpenSSL's older one."""
    from cryptography.hazmat.primitives import serialization

    key = serialization.load_pem_private_key(pem, password=None)
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
