"""Says which TLS this installation uses."""

from __future__ import annotations

import os

__all__ = ["serving"]


def serving() -> str:
    """Return which TLS this installation uses, for `info` and the log."""
    from kafka_fast.net.tls import _tls  # loads OpenSSL, which a plaintext client has no use for

    version = _tls.library_version()
    if os.environ.get("KAFKA_FAST_TLS") == "relay" or version is None:
        import ssl

        why = "KAFKA_FAST_TLS=relay" if version is not None else "built without OpenSSL's headers"
        return f"relay, {ssl.OPENSSL_VERSION} ({why})"
    return f"native, {version}"
