"""The diffusion language model of Lacuna: context, canvas, denoise loop and their training."""

import os

# Before torch is imported: threads that spin at barriers make a small model many times slower as soon as another
# program uses a core, so they sleep. A user's own setting stands.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
os.environ.setdefault("GOMP_SPINCOUNT", "0")
