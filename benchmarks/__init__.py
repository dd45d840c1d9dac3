"""What asv runs (`verdicts`), and scripts that print how fast replaydrift itself is."""
