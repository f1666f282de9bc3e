"""The workspace prior: finds in the user's own project which tokens followed the same text elsewhere."""
