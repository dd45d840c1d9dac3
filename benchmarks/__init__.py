"""What asv runs (`verdicts`), and scripts that print how fast replaydrift itself is."""

from __future__ import annotations

import sys
from pathlib import Path

# The package of this very checkout, installed or not: asv keeps PYTHONPATH from what it starts.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
