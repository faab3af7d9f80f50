"""Decides which text stands for the content of a message, or of a tool's result.

A picture, a file or a recording is named by its kind and its contents: `[image sha256:0f343b0931126a20]`, with the
first 16 hex digits of the hash of its decoded bytes. So the same picture has the same name in every format, and
different pictures have different names. One that is only referred to is named by its URL or its id:
`[image https://example.com/a.png]`.

The sources of the rules are the references of the providers' APIs (OpenAI, Anthropic, Amazon Bedrock, Gemini), the
content blocks of `langchain_core` 1.x, the types of `mcp` 2.x, the conventions of OpenTelemetry and of OpenInference,
and the Claude CLI 2.1.330.
"""

from __future__ import annotations

import json
import re
from binascii import a2b_base64
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias, TypeGuard
from urllib.parse import unquote_to_bytes

from ..types import JSON
from ..util.text import cut_with_hash
from . import MAX_COPIED, get, plain

Part: TypeAlias = Any
"""A text, or a part of a content: `{"type": ..., ...}`, or an object of a framework with these fields."""

TEXTS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("input_text", "output_text", "summary_text", "reasoning_text"), ("text",)),
    "text": ("text", "content"),
    "refusal": ("refusal",),
    "search_result": ("content",),
}
"""Fields that hold the text of a part, by its `type`. Such a field may hold parts again."""
KINDS: Mapping[str, str] = {
    **dict.fromkeys(("image", "image_url", "image_file", "input_image", "computer_screenshot"), "image"),
    **dict.fromkeys(("audio", "input_audio"), "audio"),
    **dict.fromkeys(("video", "video_url", "input_video"), "video"),
    **dict.fromkeys(("document", "pdf"), "document"),
    **dict.fromkeys(("file", "input_file", "text-plain", "media", "resource", "resource_link", "blob", "uri"), "file"),
}
"""The kind of a part, by its `type`; one that its media type names takes precedence."""
UNTYPED: Mapping[str, str] = {
    **{kind: kind for kind in ("image", "audio", "video", "document")},
    **dict.fromkeys(("inline_data", "inlineData"), "file"),
}
"""The same for parts without a type, by their only field (Bedrock, Gemini)."""
MEDIA = ("image", "audio", "video")
"""Kinds with which media types begin."""
DATA = ("data", "base64", "blob", "bytes", "file_data", "content")
REFERENCES = ("url", "image_url", "video_url", "file_url", "image", "source", "uri", "path", "file_id")
MEDIA_TYPES = ("mime_type", "mimeType", "mediaType", "media_type")
HOLDERS = (
    "source",
    "file",
    "image_file",
    "image",
    "image_url",
    "audio",
    "input_audio",
    "video",
    "video_url",
    "resource",
)
"""Fields with the contents of a part, with a reference to them, with their media type, and with an object that has any
of these."""
KNOWN = frozenset(
    {*DATA, *REFERENCES, *MEDIA_TYPES, *HOLDERS} - {"content", "path"}
    | set("type id text source_type detail format modality filename file_name name title context citations".split())
    | set("description size index extras metadata annotations cache_control icons meta _meta".split())
)
"""The fields that parts have. An object with any other is no part, but a value, such as an entry of a directory."""
OWN: Mapping[str, frozenset[str]] = {"blob": frozenset({"content"})}
"""Fields that only one type of part has (OpenTelemetry)."""
LEVELS = 3
"""The most nested objects that are searched for the contents of a part."""
STRUCTURED = ("structuredContent", "structured_content")
BESIDE_RESULT = frozenset({"isError", "is_error", "resultType", "result_type", "_meta", "meta"})
"""Fields of a result of the Model Context Protocol beside its `content`."""
HASH_CHARS = 16
REFERENCE_BYTES = 200
"""The most bytes of a reference that a name shows; of a longer one, the start and a hash."""
_data_url = re.compile(r"data:([\w.+/-]*)((?:;[^,;]{0,100}){0,8}),", re.IGNORECASE)


# --- contents


def text_of(content: object) -> str:
    """Return the text of a message's content: that of its parts, separated by line breaks.

    Parts that are neither text nor a picture or file, such as calls and reasoning, have none.
    """
    return "\n".join(texts_of(content))


def texts_of(content: object) -> Iterator[str]:
    """Yield the texts that `text_of` joins."""
    return filter(None, map(part_text, content if _is_list(content) else (content,)))


def output_of(output: object) -> str:
    """Return the text of a tool's result: that of its parts, separated by line breaks, and the JSON of anything else.

    A result of the Model Context Protocol is read by its content, and by its structured content if no text repeats it.
    """
    if output is None or isinstance(output, str):
        return output or ""
    if _is_mcp_result(output):
        return _result_text(output)
    if not _is_list(output):
        return _text_or_json(output)
    parts = output if any(_is_part(part) for part in output) else [output] if output else []
    return "\n".join(filter(None, map(_text_or_json, parts)))


def is_content(value: object) -> bool:
    """Return True for a part, for a list of parts that are not all texts, and for a result as MCP defines it."""
    if isinstance(value, str):
        return False
    if _is_list(value):
        return all(map(_is_part, value)) and not all(isinstance(part, str) for part in value)
    return _is_mcp_result(value) or _is_part(value)


def json_of(value: object, separators: tuple[str, str] = (", ", ": ")) -> str:
    """Return the JSON of a value, with the names of the pictures and files in it."""
    return json.dumps(_with_names(value, MAX_COPIED), ensure_ascii=False, default=str, separators=separators)


def _with_names(value: Any, levels: int) -> Any:
    if isinstance(value, str):
        head = _data_url.match(value) if value.startswith("data:") else None
        return _File(kind="file", contents=value).name if head and head.group(2).endswith(";base64") else value
    if levels == 0:
        return value
    if isinstance(value, (list, tuple)):
        return [_with_names(item, levels - 1) for item in value]
    if isinstance(read := _read(value), _File):
        return read.name
    if isinstance(value, Mapping):
        return {str(key): _with_names(item, levels - 1) for key, item in value.items()}
    return _with_names(plain(value), levels - 1) if hasattr(value, "model_dump") else value


def _text_or_json(part: Part) -> str:
    text = part_text(part)
    return json_of(part) if text is None else text


def _is_list(value: object) -> TypeGuard[Sequence[Part]]:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray))


# --- results of the Model Context Protocol


def _is_mcp_result(value: object) -> bool:
    """Return True for a `CallToolResult`, an object or its JSON. A mapping with other fields is a value."""
    content = get(value, "content")
    if not isinstance(value, Mapping):
        return _is_list(content) and any(hasattr(value, name) for name in STRUCTURED)
    if value.keys() - BESIDE_RESULT == {"content"}:
        return _is_list(content) and all(map(_is_part, content))
    others = value.keys() - BESIDE_RESULT - {"content"}
    return bool(others) and others <= {*STRUCTURED} and (content is None or _is_list(content))


def _result_text(result: object) -> str:
    texts = [_text_or_json(part) for part in get(result, "content") or ()]
    structured = next((held for name in STRUCTURED if (held := get(result, name)) not in (None, {}, [])), None)
    if structured is not None and not _repeats(texts, structured):
        texts.append(json_of(structured, (",", ":")))
    return "\n".join(filter(None, texts))


def _repeats(texts: list[str], structured: JSON) -> bool:
    """Return True if a text, or all of them together, have the value of the structured content.

    Servers send its JSON, too. Many wrap a value that is no object as `{"result": ...}`, and send each item of a list
    as a text of its own.
    """
    values = [structured]
    if isinstance(structured, Mapping) and structured.keys() == {"result"}:
        values.append(structured["result"])
    read = list(map(_parsed, texts))
    return any(value in (texts, read, *texts, *read) for value in values)


def _parsed(text: str) -> JSON:
    with suppress(ValueError, RecursionError):
        value: JSON = json.loads(text)
        return value
    return text


# --- parts


def part_text(part: Part) -> str | None:
    """Return the text of a part, or the name of its picture or file; None for a part that has neither."""
    read = _read(part)
    return read.name if isinstance(read, _File) else read


def _is_part(part: Part) -> bool:
    return _read(part) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A picture, a file or a recording: its contents, encoded or not, or a reference. A record may lack both."""

    kind: str
    media_type: str = ""
    contents: str | bytes | None = None
    reference: str = ""

    @property
    def name(self) -> str:
        if self.contents is None and not self.reference.startswith("data:"):
            kind = _kind(self.kind, self.media_type, is_pdf=self.reference.lower().endswith(".pdf"))
            return f"[{kind} {cut_with_hash(self.reference, REFERENCE_BYTES)}]" if self.reference else f"[{kind}]"
        media_type, contents = _decoded(self.reference if self.contents is None else self.contents)
        kind = _kind(self.kind, self.media_type or media_type, is_pdf=contents.startswith(b"%PDF-"))
        return f"[{kind} sha256:{sha256(contents).hexdigest()[:HASH_CHARS]}]"


def _kind(kind: str, media_type: str, *, is_pdf: bool) -> str:
    """Return the kind that the contents show, so that it is the same in a format that calls everything a file."""
    major, _, minor = media_type.lower().partition("/")
    if major in MEDIA:
        return major
    return "document" if kind == "file" and (is_pdf or minor == "pdf") else kind


def _decoded(contents: str | bytes) -> tuple[str, bytes]:
    """Return the media type of a `data:` URL, else "", and the bytes; those of the text itself if it is malformed."""
    if isinstance(contents, bytes):
        return "", contents
    media_type, data = "", contents
    if (head := _data_url.match(contents)) is not None:
        media_type, data = head.group(1), contents[head.end() :]
        if not head.group(2).lower().endswith(";base64"):
            return media_type, unquote_to_bytes(data)
    if "-" in data or "_" in data:
        data = data.replace("-", "+").replace("_", "/")
    with suppress(ValueError):  # not base64, or not ASCII
        if decoded := a2b_base64(data + "=="):  # more padding than needed is ignored
            return media_type, decoded
    return media_type, data.encode("utf-8", "surrogatepass")


def _read(part: Part) -> str | _File | None:
    """Return the text of a part, or its picture or file; None for a part that has neither."""
    if isinstance(part, str):
        return part
    if isinstance(part, (bytes, bytearray)):
        return _File(kind="file", contents=bytes(part))
    kind = get(part, "type")
    if not isinstance(kind, str):
        return _untyped(part) if kind is None and isinstance(part, Mapping) and len(part) == 1 else None
    for field in TEXTS.get(kind, ()):
        if isinstance(text := get(part, field), str) or (text and _is_list(text)):
            return text_of(text)
    if kind not in KINDS or (isinstance(part, Mapping) and part.keys() - KNOWN - OWN.get(kind, frozenset())):
        return None
    return _text_within(part) or _file(KINDS[kind], part)


def _untyped(part: Mapping[str, Any]) -> str | _File | None:
    ((field, held),) = part.items()
    if field == "text" and isinstance(held, str):
        return held
    has_contents = isinstance(held, Mapping) and ("source" in held or "data" in held)
    return _file(UNTYPED[field], held) if field in UNTYPED and has_contents else None


def _text_within(part: Part) -> str | None:
    """Return the text of a file, a document or a resource that holds one; None for any other."""
    source = get(part, "source")
    if get(source, "type") in ("text", "content"):
        return text_of(get(source, "data") or get(source, "content"))
    text = get(part, "text") or get(get(part, "resource"), "text")
    return text if isinstance(text, str) else None


def _file(kind: str, part: Part) -> _File | None:
    """Return the picture or file of a part; None for a part without a field for its contents or for a reference."""
    found = dict(_fields(part, LEVELS))
    media_type = next((found[name] for name in MEDIA_TYPES if name in found), "")
    kind = modality if (modality := get(part, "modality")) in MEDIA else kind
    contents = next((found[name] for name in DATA if name in found), None)
    reference = next((found[name] for name in REFERENCES if name in found), None)
    if reference is None and get(part, "source_type") == "id":
        reference = get(part, "id")
    if contents is None and reference is None and all(get(part, name) is None for name in HOLDERS):
        return None
    return _File(kind=kind, media_type=str(media_type), contents=contents, reference=str(reference or ""))


def _fields(part: Part, levels: int) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a part with contents, references and media types; those of the part itself last."""
    if levels > 1:
        for name in HOLDERS:
            held = get(part, name)
            if held is not None and not isinstance(held, (str, bytes)):
                yield from _fields(held, levels - 1)
    for name in (*DATA, *REFERENCES, *MEDIA_TYPES):
        if isinstance(value := get(part, name), (str, bytes)) and value:
            yield name, value
