"""The fields by which a client demands the form of an answer, as OpenAI, llama.cpp, vLLM and SGLang name them."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from lacuna_server.http.shapes.fields import FieldError

# A JSON schema, or the JSON text of one.
Schema = dict[str, Any] | bool | str
Choices = Annotated[list[str], Meta(min_length=1)]

_ANY_OBJECT = '{"type":"object"}'
_SPECIAL = frozenset(r"\.+*?()|[]{}^$")


@dataclass(frozen=True, slots=True)
class Form:
    """What every answer matches: a regular expression or a JSON schema; ``field`` demands it."""

    field: str
    regex: str = ""
    json_schema: str = ""

    @classmethod
    def of_schema(cls, field: str, schema: Schema) -> "Form":
        """Return the form that a JSON schema describes."""
        text = schema if isinstance(schema, str) else msgspec.json.encode(schema).decode()
        return cls(field, json_schema=text)

    @classmethod
    def of_choices(cls, field: str, choices: list[str]) -> "Form":
        """Return the form of an answer that is one of some texts."""
        return cls(field, regex=f"(?:{'|'.join(map(_literal, choices))})")


class NamedSchema(msgspec.Struct, frozen=True):
    """A JSON schema with the name and the description that OpenAI wants; neither counts here."""

    schema: Schema | None = None


class ResponseFormat(msgspec.Struct, frozen=True):
    """The form of an answer as OpenAI tells it; llama.cpp also takes a ``schema`` without a name."""

    type: str = "text"
    json_schema: NamedSchema | None = None
    schema: Schema | None = None

    def form(self) -> Form | None:
        """Return the form; None for text. Raises FieldError for one that is not known."""
        field = "response_format"
        schema = self.schema if self.json_schema is None or self.json_schema.schema is None else self.json_schema.schema
        match self.type:
            case "text":
                return None
            case "json_object":
                return Form.of_schema(field, _ANY_OBJECT if schema is None else schema)
            case "json_schema":
                if schema is None:
                    raise FieldError(field, "json_schema.schema is missing")
                return Form.of_schema(field, schema)
        raise FieldError(field, f"{self.type[:40]!r} is none of text, json_object and json_schema")


class StructuredOutputs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The form of an answer as vLLM tells it; what is not named here demands a form that no answer has."""

    json: Schema | None = None
    json_object: bool | None = None
    regex: str | None = None
    choice: Choices | None = None


class Forms(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a body that demand a form."""

    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    json_schema: Schema | None = None
    regex: str | None = None
    guided_json: Schema | None = None
    guided_json_object: bool | None = None
    guided_regex: str | None = None
    guided_choice: Choices | None = None

    def form(self) -> Form | None:
        """Return the form that is demanded, if any. Raises FieldError where two fields demand different ones."""
        found = {(form.regex, form.json_schema): form for form in self._forms()}
        if len(found) > 1:
            first, other = list(found.values())[:2]
            raise FieldError(other.field, f"{first.field} demands another form; a request has one")
        return next(iter(found.values()), None)

    def no_form(self, why: str) -> None:
        """Raise FieldError where a form is demanded of an answer that has its own, as ``why`` says."""
        if (form := self.form()) is not None:
            raise FieldError(form.field, f"{why}; leave the field out")

    def _forms(self) -> Iterator[Form]:
        if self.response_format is not None and (form := self.response_format.form()) is not None:
            yield form
        if self.json_schema is not None:
            yield Form.of_schema("json_schema", self.json_schema)
        if self.regex:
            yield Form("regex", self.regex)
        asked = self.structured_outputs or StructuredOutputs()
        yield from _of_vllm(
            "guided_{}", self.guided_json, self.guided_json_object, self.guided_regex, self.guided_choice
        )
        yield from _of_vllm("structured_outputs.{}", asked.json, asked.json_object, asked.regex, asked.choice)


def _of_vllm(
    name: str, schema: Schema | None, any_object: bool | None, regex: str | None, choices: list[str] | None
) -> Iterator[Form]:
    if schema is not None:
        yield Form.of_schema(name.format("json"), schema)
    if any_object:
        yield Form.of_schema(name.format("json_object"), _ANY_OBJECT)
    if regex:
        yield Form(name.format("regex"), regex)
    if choices:
        yield Form.of_choices(name.format("choice"), choices)


def _literal(text: str) -> str:
    """Return a regular expression that matches a text alone."""
    return "".join(f"\\{one}" if one in _SPECIAL else one for one in text)
