from pathlib import Path

import pytest
import torch
from tests.model import checkpoints
from tests.model.fim import tiny_fim

from lacuna_model.backends.readers import load_checkpoint
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, InfillResult, Region, Snippet
from lacuna_model.engine import Engine
from lacuna_model.fim.prompt import prompt_head

TEXT = "a = 1\nb = 2\nc = 3\n"
SNIPPETS = (Snippet("changes.diff", "-a = 0\n+a = 1\n"),)


def weighed(engine: Engine, *regions: Region) -> InfillResult:
    return engine.fill(InfillRequest(TEXT, regions, path="a.py", snippets=SNIPPETS))


def test_the_choices_have_the_log_probabilities_of_one_plain_pass_each() -> None:
    model = tiny_fim.loaded()
    choices = ("b = 2\n", "b = 20\n", "")
    result = weighed(Engine(model), Region(6, 12, choices=choices))
    encode, fim = model.tokenizer.encode, model.fim
    head = prompt_head(fim, model.tokenizer, SNIPPETS, "a.py")
    prompt = [*head, *encode("a = 1\n"), fim.suffix, *encode("c = 3\n"), fim.middle]
    for choice, found in zip(choices, result.likelihoods[0], strict=True):
        ids = encode(choice)
        rows = tiny_fim.plain_logits(model, [*prompt, *ids])[len(prompt) - 1 :].log_softmax(-1)
        assert found == pytest.approx(
            float(rows[torch.arange(len(ids)), torch.tensor(ids, dtype=torch.long)].sum()), abs=1e-3
        )
    assert (result.status, result.text, result.fills) == ("ok", TEXT, ("b = 2\n",))


def test_each_region_has_its_own_choices() -> None:
    result = weighed(Engine(tiny_fim.loaded()), Region(0, 6, choices=("x\n",)), Region(12, 18, choices=("y\n", "z\n")))
    assert [len(found) for found in result.likelihoods] == [1, 2]


@pytest.mark.parametrize("others", [Region(12, 18), Region(12, 18, choices=("x",) * 17)])
def test_regions_without_choices_or_with_too_many_are_refused(others: Region) -> None:
    with pytest.raises(RequestError, match="1 to 16 choices"):
        weighed(Engine(tiny_fim.loaded()), Region(0, 6, choices=("x\n",)), others)


def test_a_diffusion_checkpoint_refuses_choices(tmp_path: Path) -> None:
    checkpoints.write(tmp_path, "Dream")
    model = load_checkpoint(tmp_path, precision="float32", device="cpu")
    with pytest.raises(RequestError, match="does not weigh"):
        weighed(Engine(model), Region(0, 6, choices=("x\n",)))


def test_a_region_outside_the_text_is_refused() -> None:
    with pytest.raises(RequestError):
        weighed(Engine(tiny_fim.loaded()), Region(6, 99, choices=("x\n",)))
