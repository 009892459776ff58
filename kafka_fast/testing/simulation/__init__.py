"""Deterministic simulation: the shipped client in a world that a seed decides.

>>> from kafka_fast.testing.simulation import run_seed
>>> result = run_seed(7)
>>> assert not result.anomalies, result.report()
"""

from kafka_fast.testing.simulation.plan import Plan, make_plan
from kafka_fast.testing.simulation.world import Result, World, run_seed

__all__ = ["Plan", "Result", "World", "make_plan", "run_seed"]
