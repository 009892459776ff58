"""Measurements by section, scenario and contender; their medians."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Labelled(Protocol):
    """What a job tells of itself."""

    @property
    def section(self) -> str: ...
    @property
    def scenario(self) -> str: ...
    @property
    def contender(self) -> str: ...


Key = tuple[str, str, str]


class Results:
    """What the runs brought; `median` makes one number of a metric's values."""

    def __init__(self, median: Callable[[Sequence[float]], float]) -> None:
        self._median = median
        self._values: dict[Key, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self._unsupported: set[Key] = set()
        self._errors: dict[Key, str] = {}
        self.notes: list[str] = []

    def add(self, job: Labelled, result: dict[str, Any]) -> None:
        """Keep one run's numbers, or that the contender cannot do this, or its error."""
        key = (job.section, job.scenario, job.contender)
        if "unsupported" in result:
            self._unsupported.add(key)
        elif "error" in result:
            self._errors[key] = result["error"]
        else:
            for metric, value in result.items():
                if isinstance(value, (int, float)):
                    self._values[key][metric].append(float(value))

    def is_unsupported(self, job: Labelled) -> bool:
        """Say whether a run has shown that the contender has no such call."""
        return (job.section, job.scenario, job.contender) in self._unsupported

    def get(self, section: str, scenario: str, contender: str, metric: str) -> float | None:
        """Return the median, or None if there is none."""
        metrics = self._values.get((section, scenario, contender))
        if metrics is None or not metrics.get(metric):
            return None
        return self._median(metrics[metric])

    def best_other(
        self, section: str, scenario: str, metric: str, best: Callable[[list[float]], float]
    ) -> float | None:
        """Return the best value that another client library has; the raw socket is none."""
        others = [
            self.get(*key, metric)
            for key in self._values
            if key[:2] == (section, scenario) and key[2] not in ("kafka_fast", "raw socket")
        ]
        known = [value for value in others if value is not None]
        return best(known) if known else None

    def scenarios(self, section: str) -> list[str]:
        """Return the scenarios of a section, in the order in which they first ran."""
        return list(dict.fromkeys(key[1] for key in self._values if key[0] == section))

    def contenders(self, section: str, scenario: str) -> list[str]:
        """Return who has a result, in the order in which they first ran."""
        return [key[2] for key in self._values if key[:2] == (section, scenario)]

    def note(self, text: str) -> None:
        """Add a sentence to the report."""
        self.notes.append(text)

    def errors(self) -> list[str]:
        """Return one line for each run that failed."""
        return [f"{' | '.join(key)}: {text}" for key, text in self._errors.items()]
