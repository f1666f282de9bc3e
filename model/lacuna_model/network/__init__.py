"""The transformer: its shape, layers, linears, key-value store, and the device that it runs on."""
