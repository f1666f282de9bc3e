import msgspec
import numpy as np
import pytest

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


@pytest.mark.parametrize(("allowed", "changed"), [(0, 0), (1, 1), (4, 3)])
def test_known_tokens_change_where_another_one_is_nearly_certain(allowed: int, changed: int) -> None:
    guess = Guess(rules(msgspec.structs.replace(HOW, start=3), corrections=allowed), 3)
    for slot in range(3):
        entropies = [9.0] * 3
        entropies[slot] = 0.1
        guess.take(seen([TEXT] * 3, entropies), GENERATOR)
    passes = 0
    while not guess.is_whole:
        passes += 1
        guess.take(seen([3, 4, 5], [1, 1, 1]), GENERATOR)
    assert (guess.changed, passes) == (changed, {0: 0, 1: 2, 4: 2}[allowed])
    assert sum(token != TEXT for token in guess.tokens) == changed
