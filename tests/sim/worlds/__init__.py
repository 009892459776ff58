"""Deterministic simulation: the shipped client in a world that a seed decides.

>>> from tests.sim.worlds import run_seed
>>> result = run_seed(7)
>>> assert not result.anomalies, result.report()
"""

from __future__ import annotations

from tests.sim.worlds.plan import Plan, make_plan
from tests.sim.worlds.producers.world import Result, World, run_seed

__all__ = ["Plan", "Result", "World", "make_plan", "run_seed"]
