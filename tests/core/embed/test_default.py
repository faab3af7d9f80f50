"""Which embedder is used by default, what is said where it is not the model, and what the names cost to import."""

from __future__ import annotations

from pathlib import Path

import pytest

from reasonblocks.backends import embed
from reasonblocks.backends.embed import HashEmbedder, StaticEmbedder, _static, default, default_embedder
from reasonblocks.backends.embed.default import embedder_line
from tests.core.world import printed


@pytest.fixture
def no_data(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_static, "_loaded", [])
    monkeypatch.setattr(_static, "DATA", tmp_path)
    monkeypatch.setattr(default, "_said", set())


def test_the_default_is_the_shipped_model_and_the_line_names_it() -> None:
    assert isinstance(default_embedder(), StaticEmbedder)
    assert embedder_line() == "potion-base-8M-centred-int8-v1"


@pytest.mark.usefixtures("no_data")
def test_without_data_the_default_is_hashing_and_one_warning_says_what_that_costs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert [type(default_embedder()) for _ in range(2)] == [HashEmbedder] * 2
    [record] = caplog.records
    assert "vocabulary.txt cannot be read" in record.getMessage()
    assert "found by shared wording only" in record.getMessage()


@pytest.mark.usefixtures("no_data")
def test_the_line_says_what_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    assert embedder_line().startswith("hash-512-v1 (StaticEmbedder is unavailable: ")
    assert caplog.records == []


WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None
from reasonblocks.backends.embed.default import embedder_line
print(embedder_line())
"""


def test_without_numpy_the_line_says_how_to_install_it() -> None:
    assert "hash-512-v1 (numpy is missing (pip install numpy)" in printed(WITHOUT_NUMPY)


@pytest.mark.parametrize(
    "code", ["import reasonblocks", "from reasonblocks.backends import embed", "from reasonblocks import HashEmbedder"]
)
def test_the_names_bring_no_library(code: str) -> None:
    assert printed(f"{code}\nimport sys\nprint({{'numpy', 'httpx', 'qdrant_client'}} & set(sys.modules))") == "set()\n"


def test_another_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = embed.Nothing
