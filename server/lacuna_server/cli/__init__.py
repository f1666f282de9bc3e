"""What the command ``lacuna`` has: one module for each of its commands."""
