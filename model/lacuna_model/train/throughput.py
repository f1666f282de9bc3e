"""What training does and how fast: figures since the last report, operations counted from shapes."""

import time
from dataclasses import replace

import torch

from lacuna_model.config import ModelConfig
from lacuna_model.train.checkpoint import Progress
from lacuna_model.train.objective import Score
from lacuna_model.train.samples import SampleOptions

# Dense bf16 matrix rates by the vendor's datasheets, in FLOP/s.
_PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12}
_PROBE = 512

Figures = dict[str, float]


class Meter:
    """Means since the last report; scores stay on the device until one is due, so that no step waits for it."""

    def __init__(self, flops: float, device: torch.device) -> None:
        self._flops = flops
        self._peak = peak_flops(device)
        self._scores: list[Score] = []
        self.start(Progress())

    def start(self, progress: Progress) -> None:
        """Begin to measure the speed from here on."""
        self._from = replace(progress)
        self._clock = time.monotonic()

    def add(self, score: Score) -> None:
        """Count one step."""
        self._scores.append(Score(score.loss.detach(), score.sums))

    def figures(self, progress: Progress) -> Figures:
        """What the steps since the last report came to; ``peak_share`` is of the device's bf16 rate."""
        losses = torch.stack([score.loss for score in self._scores]).tolist()
        sums = torch.stack([score.sums for score in self._scores]).sum(0).tolist()
        masked, correct, masked_nll, frontier, frontier_nll, base_nll, guided_nll = sums
        seconds = max(1e-9, time.monotonic() - self._clock)
        steps = progress.step - self._from.step
        means = {
            "step": progress.step,
            "minutes": progress.seconds / 60,
            "slots_seen": progress.slots_seen,
            "tokens_seen": progress.tokens_seen,
            "loss": sum(losses) / len(losses),
            "masked_accuracy": correct / max(masked, 1),
            "masked_nll": masked_nll / max(masked, 1),
            "frontier_nll": frontier_nll / max(frontier, 1),
            "base_frontier_nll": base_nll / max(frontier, 1),
            "guided_frontier_nll": guided_nll / max(frontier, 1),
            "tokens_per_second": (progress.tokens_seen - self._from.tokens_seen) / seconds,
            "slots_per_second": (progress.slots_seen - self._from.slots_seen) / seconds,
            "peak_share": self._flops * steps / seconds / self._peak,
        }
        self._scores = []
        self.start(progress)
        return means


def step_flops(config: ModelConfig, options: SampleOptions, batch_size: int, num_learnt: int) -> float:
    """Floating-point operations of a step with so many low-rank parameters; padding and masked attention count too.

    The base goes forward over context and slots. The canvas goes forward and back: through frozen weights the way
    back costs as much as the way forth, through learnt ones and attention twice as much. Frontier rows have a head of
    the base, and one of the canvas once more.
    """
    hidden, heads = config.hidden_size, config.num_heads * config.head_dim
    shapes = (
        (hidden, heads + 2 * config.num_kv_heads * config.head_dim),
        (heads, hidden),
        (hidden, 2 * config.intermediate_size),
        (config.intermediate_size, hidden),
    )
    frozen = sum(width * out for width, out in shapes) * config.num_layers
    head = hidden * config.vocab_size
    pair = 2 * heads * config.num_layers  # products for every row and key
    read, rows = options.context + options.slots, options.rows
    base = 2 * (read * frozen + read * read * pair)
    forward = frozen + head
    canvas = 2 * rows * (2 * forward + 3 * num_learnt + 3 * (options.context + rows) * pair)
    frontier = 2 * options.max_blocks(config.shift) * 3 * head
    return float(batch_size * (base + canvas + frontier))


def peak_flops(device: torch.device) -> float:
    """What the device does in a second of bf16 matrix products: by its datasheet, else measured with one product."""
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
        for known, peak in _PEAKS.items():
            if known in name:
                return peak
    x = torch.randn((_PROBE, _PROBE), device=device, dtype=torch.bfloat16)
    best = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        float((x @ x)[0, 0])  # reading a number waits for the device
        best = min(best, time.perf_counter() - started)
    return 2 * _PROBE**3 / best


def describe(figures: Figures) -> str:
    """A report as one line."""
    return (
        f"step {figures['step']:.0f}  loss {figures['loss']:.3f}  masked accuracy {figures['masked_accuracy']:.1%}  "
        f"{figures['slots_seen']:,.0f} slots  {figures['tokens_per_second']:,.0f} tokens/s  "
        f"{figures['slots_per_second']:,.0f} slots/s  {figures['peak_share']:.1%} of peak"
    )
