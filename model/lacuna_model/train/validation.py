"""What an adapter reaches on held-out files: every slot of every gap masked, the true length not told."""

import random
from collections import defaultdict

import msgspec
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from lacuna_model.adapter import TrainableCanvas
from lacuna_model.train.batches import BatchSource, collate
from lacuna_model.train.calibration import Bin, Calibration, expected_error
from lacuna_model.train.masks import Copies
from lacuna_model.train.objective import canvas_hidden, mixture, to_device
from lacuna_model.train.samples import Sample
from lacuna_model.train.teacher import read_batch
from lacuna_model.transformer import Transformer


class ValidationReport(msgspec.Struct, frozen=True):
    """Means over held-out gaps; losses in nats a slot.

    ``masked_accuracy`` and ``masked_nll`` go over all true slots, the closing end-of-gap among them;
    ``frontier_*`` over the first slot of every gap, where ``base_frontier_*`` is what the base says left to right, and
    ``guided_frontier_*`` what both say together of those that are no end-of-gap;
    ``end_accuracy`` is the share of gaps whose first predicted end-of-gap is at the true place, and
    ``corrected`` the share of planted wrong tokens (one a gap, all else visible) whose best candidate is the true one.
    ``reliability`` says how often the best token of a masked slot was right, by its probability, and
    ``calibration_error`` how far the two lie apart on average.
    """

    gaps: int
    slots: int
    masked_accuracy: float
    masked_nll: float
    frontier_accuracy: float
    frontier_nll: float
    base_frontier_accuracy: float
    base_frontier_nll: float
    guided_frontier_accuracy: float
    guided_frontier_nll: float
    end_accuracy: float
    corrected: float
    calibration_error: float
    reliability: tuple[Bin, ...]


@torch.inference_mode()
def validate(
    base: Transformer,
    canvas: TrainableCanvas,
    source: BatchSource,
    *,
    num_samples: int = 64,
    dtype: torch.dtype = torch.float32,
) -> ValidationReport:
    """Score ``canvas`` on gaps of held-out files: the same gaps for the same source, whatever the model."""
    sums: dict[str, float] = defaultdict(float)
    calibration = Calibration()
    device = base.final_norm.device
    for first in range(0, num_samples, source.batch_size):
        rng = random.Random(f"{source.seed}/{first}")
        samples = [source.sample(first + i, rng) for i in range(min(source.batch_size, num_samples - first))]
        pairs = [(sample, _copies(sample, source.tokenizer.vocab_size, rng)) for sample in samples]
        # Padded with the last one to the shape that training has, for which everything is compiled.
        padded = pairs + pairs[-1:] * (source.batch_size - len(pairs))
        batch = to_device(collate(padded, source.options, source.shift), device)
        reading = read_batch(base, batch, dtype)
        hidden = canvas_hidden(canvas.transformer, canvas.mask_embedding, batch, reading)
        for index, (sample, copies) in enumerate(pairs):
            logits = canvas.transformer.head(slot_rows(hidden[index], copies.masks.shape, source.shift)).cpu()
            said = base.head(reading.slot_hidden[index, : sample.targets.size]).cpu()
            best = logits[0].softmax(-1).max(-1)
            right = best.indices.numpy() == sample.targets
            calibration.add(best.values.numpy()[sample.real], right[sample.real])
            _add(sums, sample, copies, logits, said.view(*sample.targets.shape, -1)[:, 0], source.tokenizer.eog_id)
    gaps, slots, bins = sums["gaps"], sums["slots"], calibration.bins()
    return ValidationReport(
        gaps=int(gaps),
        slots=int(slots),
        masked_accuracy=sums["correct"] / slots,
        masked_nll=sums["nll"] / slots,
        frontier_accuracy=sums["frontier_correct"] / gaps,
        frontier_nll=sums["frontier_nll"] / gaps,
        base_frontier_accuracy=sums["base_correct"] / gaps,
        base_frontier_nll=sums["base_nll"] / gaps,
        guided_frontier_accuracy=sums["guided_correct"] / max(sums["texts"], 1),
        guided_frontier_nll=sums["guided_nll"] / max(sums["texts"], 1),
        end_accuracy=sums["right_ends"] / max(sums["ends"], 1),
        corrected=sums["corrected"] / max(sums["planted"], 1),
        calibration_error=expected_error(bins),
        reliability=bins,
    )


def slot_rows(rows: Tensor, shape: tuple[int, ...], shift: bool) -> Tensor:
    """Of one sample's canvas rows [R, H] those that predict its slots [C, G, B, H]."""
    copies, gaps, size = shape
    width = size + shift
    return rows[: copies * gaps * width].view(copies, gaps, width, -1)[:, :, :size]


def _copies(sample: Sample, vocab_size: int, rng: random.Random) -> Copies:
    """One copy with every slot masked; one with all of them visible and one of each gap wrong."""
    planted = sample.targets.copy()
    for gap, real in enumerate(sample.num_real.tolist()):
        planted[gap, rng.randrange(real)] = rng.randrange(vocab_size)
    # Behind a visible end-of-gap nothing is told, as in training.
    return Copies(np.stack((np.ones_like(sample.real), ~sample.real)), np.stack((sample.targets, planted)))


def _add(sums: dict[str, float], sample: Sample, copies: Copies, logits: Tensor, said: Tensor, eog_id: int) -> None:
    """Count a sample: ``logits`` [2, G, B, V] of both copies, ``said`` [G, V] by the base of every first slot."""
    targets, real = torch.from_numpy(sample.targets), torch.from_numpy(sample.real)
    planted = torch.from_numpy(copies.ids[1])
    best, first = logits.argmax(-1), targets[:, 0]
    ends, found = targets == eog_id, best[0] == eog_id
    right_ends = ends.any(1) & found.any(1) & (found.int().argmax(1) == ends.int().argmax(1))
    wrong = planted != targets
    text = first != eog_id
    guided = mixture(logits[0, :, 0].float(), said.float(), eog_id)[text]
    counts = {
        "gaps": torch.tensor(len(targets)),
        "slots": real.sum(),
        "correct": (best[0] == targets)[real].sum(),
        "nll": F.cross_entropy(logits[0][real], targets[real], reduction="sum"),
        "frontier_correct": (best[0, :, 0] == first).sum(),
        "frontier_nll": F.cross_entropy(logits[0, :, 0], first, reduction="sum"),
        "base_correct": (said.argmax(-1) == first).sum(),
        "base_nll": F.cross_entropy(said, first, reduction="sum"),
        "texts": text.sum(),
        "guided_correct": (guided.argmax(-1) == first[text]).sum(),
        "guided_nll": F.nll_loss(guided, first[text], reduction="sum"),
        "ends": ends.any(1).sum(),
        "right_ends": right_ends.sum(),
        "planted": wrong.sum(),
        "corrected": (best[1] == targets)[wrong].sum(),
    }
    for name, value in counts.items():
        sums[name] += value.item()
