"""Runs the model worker: ``python -I -m lacuna_server.worker``."""

import gc
import sys
from types import ModuleType

# A person waits while torch is imported. What its compiler must know of shapes takes a quarter of that, and the worker
# compiles nothing. What is imported stays, so that there is nothing to collect until the model is loaded.
sys.modules["torch._meta_registrations"] = ModuleType("torch._meta_registrations")
gc.disable()

if __name__ == "__main__":
    from lacuna_server.worker.main import main

    try:
        main()
    except BrokenPipeError:  # the server has gone
        sys.exit(1)
