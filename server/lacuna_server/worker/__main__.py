"""Runs the model worker: ``python -I -m lacuna_server.worker``."""

import gc
import sys
from types import ModuleType

# A person waits while torch is imported. A third of that are modules that it imports for those who compile, export or
# quantize models, and the worker does nothing of the kind. What is imported stays, so that there is nothing to collect
# until the model is loaded.
for name in ("torch._meta_registrations", "torch.export", "torch.nn.intrinsic"):
    sys.modules[name] = ModuleType(name)
gc.disable()

if __name__ == "__main__":
    from lacuna_server.worker.main import main

    try:
        main()
    except BrokenPipeError:  # the server has gone
        sys.exit(1)
