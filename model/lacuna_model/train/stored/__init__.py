"""The corpus on disk: its packages, documents and manifest."""
