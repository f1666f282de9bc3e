"""An engine replica: its models, and the connections of ingresses."""
