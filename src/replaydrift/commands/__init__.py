"""One module a verb of the command line; each has a click command named `command`."""
