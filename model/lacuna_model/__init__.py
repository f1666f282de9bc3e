"""The diffusion language model of Lacuna: context, canvas, denoise loop and their training."""
