"""Weighs given texts for a gap: how likely the model finds each of them, with the text around the gap and snippets."""

from collections.abc import Callable, Generator

from lacuna_model.backends.readers import Loaded
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region, Snapshot, Status
from lacuna_model.core.regions import standing
from lacuna_model.fim.choosing import log_probabilities
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.fim.prompt import prompt_head, whole_prompt

# So much of the text around a gap is read: the nearest lines say what is usual there.
LINES_BEFORE, LINES_AFTER = 8, 6
MOST_CHOICES = 16


def weighed(
    model: Loaded, request: InfillRequest, cancelled: Callable[[], bool]
) -> Generator[Snapshot, None, InfillResult]:
    """Returns the log-probability (nats) of the choices of each region; other requests may run between two regions.

    Raises RequestError for a model that does not fill in the middle, and for regions without choices or with too many.
    """
    if not isinstance(model, LoadedFim):
        raise RequestError("an open diffusion checkpoint does not weigh choices")
    if not all(0 < len(region.choices) <= MOST_CHOICES for region in request.regions):
        raise RequestError(f"all regions of a request have 1 to {MOST_CHOICES} choices, or none has any")
    text = request.text.encode()
    found: list[tuple[float, ...]] = []
    for region in request.regions:
        if cancelled():
            break
        found.append(_likelihoods(model, request, text, region))
        yield Snapshot(len(found), ("",) * len(request.regions), ((),) * len(request.regions))
    kept = standing(text, request.regions)
    status: Status = "ok" if len(found) == len(request.regions) else "cancelled"
    return InfillResult(status, request.text, kept, FillStats(nfe=len(found)), likelihoods=tuple(found))


def _likelihoods(model: LoadedFim, request: InfillRequest, text: bytes, region: Region) -> tuple[float, ...]:
    encode, fim = model.tokenizer.encode, model.fim
    before = "".join(text[: region.start].decode().splitlines(keepends=True)[-LINES_BEFORE:])
    after = "".join(text[region.end :].decode().splitlines(keepends=True)[:LINES_AFTER])
    head = prompt_head(fim, model.tokenizer, request.snippets, request.path)
    prompt = whole_prompt(fim, head, encode(before), encode(after))
    return tuple(log_probabilities(model, prompt, [encode(choice) for choice in region.choices]))
