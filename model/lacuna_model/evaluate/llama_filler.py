"""llama.cpp as a filler: the same file and prompt as ours, ended by its own word, cut by our stop rule and trim."""

import time

from lacuna_model import models
from lacuna_model import regions as region_groups
from lacuna_model.devices import choose_threads
from lacuna_model.errors import RequestError
from lacuna_model.evaluate.llama import Continues, LlamaCpp
from lacuna_model.fim.prompt import prompt_head
from lacuna_model.params import FillStats, InfillRequest, InfillResult, Region
from lacuna_model.readers import load_tokenizer
from lacuna_model.stopping import trim_overlap
from lacuna_model.tokenizer import Tokenizer
from lacuna_model.window import Window, WindowOptions


class LlamaFiller:
    """Fills gaps with a fill-in-the-middle model in llama.cpp; satisfies the runner's ``Filler``.

    The prompt is prefix, suffix, middle, over the window that our engine reads. The fill is greedy and ends with any
    token that ends one, or where the rule for left-to-right models ends it. Several gaps are filled in order, each
    with the earlier ones in place. Raises RequestError for a model without the tokens of that format.
    """

    def __init__(self, name: str, llama: Continues, tokenizer: Tokenizer) -> None:
        if tokenizer.fim is None:
            raise RequestError(f"{name} needs a model with fill-in-the-middle tokens")
        self.name = name
        self._llama = llama
        self._tokenizer = tokenizer
        self._fim = tokenizer.fim

    @classmethod
    def load(cls, name: str, model: str) -> "LlamaFiller":
        """The filler of a model of the registry, or of a GGUF file."""
        return cls(name, LlamaCpp(models.weights(model), threads=choose_threads()), load_tokenizer(model))

    def fill(self, request: InfillRequest) -> InfillResult:
        """One fill per region of the request; its decode options do not apply, a deadline among them."""
        started = time.perf_counter()
        text = request.text.encode()
        region_groups.check(request.regions, text)
        fills: list[str] = []
        passes, read = 0, 0
        for index in range(len(request.regions)):
            current, (region,) = region_groups.moved(text, request.regions, fills, range(index, index + 1))
            prompt = self._prompt(request, current, region)
            generated = self._llama.generate(prompt, region.max_tokens, self._fim.ends)
            passes, read = passes + len(generated), read + len(prompt)
            fills.append(self._cut(generated, current, region))
        stats = FillStats(
            nfe=passes,
            steps=passes,
            tokens=sum(len(self._tokenizer.encode(fill)) for fill in fills),
            context_tokens=read,
            ms=(time.perf_counter() - started) * 1000,
        )
        filled = region_groups.splice(text, request.regions, fills).decode()
        return InfillResult("ok", filled, tuple(fills), stats)

    def _prompt(self, request: InfillRequest, text: bytes, region: Region) -> list[int]:
        window, encode = Window(WindowOptions()), self._tokenizer.encode
        before = window.before(text[: region.start], self._tokenizer).decode()
        after = window.after(text[region.end :], self._tokenizer).decode()
        head = prompt_head(self._fim, self._tokenizer, request.snippets, request.path)
        return [*head, *encode(before), self._fim.suffix, *encode(after), self._fim.middle]

    def _cut(self, generated: list[int], text: bytes, region: Region) -> str:
        """What was generated, up to its end; tokens that are no text have none."""
        said = self._tokenizer.decode_bytes(generated).decode("utf-8", errors="ignore")
        (rule,) = region_groups.stop_rules(text, [region])
        return trim_overlap(rule.end(said, final=True) or "", text[region.end :].decode())
