"""Every call of `Admin` on three nodes, with the same plays as on one."""

from __future__ import annotations

import pytest

from tests.documentation.admin_versions import admin_calls
from tests.integration.admin.calls.stage import Stage
from tests.integration.admin.calls.versions import works

pytestmark = [pytest.mark.long, pytest.mark.broker]


@pytest.mark.parametrize("call", admin_calls())
def test_a_call_works(stage: Stage, call: str) -> None:
    assert works(stage, call)
