import numpy as np
import torch

from lacuna_model.core.params import DecodeOptions
from lacuna_model.decode.sampling import RULED_OUT
from lacuna_model.diffusion.guess import FillRules, Guess, Marginals, summary
from lacuna_model.loading.families import Diffusion

EXPAND, DELETE, TEXT = 7, 8, 9
HOW = Diffusion(
    shift=False, mask_id=6, block_size=0, ends=(DELETE,), expand_id=EXPAND, delete_id=DELETE, length="expand", start=2
)
GENERATOR = np.random.default_rng(0)


def seen(tokens: list[int], entropies: list[float], probability: float = 0.95) -> Marginals:
    ids = np.array([[token, 1] for token in tokens])
    logp = np.log(np.array([[probability, 0.01]] * len(tokens), dtype=np.float32))
    return Marginals(ids, logp, np.array(entropies, dtype=np.float32))


def rules(how: Diffusion = HOW, **options: object) -> FillRules:
    return FillRules.of(how, DecodeOptions(**options))


def test_a_gap_is_not_expanded_and_deleted_without_end() -> None:
    guess = Guess(rules(), 4)
    for _ in range(40):
        if guess.is_whole:
            break
        masks = [slot for slot, token in enumerate(guess.tokens) if token is None]
        wanted = DELETE if len(masks) > 1 else EXPAND if EXPAND in guess.allowed else TEXT
        entropies = [9.0] * len(guess.tokens)
        entropies[masks[-1]] = 0.1
        guess.take(seen([wanted] * len(guess.tokens), entropies), GENERATOR)
    assert guess.tokens == [TEXT]


def test_tokens_are_drawn_from_the_nucleus_of_the_sharper_distribution() -> None:
    logits = torch.randn((3, 40), generator=torch.Generator().manual_seed(0)) * 3
    seen = summary(logits.clone(), torch.zeros((3, 40), dtype=torch.bool), 0.5, 0.6)
    for row, ids, logp, entropy in zip((logits / 0.5).softmax(-1), seen.ids, seen.logp, seen.entropy, strict=True):
        ordered, order = row.sort(descending=True)
        count = int((ordered.cumsum(0) - ordered <= 0.6).sum())
        kept = ordered[:count] / ordered[:count].sum()
        assert ids[:count].tolist() == order[:count].tolist()
        np.testing.assert_allclose(np.exp(logp[:count]), kept.numpy(), atol=1e-5)
        assert (logp[count:] == RULED_OUT).all()
        np.testing.assert_allclose(entropy, -(kept * kept.log()).sum().item(), atol=1e-5)
