import numpy as np

from lacuna_model.core.params import DecodeOptions
from lacuna_model.diffusion.guess import FillRules, Guess
from lacuna_model.diffusion.slots import Marginals
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
        wanted = DELETE if len(masks) > 1 else EXPAND if guess.may_expand else TEXT
        entropies = [9.0] * len(guess.tokens)
        entropies[masks[-1]] = 0.1
        guess.take(seen([wanted] * len(guess.tokens), entropies), GENERATOR)
    assert guess.tokens == [TEXT]
