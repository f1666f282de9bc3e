"""Every setting of an editor and of the service, with its meaning, and the checks that make a service safe to reach."""

import ipaddress
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import parse_qs

import msgspec
from msgspec import Meta

from lacuna_model.core.errors import LacunaError
from lacuna_model.hub.models import DEFAULT_MODEL

DEFAULT_PORT = 8377
Dial = Literal["quiet", "normal", "bold"]
SuggestIn = Literal["everywhere", "no_comments", "code"]


def meaning(description: str) -> Meta:
    """Returns what a key is for, as it is shown to the user."""
    return Meta(description=description)


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
    Annotated[int, Meta(ge=0, le=65535)] | None,
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


Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[float, Meta(ge=0)]


class ConfigError(LacunaError):
    """The configuration cannot be used; the message names the key."""


class ServerConfig(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Every setting of the service. Times are in seconds, sizes in bytes of UTF-8."""

    host: Annotated[str, meaning("address to listen on; an address beyond loopback needs a token")] = "127.0.0.1"
    port: PortKey = None
    token: Annotated[str, meaning("every client has to send it; empty: none is needed")] = ""
    allowed_hosts: Annotated[tuple[str, ...], meaning("names under which clients may reach the service")] = ()
    allowed_origins: Annotated[tuple[str, ...], meaning("origins of web pages that may use the service")] = ()
    cert: Annotated[str, meaning("TLS certificate, a PEM file")] = ""
    key: Annotated[str, meaning("TLS key, a PEM file")] = ""

    model: ModelKey = DEFAULT_MODEL
    threads: ThreadsKey = 0
    device: DeviceKey = ""
    draft_model: Annotated[
        str,
        meaning(
            "a smaller model of the same tokens, which drafts for the model: a name, a GGUF file or a folder; `auto`: "
            "the 0.5B where it is on this machine and has less than half of the weights; `none`"
        ),
    ] = "auto"
    backend: Annotated[
        Literal["auto", "own", "llama"],
        meaning(
            "what reads a GGUF file: Lacuna's `own` layers, or `llama`: libllama, llama.cpp's library; `auto`: "
            "libllama for what the own layers do not read"
        ),
    ] = "auto"
    libllama: Annotated[
        str, meaning("file of a libllama in place of the package's, of the same version: one compiled for a GPU")
    ] = ""
    window: Annotated[
        int,
        Meta(
            ge=0,
            le=24576,
            description="tokens of context that a fill reads: the text around the gap, and snippets of other files; a "
            "longer one takes as much longer to read; at most three quarters of the model's positions, which are up "
            "to 16,384 on a CPU and 32,768 on a GPU; 0: 1,408",
        ),
    ] = 0
    keys_and_values: Annotated[
        Literal["auto", "8bit"],
        meaning(
            "how the keys and values of contexts are kept: `8bit`: in half the memory, which needs a CUDA GPU with "
            "Triton; `auto`: in 16 bit, or in 32 where a CPU multiplies no bfloat16"
        ),
    ] = "auto"
    engine: Annotated[
        str, meaning("function that the model process calls to load the engine, as `module:function`")
    ] = "lacuna_server.worker.main:load_engine"
    cache_bytes: Annotated[Positive, meaning("limit of the engine's cache of documents")] = 256 * 1024 * 1024

    max_active: Annotated[Positive, meaning("requests that are filled at the same time, in turns of one step")] = 2
    max_queued: Annotated[Positive, meaning("requests that may wait")] = 64
    max_queued_per_session: Annotated[Positive, meaning("requests of one session that may wait")] = 16
    worker_timeout_s: Annotated[
        NotNegative, meaning("a model process that has work and sends nothing for so long is started anew; 0: never")
    ] = 120.0
    load_timeout_s: Annotated[NotNegative, meaning("the same while it loads the model")] = 600.0

    max_message_bytes: Annotated[Positive, meaning("largest message of a client")] = 16 * 1024 * 1024
    max_document_bytes: Annotated[Positive, meaning("largest document")] = 2 * 1024 * 1024
    max_documents: Annotated[Positive, meaning("open documents of one session")] = 256
    max_regions: Annotated[Positive, meaning("gaps of one request")] = 256
    max_sessions: Annotated[
        Positive, meaning("sessions at the same time; an eighth of them is for clients that send the token")
    ] = 1024
    max_held_bytes: Annotated[
        Positive, meaning("memory that all clients together can occupy: documents, messages and texts of requests")
    ] = 512 * 1024 * 1024
    ping_interval_s: Annotated[NotNegative, meaning("time between two pings to a client")] = 20.0
    ping_timeout_s: Annotated[NotNegative, meaning("time in which a client has to answer a ping")] = 20.0
    send_timeout_s: Annotated[NotNegative, meaning("time in which a client has to read an answer")] = 30.0
    head_timeout_s: Annotated[
        NotNegative, meaning("time in which a request's headers, or a websocket's greeting, have to arrive; 0: any")
    ] = 10.0
    body_timeout_s: Annotated[
        NotNegative, meaning("time in which the body of an HTTP request has to arrive; 0: any")
    ] = 30.0

    idle_exit_s: Annotated[
        NotNegative, meaning("the service ends after this long without use; 0: never; 1800 where a client starts it")
    ] = 0.0
    shutdown_grace_s: Annotated[NotNegative, meaning("time for running requests when the service ends")] = 5.0
    log_code: Annotated[bool, meaning("allow code from documents in the log's tracebacks")] = False
    log_file: Annotated[str, meaning("file of the log, which is rotated when it is long; empty: stderr")] = ""

    @property
    def of_engine(self) -> dict[str, Any]:
        """What ``Engine.load`` is told beside the model."""
        names = ("threads", "device", "draft_model", "backend", "libllama", "window", "keys_and_values", "cache_bytes")
        return {name: getattr(self, name) for name in names}


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Raise ConfigError with one line where a file cannot be read, or says nothing that can be understood."""
    try:
        yield
    except ValueError as error:  # no TOML, no UTF-8, or a number of more digits than Python reads
        raise ConfigError(f"{file}: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ConfigError(f"{file}: it is nested too deeply") from None
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror or error}") from None


def read_toml(file: Path) -> dict[str, Any]:
    """Return the tables of a TOML file. Raises ConfigError with one line where it cannot be read."""
    with reading(file):
        tables = tomllib.loads(file.read_text("utf-8-sig"))
    return tables


def check_private(file: Path) -> None:
    """Raise ConfigError where its group or others can read a file or write to it, or where there is none."""
    with reading(file):
        mode = file.stat().st_mode
    if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH):
        raise ConfigError(f"{file}: others can read it or write to it; run: chmod go-rwx {file}")


def token_in(file: Path) -> str:
    """Return the token in a file that others cannot read, without the spaces around it.

    Raises ConfigError where they can, and where the token is not printable ASCII.
    """
    check_private(file)
    with reading(file):
        found = file.read_text("utf-8-sig", errors="replace").strip()
    if not found or not found.isascii() or not found.isprintable():
        raise ConfigError(f"{file}: the token must be one line of printable ASCII")
    return found


def sent_token(headers: Mapping[str, str], query: bytes) -> bytes:
    """Return the token that a request sends, b"" for none.

    A page cannot set headers for a websocket, so ``?token=`` is accepted too.
    """
    kind, _, given = headers.get("authorization", "").partition(" ")
    if kind.lower() != "bearer":
        given = parse_qs(query.decode("latin-1")).get("token", [""])[0]
    return given.strip().encode("utf-8", "surrogateescape")


def check_config(config: ServerConfig) -> None:
    """Check a configuration.

    Raises ConfigError where other machines could use the service without a token, or where TLS cannot be set up.
    """
    if not is_loopback(config.host) and not config.token:
        raise ConfigError(f"listening on {config.host} needs a token, because others can reach it: use --token-file")
    check_tls(config)


def check_tls(config: ServerConfig) -> None:
    """Check the TLS files. Raises ConfigError where they cannot be used."""
    if bool(config.cert) != bool(config.key):
        raise ConfigError("TLS needs both: --cert and --key")
    if config.cert:
        import ssl

        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(config.cert, config.key)
        except OSError as error:  # the base class of SSLError
            reason = error.strerror or error
            raise ConfigError(f"TLS with {config.cert} and {config.key} cannot be had: {reason}") from None


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host: a loopback address or ``localhost``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
