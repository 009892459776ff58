"""Which APIs the broker has, in which versions, and who answers them.

One module per API, in a folder per subject as in `protocol/apis`. Each declares with `@answers`
what it answers, and all modules below this package are imported: nothing lists them. An API without
a handler is not in ApiVersions and, as in Kafka, ends the connection. Only ApiVersions itself
answers a version that it does not have.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from kafka_fast.protocol.apis.cluster.api_versions import ApiVersionsResponse
from kafka_fast.testing.broker import registry
from kafka_fast.testing.broker.faults import Faults
from kafka_fast.testing.broker.handlers.cluster import api_versions
from kafka_fast.testing.broker.registry import HANDLERS
from kafka_fast.testing.broker.versions import API_VERSIONS

__all__ = [
    "HANDLERS",
    "OFFERED",
    "answers_any_version",
    "offered_versions",
    "unsupported_version",
]

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    importlib.import_module(_module.name)

# API key -> lowest and highest version that is answered, as in Kafka 4.4.
OFFERED: Mapping[int, tuple[int, int]] = dict(sorted(registry.OFFERED.items()))


def offered_versions(api_key: int, faults: Faults) -> tuple[int, int] | None:
    """Return the lowest and highest version in which an API is answered, None: not at all."""
    if api_key not in OFFERED:
        return None
    return faults.version_range(api_key, *OFFERED[api_key])


def answers_any_version(api_key: int) -> bool:
    """Tell whether an API answers also versions that it does not have."""
    return api_key == API_VERSIONS


def unsupported_version(faults: Faults) -> ApiVersionsResponse:
    """Return the version 0 answer to an ApiVersions request of a version that is not offered."""
    return api_versions.unsupported(faults)
