"""Two touches to the pages that asv made: the line to open with, and a word to those who open them from disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from replaydrift.errors import ReplaydriftError

# asv's scripts fetch their numbers, which browsers refuse to pages opened from disk; asv then says that a server has gone down.
_NOTE: Final = """
    <script>
      if (location.protocol === "file:") {
        document.addEventListener("DOMContentLoaded", function () {
          document.body.innerHTML = '<p style="margin: 6em 2em; font-size: 120%">These pages of asv need a web server, even a small one: ' +
            'in the folder of the report run <code>python3 -m http.server</code>, then open ' +
            '<a href="http://localhost:8000/asv/">localhost:8000/asv</a>. The <a href="../index.html">report</a> opens without.</p>';
        });
      }
    </script>
  </head>"""


def touch_up(site: Path) -> None:
    """Change asv's front page and index in `site`. ReplaydriftError where they are not as asv 0.6 makes them."""
    index, page = site / "index.json", site / "index.html"
    tree: dict[str, Any] = json.loads(index.read_text(encoding="utf-8"))
    lines, text = tree.get("graph_param_list"), page.read_text(encoding="utf-8")
    if not lines or text.count("\n  </head>") != 1:
        raise ReplaydriftError(f"the pages in {str(site)!r} are not as asv 0.6 makes them: install the asv that replaydrift asks for")
    # The list of benchmarks opens with the first value of each parameter: a GPU's default wheels, not whatever sorts first.
    lines.sort(key=lambda line: (line.get("wheel") != "default", line.get("engine") != "cuda", str(line.get("machine"))))
    for name, values in tree["params"].items():
        values.sort(key=lambda value: value != lines[0].get(name))
    index.write_text(json.dumps(tree), encoding="utf-8")
    page.write_text(text.replace("\n  </head>", _NOTE), encoding="utf-8")
