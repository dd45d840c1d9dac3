"""Measuring costs beside torch: one visit of one release to one machine. It needs torch and the standard library only."""
