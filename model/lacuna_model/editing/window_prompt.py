"""The prompt in which a model rewrites lines because of what was edited last: the format of Sweep's next-edit models.

Each file is a section. The last changes come first (``F.diff``, with the old and the new lines), then the lines as they
were before the last change (``original/F``) and as they are (``current/F``); the model writes ``updated/F``. The format
is published with Sweep's open weights (blog.sweep.dev/posts/oss-next-edit); its section marks are those in which
Qwen2.5-Coder has learned repositories.
"""

from pathlib import PurePath

from lacuna_model.backends.readers import Loaded
from lacuna_model.core.context import Answering, Gap, Layout
from lacuna_model.core.errors import RequestError
from lacuna_model.core.params import InfillRequest, Region
from lacuna_model.editing.part import MAX_TOKENS, EditedPart
from lacuna_model.fim.loading import LoadedFim
from lacuna_model.next_edit.blocks import as_it_was

# Lines above the part that the model reads.
LINES_BEFORE = 10


def window_layout(model: Loaded, part: EditedPart, text: bytes, region: Region, request: InfillRequest) -> Layout:
    """The layout in which the model rewrites ``part``, which is now the ``region`` of ``text``.

    The part's text is the draft. Snippets whose path ends in ``.diff`` are the last changes, the last one last. Raises
    RequestError where the part is too long, and for models without tokens that separate files.
    """
    separator = model.fim.file_sep if isinstance(model, LoadedFim) else None
    if separator is None:
        raise RequestError(f"the model {model.name} has no token that separates files, so it rewrites nothing")
    encode = model.tokenizer.encode
    due = part.indentation[-1:]
    old = encode(part.old[max(len(part.indentation) - 1, 0) :])
    if len(old) > MAX_TOKENS:
        raise RequestError(f"the region has {len(old):,} tokens; at most {MAX_TOKENS:,} are rewritten at once")
    name = PurePath(request.path).name or "file"
    above = text[: region.start - len(part.indentation.encode())].decode().replace("\r\n", "\n")
    before = "".join(above.splitlines(keepends=True)[-LINES_BEFORE:])
    current = before + part.old
    sections = [(snippet.path, snippet.text) for snippet in request.snippets]
    sections += [(f"original/{name}", as_it_was(current, name, request.snippets)), (f"current/{name}", current)]
    prompt = [*model.fim.start] if isinstance(model, LoadedFim) else []
    for title, content in sections:
        prompt += [separator, *encode(f"{title}\n{content.rstrip()}\n")]
    prompt += [separator, *encode(f"updated/{name}\n"), *encode(before + part.indentation[:-1])]
    return Layout(
        (), (tuple(prompt[:-1]), ()), (Gap(0, due.encode()),), (tuple(old),), Answering(prompt[-1], as_old=True)
    )
