"""The project that a document belongs to: its drafts and snippets, kept up to date while requests are answered."""
