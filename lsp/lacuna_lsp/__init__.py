"""The language server of Lacuna."""
