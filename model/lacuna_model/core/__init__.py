"""The types that all parts share: request, errors, what every constraint is, regions, layout and window."""
