"""What the model should read beside the open file: definitions, recent edits, similar code and diagnostics."""
