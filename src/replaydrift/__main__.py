"""`python -m replaydrift` is the command `replaydrift`."""

from replaydrift.cli import main

main()
