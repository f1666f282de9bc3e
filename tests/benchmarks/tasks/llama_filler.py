"""llama.cpp as a filler: the file, prompt and stop rule of Lacuna's engine; what repeats the suffix is trimmed."""

import re
import time

from tests.benchmarks.tasks.llama import Continues, LlamaCpp

from lacuna_model.backends.readers import load_tokenizer
from lacuna_model.core import regions as region_groups
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import FillStats, InfillRequest, InfillResult, Region
from lacuna_model.core.stopping import StopRule
from lacuna_model.core.window import WindowChooser, WindowOptions
from lacuna_model.fim.prompt import prompt_head
from lacuna_model.hub import models
from lacuna_model.network.devices import choose_threads
from lacuna_model.tokens.tokenizer import Tokenizer

# After each piece of this many tokens the stop rule is checked; the prompt cache avoids reading again.
PIECE_TOKENS = 32


class LlamaFiller:
    """Fills gaps with a fill-in-the-middle model in llama.cpp; satisfies the runner's ``Filler``.

    The prompt is prefix, suffix, middle, over the same window as Lacuna's engine. The fill is greedy and ends with any
    end token, or where the stop rule for left-to-right models applies. Several gaps are filled in order, each with the
    earlier fills in place. Raises RequestError for a model without fill-in-the-middle tokens.
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
        """Returns the filler of a model of the registry, or of a GGUF file."""
        return cls(name, LlamaCpp(models.weights(model), threads=choose_threads()), load_tokenizer(model))

    def fill(self, request: InfillRequest) -> InfillResult:
        """Fills every region of the request; ignores its decode options, including a deadline."""
        started = time.perf_counter()
        text = request.text.encode()
        region_groups.check(request.regions, text)
        fills: list[str] = []
        passes, read = 0, 0
        for index in range(len(request.regions)):
            current, (region,) = region_groups.text_for(text, request.regions, fills, range(index, index + 1))
            prompt = self._prompt(request, current, region)
            (rule,) = region_groups.stop_rules(current, [region])
            generated = self._continue(prompt, region.max_tokens, rule)
            passes, read = passes + len(generated), read + len(prompt)
            fill = rule.end(self._said(generated), final=True) or ""
            fills.append(trim_overlap(fill, current[region.end :].decode()))
        stats = FillStats(
            nfe=passes,
            steps=passes,
            tokens=sum(len(self._tokenizer.encode(fill)) for fill in fills),
            context_tokens=read,
            ms=(time.perf_counter() - started) * 1000,
        )
        return InfillResult("ok", tuple(fills), stats)

    def _prompt(self, request: InfillRequest, text: bytes, region: Region) -> list[int]:
        window, encode = WindowChooser(WindowOptions()), self._tokenizer.encode
        before = window.before(text[: region.start], self._tokenizer).decode()
        after = window.after(text[region.end :], self._tokenizer).decode()
        head = prompt_head(self._fim, self._tokenizer, request.snippets, request.path)
        return [*head, *encode(before), self._fim.suffix, *encode(after), self._fim.middle]

    def _continue(self, prompt: list[int], max_tokens: int, rule: StopRule) -> list[int]:
        """Returns the continuation of a prompt up to its end; works in pieces, to stop soon after the rule applies."""
        generated: list[int] = []
        while len(generated) < max_tokens and rule.end(self._said(generated), final=False) is None:
            most = min(PIECE_TOKENS, max_tokens - len(generated))
            piece = self._llama.generate([*prompt, *generated], most, self._fim.ends)
            generated += piece
            if len(piece) < most or piece[-1] in self._fim.ends:
                break
        return generated

    def _said(self, generated: list[int]) -> str:
        """Returns the text of tokens; end tokens have none."""
        return self._tokenizer.decode_bytes(generated).decode("utf-8", errors="ignore")


def trim_overlap(fill: str, after: str) -> str:
    """``fill`` without an end that repeats the beginning of ``after`` up to the end of one of its lines."""
    for end in reversed([match.end() for match in re.finditer(r"\n|\Z", after)]):
        repeated = after[:end]
        if repeated.strip() and fill.endswith(repeated):
            return fill[: -len(repeated)]
    return fill
