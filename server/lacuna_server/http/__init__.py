"""What the service answers over plain HTTP."""
