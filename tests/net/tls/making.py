"""Certificates that an ordinary authority does not issue, and lists of revoked ones."""

from __future__ import annotations

import datetime as dt
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

from kafka_fast.testing.certificates import Certificate, CertificateAuthority

DAY = dt.timedelta(days=1)


def make_self_signed(folder: Path) -> Certificate:
    """Return a certificate for localhost that is its own issuer."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = dt.datetime.now(dt.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - DAY)
        .not_valid_after(now + 30 * DAY)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    paths = Certificate(folder / "self.key", folder / "self.crt", folder / "self.pem")
    pem_key = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    pem = made.public_bytes(Encoding.PEM)
    paths.key.write_bytes(pem_key)
    paths.chain.write_bytes(pem)
    paths.both.write_bytes(pem_key + pem)
    return paths


def revoke(authority: CertificateAuthority, bad: Certificate, path: Path) -> Path:
    """Write a list in which the authority revokes a certificate."""
    made = authority._authority  # the authority signs only certificates
    now = dt.datetime.now(dt.timezone.utc)
    serial = x509.load_pem_x509_certificate(bad.chain.read_bytes()).serial_number
    entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
    listed = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(x509.load_pem_x509_certificate(authority.certificate.read_bytes()).subject)
        .last_update(now - DAY)
        .next_update(now + DAY)
        .add_revoked_certificate(entry)
        .sign(made._private_key, hashes.SHA256())
    )
    path.write_bytes(listed.public_bytes(Encoding.PEM))
    return path


def as_pkcs12(certificate: Certificate, path: Path, password: bytes) -> Path:
    """Write a certificate and its key into a PKCS12 file."""
    first, *others = x509.load_pem_x509_certificates(certificate.chain.read_bytes())
    key = serialization.load_pem_private_key(certificate.key.read_bytes(), None)
    data = pkcs12.serialize_key_and_certificates(
        b"own",
        key,  # type: ignore[arg-type]
        first,
        others or None,
        BestAvailableEncryption(password),
    )
    path.write_bytes(data)
    return path


def as_trusted_pkcs12(authority: CertificateAuthority, path: Path, password: bytes) -> Path:
    """Write an authority's certificate into a PKCS12 file."""
    own = x509.load_pem_x509_certificate(authority.certificate.read_bytes())
    data = pkcs12.serialize_key_and_certificates(
        None, None, None, [own], BestAvailableEncryption(password)
    )
    path.write_bytes(data)
    return path


def encrypted_key(certificate: Certificate, path: Path, password: bytes) -> Path:
    """Write a certificate's key as encrypted PKCS8."""
    key = serialization.load_pem_private_key(certificate.key.read_bytes(), None)
    encryption = BestAvailableEncryption(password)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return path
