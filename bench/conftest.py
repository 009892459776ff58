"""Let the micro-benchmarks import the modules beside them, as a script does."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
