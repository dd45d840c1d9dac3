"""What asv is told about this project; asv.conf.json at the root says the same, and a test holds the two together.

Each store gets a copy of its own beside its derived files, with paths relative to it, so that `asv --config
mine/asv/asv.conf.json compare v2.13.0 v2.15.0` works for any store.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from replaydrift.history.cost_lines import thresholds
from replaydrift.history.release_repository import BRANCH
from replaydrift.history.result_files import CAPTURE_MS, VERDICT

FILE: Final = "asv.conf.json"
REPOSITORY: Final = "repository"
RESULTS: Final = "results"
HTML: Final = "html"
# asv appends a commit's first eight digits to this, so it leads to an anchor of the page that `site` writes.
RELEASES_PAGE: Final = "releases.html"

SETTINGS: Final[dict[str, Any]] = {
    "version": 1,
    "project": "torch",
    "project_url": "../index.html",
    "show_commit_url": f"{RELEASES_PAGE}#",
    "branches": [BRANCH],
    "dvcs": "git",
    "hash_length": 8,
    # asv's own list of regressions holds what differs from the baseline. A code is no quantity, so no rise of it counts; a
    # capture time of a few attempts is listed only where it doubled. `replaydrift check` decides what changed.
    # What the thresholds of costs rest on stands beside them.
    "regressions_thresholds": {f".*{VERDICT}.*": 1000.0, f".*{CAPTURE_MS}.*": 1.0} | thresholds(),
}


def write_configuration(folder: Path) -> Path:
    """The path of asv's configuration for the derived files in `folder`, the `asv` of a store."""
    path = folder / FILE
    settings = SETTINGS | {"repo": REPOSITORY, "results_dir": RESULTS, "html_dir": HTML, "env_dir": "environments"}
    path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    return path
