"""Certificates that an ordinary authority does not issue, and lists of revoked ones."""

from __future__ import annotations

import datetime as dt
import subprocess
from collections.abc import Sequence
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


def make_self_signed(
    folder: Path, life: dt.timedelta = 30 * DAY, *, is_authority: bool = False
) -> Certificate:
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
        .not_valid_after(now + life)
        .add_extension(x509.BasicConstraints(is_authority, None), critical=True)
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


WEAK = ("SHA-1", "MD5", "RSA of 1024 bits", "SHA-1 in the chain")


def make_weak(kind: str, folder: Path) -> tuple[Certificate, Path]:
    """Return a certificate for localhost that is weak in one of `WEAK`, and its authority's.

    By OpenSSL's command: the package `cryptography` signs nothing so weakly.
    """
    for name, subject in (("root", "/CN=root"), ("middle", "/CN=middle"), ("leaf", "/CN=leaf")):
        bits = 1024 if (name, kind) == ("leaf", "RSA of 1024 bits") else 2048
        new = ["-newkey", f"rsa:{bits}", "-noenc", "-keyout", f"{name}.key", "-subj", subject]
        _openssl(folder, "req", *new, "-out", f"{name}.csr")
    extensions = folder / "extensions"
    by_root = ["-CA", "root.crt", "-CAkey", "root.key", "-CAcreateserial"]
    extensions.write_text("basicConstraints=CA:TRUE\n")
    issue = ["x509", "-req", "-extfile", "extensions", "-days", "30"]
    _openssl(folder, *issue, "-in", "root.csr", "-signkey", "root.key", "-out", "root.crt")
    middle = "-sha1" if kind == "SHA-1 in the chain" else "-sha256"
    _openssl(folder, *issue, "-in", "middle.csr", *by_root, middle, "-out", "middle.crt")
    extensions.write_text("subjectAltName=DNS:localhost\n")
    leaf = {"SHA-1": "-sha1", "MD5": "-md5"}.get(kind, "-sha256")
    by_middle = [part.replace("root", "middle") for part in by_root]
    _openssl(folder, *issue, "-in", "leaf.csr", *by_middle, leaf, "-out", "leaf.crt")
    paths = Certificate(folder / "leaf.key", folder / "chain.crt", folder / "both.pem")
    paths.chain.write_bytes(
        b"".join((folder / f"{n}.crt").read_bytes() for n in ("leaf", "middle"))
    )
    paths.both.write_bytes(paths.key.read_bytes() + paths.chain.read_bytes())
    return paths, folder / "root.crt"


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


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


def as_pkcs12(
    certificate: Certificate, path: Path, password: bytes, others: Sequence[Path] = ()
) -> Path:
    """Write a certificate and its key into a PKCS12 file, with its chain and other certificates."""
    first, *chain = x509.load_pem_x509_certificates(certificate.chain.read_bytes())
    key = serialization.load_pem_private_key(certificate.key.read_bytes(), None)
    data = pkcs12.serialize_key_and_certificates(
        b"own",
        key,  # type: ignore[arg-type]
        first,
        [*chain, *(x509.load_pem_x509_certificate(other.read_bytes()) for other in others)] or None,
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
