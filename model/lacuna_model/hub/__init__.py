"""The registry of models: where their weights come from and where they are kept on this machine."""
