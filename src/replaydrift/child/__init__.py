"""The side that runs beside torch: a server that forks one process an attempt. It needs torch and the standard library only."""
