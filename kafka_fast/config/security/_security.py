"""Properties of secure connections: of TLS, of SASL, and of SASL's OAUTHBEARER."""

from __future__ import annotations

from kafka_fast.config._key import Key
from kafka_fast.config.security._oauthbearer_keys import OAUTHBEARER
from kafka_fast.config.security._sasl_keys import SASL
from kafka_fast.config.security._tls_keys import TLS

SECURITY: tuple[Key, ...] = (*TLS, *SASL, *OAUTHBEARER)
