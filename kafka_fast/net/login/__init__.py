"""Logins: SASL mechanisms with what they need of the world outside: chance, files, providers.

    SaslSettings ── make_mechanism ──► Mechanism ── its Work, on a thread that may block ──► here

The dialogues with a broker are in `control/authentication/`, and know nothing of this.
"""

from __future__ import annotations

from kafka_fast.net.login.making import make_mechanism

__all__ = ["make_mechanism"]
