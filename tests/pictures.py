"""Pictures and files as tools return them, with their texts: the tests of all adapters and readers use this table.

The names are computed here from the bytes alone.
"""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, TypeAlias

__all__ = ["CONTENTS", "OTHER", "PDF", "PNG", "RESULTS", "data", "forms", "name", "url"]

Content: TypeAlias = Any
PNG, OTHER = b"\x89PNG\r\n\x1a\none \xfb\xef\xbe", b"\x89PNG\r\n\x1a\nother \xfb\xef\xbe"
"""Two screenshots. Their base64 differs in the alphabet for URLs."""
PDF = b"%PDF-1.7\none page"


def data(contents: bytes) -> str:
    return b64encode(contents).decode()


def url(contents: bytes, media_type: str = "image/png") -> str:
    return f"data:{media_type};base64,{data(contents)}"


def name(contents: bytes, kind: str = "image") -> str:
    return f"[{kind} sha256:{sha256(contents).hexdigest()[:16]}]"


def forms(picture: bytes) -> Mapping[str, Content]:
    """The same picture as a part of every format."""
    encoded, link = data(picture), url(picture)
    return {
        "anthropic": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": encoded}},
        "bedrock": {"image": {"format": "png", "source": {"bytes": picture}}},
        "chat": {"type": "image_url", "image_url": {"url": link, "detail": "low"}},
        "chat, file": {"type": "file", "file": {"file_data": link, "filename": "a.png"}},
        "claude, read": {"type": "image", "file": {"base64": encoded, "type": "image/png", "originalSize": 9}},
        "gemini": {"inlineData": {"mimeType": "image/png", "data": encoded}},
        "langchain 0.3": {"type": "image", "source_type": "base64", "data": encoded, "mime_type": "image/png"},
        "langchain 1": {"type": "image", "id": "lc_1", "base64": encoded, "mime_type": "image/png", "extras": {}},
        "langchain 1, file": {"type": "file", "base64": encoded, "mime_type": "image/png"},
        "langchain, google": {"type": "media", "data": encoded, "mime_type": "image/png"},
        "mcp": {"type": "image", "data": encoded, "mimeType": "image/png", "annotations": None},
        "mcp, resource": {"type": "resource", "resource": {"uri": "a://b", "mimeType": "image/png", "blob": encoded}},
        "openai": {"type": "input_image", "detail": "auto", "file_id": None, "image_url": link},
        "openai, computer": {"type": "computer_screenshot", "image_url": link},
        "openai, tool": {"type": "image", "image_url": link, "detail": "high"},
        "openinference": {"type": "image", "image": {"image": {"url": link}}},
        "opentelemetry": {"type": "blob", "modality": "image", "mime_type": "image/png", "content": encoded},
        "without padding": {"type": "image", "data": encoded.rstrip("=")},
        "in lines": {"type": "image", "data": f"{encoded[:9]}\n{encoded[9:]}\n"},
        "for urls": {"type": "image", "data": urlsafe_b64encode(picture).decode()},
    }


def _text(text: str) -> Content:
    return {"type": "text", "text": text}


CONTENTS: Mapping[str, tuple[Content, str]] = {
    **{form: ([part], name(PNG)) for form, part in forms(PNG).items()},
    "texts and pictures, in order": (
        [_text("Before."), forms(PNG)["anthropic"], "Between.", forms(OTHER)["mcp"], _text("After.")],
        f"Before.\n{name(PNG)}\nBetween.\n{name(OTHER)}\nAfter.",
    ),
    "a file in base64": ([{"type": "input_file", "filename": "a.zip", "file_data": data(b"PK")}], name(b"PK", "file")),
    "a document": (
        [{"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": data(PDF)}}],
        name(PDF, "document"),
    ),
    "a document that is called a file": ([{"type": "input_file", "file_data": data(PDF)}], name(PDF, "document")),
    "a document by its media type": (
        [{"type": "file", "base64": data(b"?"), "mime_type": "application/pdf"}],
        name(b"?", "document"),
    ),
    "a document that is a text": (
        [{"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "Chapter 1"}}],
        "Chapter 1",
    ),
    "a document of parts": (
        [{"type": "document", "source": {"type": "content", "content": [_text("a"), "b"]}}],
        "a\nb",
    ),
    "a resource that is a text": ([{"type": "resource", "resource": {"uri": "a://b", "text": "One."}}], "One."),
    "a resource by its link": ([{"type": "resource_link", "uri": "file:///a.txt", "name": "a"}], "[file file:///a.txt]"),
    "a search result": ([{"type": "search_result", "source": "s", "title": "t", "content": [_text("found")]}], "found"),
    "a recording": ([{"type": "input_audio", "input_audio": {"data": data(b"RIFF"), "format": "wav"}}],
                    name(b"RIFF", "audio")),
    "a recording of mcp": ([{"type": "audio", "data": data(b"RIFF"), "mimeType": "audio/wav"}], name(b"RIFF", "audio")),
    "a video": ([{"type": "video", "base64": data(b"ftyp"), "mime_type": "video/mp4"}], name(b"ftyp", "video")),
    "by an address": ([{"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}], "[image https://a.b/c.png]"),
    "by an address, anthropic": (
        [{"type": "image", "source": {"type": "url", "url": "https://a.b/c.png"}}],
        "[image https://a.b/c.png]",
    ),
    "by an id": ([{"type": "input_image", "file_id": "file-1", "image_url": None}], "[image file-1]"),
    "by an id, anthropic": ([{"type": "image", "source": {"type": "file", "file_id": "file-1"}}], "[image file-1]"),
    "by an id, langchain 0.3": ([{"type": "image", "source_type": "id", "id": "file-1"}], "[image file-1]"),
    "by an id, opentelemetry": ([{"type": "file", "modality": "image", "file_id": "file-1"}], "[image file-1]"),
    "by a path": ([{"type": "image", "source": {"media_type": "image/png", "path": "a/b.png"}}], "[image a/b.png]"),
    "left out of the record": ([_text("Here:"), {"type": "image", "source": {}}], "Here:\n[image]"),
}  # fmt: skip
"""Contents of a tool's result or of a user's message, and their texts."""

RESULTS: Mapping[str, tuple[Content, str]] = {
    **CONTENTS,
    **{f"{form}, alone": (part, name(PNG)) for form, part in forms(PNG).items()},
    "mcp, whole": ({"content": [_text("Here."), forms(PNG)["mcp"]], "isError": False}, f"Here.\n{name(PNG)}"),
    "structured": ({"content": [], "structuredContent": {"rows": [1, "é"]}}, '{"rows":[1,"é"]}'),
    "structured, in python": ({"content": [], "structured_content": {"rows": []}, "is_error": False}, '{"rows":[]}'),
    "structured, beside other text": (
        {"content": [_text("2 rows")], "structuredContent": {"rows": [1, 2]}},
        '2 rows\n{"rows":[1,2]}',
    ),
    "structured, said in a text": (
        {"content": [_text('{ "rows": [1] }')], "structuredContent": {"rows": [1]}},
        '{ "rows": [1] }',
    ),
    "structured, a wrapped text": ({"content": [_text("5")], "structuredContent": {"result": "5"}}, "5"),
    "structured, a wrapped number": ({"content": [_text("5")], "structuredContent": {"result": 5}}, "5"),
    "structured, a wrapped list": (
        {"content": [_text("a"), _text("b")], "structuredContent": {"result": ["a", "b"]}},
        "a\nb",
    ),
    "structured, beside a picture": (
        {"content": [forms(PNG)["mcp"]], "structuredContent": {"width": 9}},
        f'{name(PNG)}\n{{"width":9}}',
    ),
    "nothing": ({"content": []}, ""),
    "a value": ({"rows": [1]}, '{"rows": [1]}'),
    "a value with a picture": ({"at": 1, "seen": forms(PNG)["mcp"]}, f'{{"at": 1, "seen": "{name(PNG)}"}}'),
    "a value with a data url": ({"stdout": url(PNG), "isImage": True}, f'{{"stdout": "{name(PNG)}", "isImage": true}}'),
    "a list of values": ([{"id": 1}, {"id": 2}], '[{"id": 1}, {"id": 2}]'),
    "a part of another kind": ([_text("a"), {"type": "tool_reference", "tool_name": "b"}],
                               'a\n{"type": "tool_reference", "tool_name": "b"}'),
    "an entry of a directory": (
        [{"type": "file", "name": "a.py", "path": "src/a.py", "size": 9, "url": "https://a.b/a.py"}],
        '[{"type": "file", "name": "a.py", "path": "src/a.py", "size": 9, "url": "https://a.b/a.py"}]',
    ),
    "a file without contents": ({"type": "file", "name": "a.py"}, '{"type": "file", "name": "a.py"}'),
}  # fmt: skip
"""Values that a tool may return, and their texts."""
