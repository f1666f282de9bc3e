"""The settings of a user: the keys that ``lacuna.toml`` and the editors share, each with its default and meaning."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

DEFAULT_PORT = 8377
Dial = Literal["quiet", "normal", "bold"]
SuggestIn = Literal["everywhere", "no_comments", "code"]


def meaning(description: str) -> Meta:
    """Returns what a key is for, as it is shown to the user."""
    return Meta(description=description)


Port = Annotated[int, Meta(ge=0, le=65535)]
# The service has these four, too.
ModelKey = Annotated[
    str,
    meaning(
        "a name from `lacuna models list`, a GGUF file or a folder with safetensors; a project may only name one; "
        "empty: the 1.5B, the 0.5B on a small machine or GPU, the 7B on a large GPU"
    ),
]
ThreadsKey = Annotated[int, Meta(ge=0, le=256, description="CPU threads of the engine; 0: one per core, at most 8")]
DeviceKey = Annotated[
    str,
    Meta(
        pattern=r"^(|cpu|cuda(:\d+)?|mps)$",
        title="cpu, cuda, cuda:N, mps or empty",
        description="`cpu`, `cuda`, `cuda:N` or `mps`; empty: a CUDA GPU if there is one",
    ),
]
PortKey = Annotated[
    Port | None,
    meaning(f"port of the service; 0: any free port; unset: {DEFAULT_PORT}, or a free one if it is taken"),
]


class Settings(msgspec.Struct, frozen=True, rename="camel"):
    """The settings of the command line and of editors, which write the names in camel case, under ``lacuna``."""

    model: ModelKey = ""
    threads: ThreadsKey = 0
    device: DeviceKey = ""
    port: PortKey = None
    workspace: Annotated[bool, meaning("read other files of the project as context")] = True
    max_tokens: Annotated[int, Meta(ge=1, le=512, description="maximum length of a fill, in tokens")] = 96
    max_lines: Annotated[int, Meta(ge=1, le=100, description="maximum length of a suggestion, in lines")] = 12
    enabled: Annotated[bool, meaning("show suggestions")] = True
    automatic: Annotated[bool, meaning("show suggestions while typing, not only on request")] = True
    next_edit: Annotated[bool, meaning("after a change, offer the next place that would follow it")] = True
    multiline: Annotated[
        Literal["auto", "always", "never"],
        meaning("allow suggestions of several lines: where a block begins, always or never"),
    ] = "auto"
    suggest: Annotated[
        Dial, meaning("how much is shown without a request: only what is likely, what is probable, or more and longer")
    ] = "normal"
    suggest_in: Annotated[
        SuggestIn,
        meaning("where suggestions are shown without a request; `code`: neither in comments nor in strings"),
    ] = "everywhere"
    min_confidence: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        meaning("in place of `suggest`: the least probability that what is shown is right; 0: show all"),
    ] = None
    candidates: Annotated[int, Meta(ge=1, le=8, description="number of suggestions on request")] = 3
    debounce: Annotated[
        bool,
        meaning("wait for a pause in the typing before requesting a suggestion; its length follows the typing speed"),
    ] = True
    read_ahead: Annotated[
        bool, meaning("encode a file's context while the cursor rests, so that the next suggestion is faster")
    ] = True
    ask_servers: Annotated[
        bool,
        meaning(
            "ask the editor's other language servers, for 50 ms and while nothing waits for it, how the names at the "
            "cursor are used"
        ),
    ] = True
    deadline_ms: Annotated[
        int,
        Meta(
            ge=0,
            le=60_000,
            description="time limit for a suggestion in milliseconds; at the limit it ends with the text that is valid "
            "so far; 0: no limit, and every suggestion waits until the whole context is read",
        ),
    ] = 5000
    disabled_languages: Annotated[
        tuple[str, ...], meaning("LSP language ids for which nothing is suggested, such as `markdown`")
    ] = ()


def properties(struct: type[msgspec.Struct]) -> dict[str, dict[str, Any]]:
    """Returns the JSON schema of every field, by its name in Python."""
    _, parts = msgspec.json.schema_components([struct])
    found = parts[struct.__name__]["properties"]
    return {field.name: found[field.encode_name] for field in msgspec.structs.fields(struct)}
