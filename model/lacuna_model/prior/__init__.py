"""The workspace prior: what the user's own project says of the tokens of a gap."""
