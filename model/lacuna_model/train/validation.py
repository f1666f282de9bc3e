"""What an adapter reaches on held-out files: every slot of every gap masked, the true length not told."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import torch
import torch.nn.functional as F

from lacuna_model.adapter import TrainableCanvas
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.train.objective import canvas_logits
from lacuna_model.train.samples import Sample, SampleOptions, draw_sample
from lacuna_model.train.teacher import read_sample
from lacuna_model.transformer import Transformer


class ValidationReport(msgspec.Struct, frozen=True):
    """Means over held-out gaps; losses in nats a slot.

    ``masked_accuracy`` and ``masked_nll`` go over all true slots, the closing end-of-gap among them;
    ``frontier_*`` over the first slot of every gap, where ``base_frontier_*`` is what the base says left to right;
    ``end_accuracy`` is the share of gaps whose first predicted end-of-gap is at the true place, and
    ``corrected`` the share of planted wrong tokens (one a gap, all else visible) whose best candidate is the true one.
    """

    gaps: int
    slots: int
    masked_accuracy: float
    masked_nll: float
    frontier_accuracy: float
    frontier_nll: float
    base_frontier_accuracy: float
    base_frontier_nll: float
    end_accuracy: float
    corrected: float


@dataclass(slots=True)
class _Sums:
    gaps: int = 0
    slots: int = 0
    correct: int = 0
    nll: float = 0.0
    frontier_correct: int = 0
    frontier_nll: float = 0.0
    base_correct: int = 0
    base_nll: float = 0.0
    ends: int = 0
    right_ends: int = 0
    planted: int = 0
    corrected: int = 0


@torch.inference_mode()
def validate(
    base: Transformer,
    canvas: TrainableCanvas,
    tokenizer: Tokenizer,
    documents: Sequence[str],
    *,
    num_samples: int = 64,
    seed: int = 0,
    window_chars: int = 1000,
) -> ValidationReport:
    """Score ``canvas`` on gaps drawn from ``documents``: the same gaps for the same seed, whatever the model."""
    rng = random.Random(seed)
    options = SampleOptions(block_sizes=(16,), max_gaps=3, window_chars=window_chars)
    sums = _Sums()
    drawn = 0
    while drawn < num_samples:
        sample = draw_sample(rng.choice(documents), tokenizer, options, rng)
        if sample is not None:
            _add(sums, base, canvas, sample, tokenizer, rng)
            drawn += 1
    return ValidationReport(
        gaps=sums.gaps,
        slots=sums.slots,
        masked_accuracy=sums.correct / sums.slots,
        masked_nll=sums.nll / sums.slots,
        frontier_accuracy=sums.frontier_correct / sums.gaps,
        frontier_nll=sums.frontier_nll / sums.gaps,
        base_frontier_accuracy=sums.base_correct / sums.gaps,
        base_frontier_nll=sums.base_nll / sums.gaps,
        end_accuracy=sums.right_ends / max(sums.ends, 1),
        corrected=sums.corrected / max(sums.planted, 1),
    )


def _add(
    sums: _Sums,
    base: Transformer,
    canvas: TrainableCanvas,
    sample: Sample,
    tokenizer: Tokenizer,
    rng: random.Random,
) -> None:
    gaps, size = sample.targets.shape
    targets = sample.targets
    planted = _plant(sample, base.config.vocab_size, rng)
    masks = torch.stack((torch.ones_like(targets, dtype=torch.bool), torch.zeros_like(targets, dtype=torch.bool)))
    # Behind a visible end-of-gap nothing is told, as in training.
    masks[1] = torch.arange(size) >= sample.num_real[:, None]
    reading = read_sample(base, sample)
    wanted = torch.ones_like(masks)
    device = base.final_norm.device
    ids = torch.stack((targets, planted))
    logits = canvas_logits(canvas, sample, reading, ids.to(device), masks.to(device), wanted.to(device))
    logits = logits.view(2, gaps, size, -1).cpu()
    best = logits.argmax(-1)
    real = torch.arange(size) < sample.num_real[:, None]
    sums.gaps += gaps
    sums.slots += int(real.sum())
    sums.correct += int((best[0] == targets)[real].sum())
    sums.nll += float(F.cross_entropy(logits[0][real], targets[real], reduction="sum"))
    sums.frontier_correct += int((best[0, :, 0] == targets[:, 0]).sum())
    sums.frontier_nll += float(F.cross_entropy(logits[0, :, 0], targets[:, 0], reduction="sum"))
    said = base.head(reading.slot_hidden[:, 0]).float().cpu()
    sums.base_correct += int((said.argmax(-1) == targets[:, 0]).sum())
    sums.base_nll += float(F.cross_entropy(said, targets[:, 0], reduction="sum"))
    ended = (targets == tokenizer.eog_id).any(dim=1)
    first_end = (best[0] == tokenizer.eog_id).int().argmax(dim=1)
    true_end = (targets == tokenizer.eog_id).int().argmax(dim=1)
    found = (best[0] == tokenizer.eog_id).any(dim=1)
    sums.ends += int(ended.sum())
    sums.right_ends += int((ended & found & (first_end == true_end)).sum())
    wrong = planted != targets
    sums.planted += int(wrong.sum())
    sums.corrected += int((best[1] == targets)[wrong].sum())


def _plant(sample: Sample, vocab_size: int, rng: random.Random) -> torch.Tensor:
    """The true slots with one wrong token a gap."""
    planted = sample.targets.clone()
    for gap, real in enumerate(sample.num_real.tolist()):
        planted[gap, rng.randrange(real)] = rng.randrange(vocab_size)
    return planted
