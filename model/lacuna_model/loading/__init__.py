"""Reads weights from GGUF and safetensors files, and keeps their prepared form in the user's cache."""
