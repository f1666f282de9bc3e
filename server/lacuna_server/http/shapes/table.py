"""The table of all shapes: paths, body and answers of each."""

from typing import Any

from lacuna_server.http.endpoint import Shape
from lacuna_server.http.shapes import mercury
from lacuna_server.http.shapes.chat import ChatChunk, ChatExchange, ChatReply, FimRequest
from lacuna_server.http.shapes.llama import Completion, Content, Infill, LlamaExchange, LlamaReply
from lacuna_server.http.shapes.openai import TextExchange, TextReply, TextRequest

_LLAMA_REPLIES = (LlamaReply, list[LlamaReply], dict[str, Any], list[dict[str, Any]])

SHAPES: tuple[Shape[Any], ...] = (
    Shape(
        "infill",
        ("/infill",),
        "Fill a gap, as llama.cpp does. With `response_fields` the answer has those fields alone, with `n_cmpl` it is "
        "a list.",
        Infill,
        LlamaExchange.infill,
        "llama",
        _LLAMA_REPLIES,
        (Content, LlamaReply),
    ),
    Shape(
        "completion",
        ("/completion", "/completions"),
        "Go on with a prompt, or fill the gap between its FIM sentinels, as llama.cpp does.",
        Completion,
        LlamaExchange.completion,
        "llama",
        _LLAMA_REPLIES,
        (Content, LlamaReply),
    ),
    Shape(
        "completions",
        ("/v1/completions",),
        "Fill the gap between prompt and suffix, or between the FIM sentinels of the prompt, as OpenAI does. A prompt "
        "in the format of Sweep's or Zed's next-edit models gets its window as it would become.",
        TextRequest,
        TextExchange,
        "openai",
        (TextReply,),
        (TextReply,),
    ),
    Shape(
        "fim",
        ("/v1/fim/completions",),
        "Fill the gap between prompt and suffix, as Mercury and Mistral do.",
        FimRequest,
        ChatExchange.fim,
        "openai",
        (ChatReply,),
        (ChatChunk,),
    ),
    Shape(
        "edit",
        ("/v1/edit/completions",),
        "Write at the cursor of the code to edit, as Mercury does; the answer is that code, fenced, or `None`.",
        mercury.ChatRequest,
        mercury.edit,
        "openai",
        (ChatReply,),
        (ChatChunk,),
    ),
    Shape(
        "apply",
        ("/v1/apply/completions",),
        "Merge an update into the original code, as Mercury does.",
        mercury.ChatRequest,
        mercury.applied,
        "openai",
        (ChatReply,),
        (ChatChunk,),
    ),
    Shape(
        "chat",
        ("/v1/chat/completions",),
        "Answer a chat with the model's own chat template. A next edit, an update to apply or a prompt with FIM "
        "sentinels as the last message is answered as the other endpoints do.",
        mercury.ChatRequest,
        mercury.chat,
        "openai",
        (ChatReply,),
        (ChatChunk,),
    ),
)
