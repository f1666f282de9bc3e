"""The names that installed packages offer, read from their stubs and sources; nothing of a package is executed."""
