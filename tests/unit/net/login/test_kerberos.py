"""What needs no Kerberos; the rest is in tests/integration."""

from __future__ import annotations

import pytest

from kafka_fast.config.security._security_settings import SaslSettings
from kafka_fast.errors import MissingPackageError
from kafka_fast.net.login import make_mechanism, packages


def test_the_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPackageError, match=r"pip install gssapi"):
        make_mechanism(SaslSettings(mechanism="GSSAPI"))
