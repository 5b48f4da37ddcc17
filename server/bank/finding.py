"""Search over tools and skills for a server that answers meanwhile.

Vectors are made by a thread of their own, since embedding thousands of texts takes minutes;
until they are there words alone decide, and the answer says so. A second process finds them on
disk.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from anyio import to_thread

from catalog.embeddings import Embedder, EmbeddingsUnavailable, Stopped, make_vectors
from catalog.search import EVERYTHING, EntryKind, Found, Scope, SearchIndex, tool_entries
from catalog.tools import Tool
from skills_store.retrieval import skill_entry
from skills_store.skill import Skill

__all__ = ["Finder", "Findings"]

_RETRY_SECONDS = 60.0
"""How long after vectors could not be made it is tried again, the entries being the same."""
_CLOSING_SECONDS = 10.0
"""Most that closing waits: many times what loading the model or embedding some texts takes."""
_COMPARED = "compared"
"""Folder of the vectors of texts that no search is over."""
_LOADING = "the model for meanings is being loaded"
_MAKING = "embeddings are being made"


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found, and why words alone were compared, empty when meanings were too."""

    found: Found
    note: str


class Finder:
    """The index over everything that can be called, kept up to date with what it is asked about."""

    def __init__(
        self,
        open_embedder: Callable[[], Embedder] | None = None,
        folder: Path | None = None,
        patience_seconds: float = 0.25,
        loading_seconds: float = 0.0,
    ) -> None:
        """Prepare a search; nothing is loaded before the first one.

        Args:
            open_embedder: loads what makes vectors, in a thread; None: words alone.
            folder: where vectors are kept.
            patience_seconds: how long a search waits for vectors that are being made.
            loading_seconds: how long it waits instead while the model is still being loaded, which takes
                longer than the answer by words: whoever asks first asks a process that just started.
        """
        self._open_embedder = open_embedder if folder is not None else None
        self._folder = folder or Path()
        self._patience = patience_seconds
        self._loading = loading_seconds
        self._lock = threading.Lock()
        self._index = SearchIndex()
        self._known: tuple[tuple[Tool, ...], tuple[Skill, ...]] = ((), ())
        self._embedder: Embedder | None = None
        self._note = "" if self._open_embedder else "no model for embeddings is configured"
        self._settled = threading.Event()
        self._closed = threading.Event()
        self._maker: threading.Thread | None = None
        self._started = -_RETRY_SECONDS
        """Monotonic seconds at which the making of vectors began last."""

    @property
    def note(self) -> str:
        """Why words alone are compared now, empty when meanings are too."""
        return self._note

    async def find(
        self,
        query: str,
        limit: int,
        tools: Sequence[Tool],
        skills: Sequence[Skill],
        kind: EntryKind | None = None,
        scope: Scope = EVERYTHING,
    ) -> Findings:
        """Return what fits a query best among these tools and skills."""
        is_patient = await self._kept_up(tools, skills)
        findings = await to_thread.run_sync(partial(self._find, query, limit, kind, scope))
        if not is_patient:
            self._begin()
        return findings

    async def meanings(
        self, query: str, limit: int, tools: Sequence[Tool], skills: Sequence[Skill], scope: Scope
    ) -> Findings | None:
        """Return the skills nearest in meaning; None where only words can be compared, `note` says why."""
        if self._open_embedder is None:
            return None
        is_patient = await self._kept_up(tools, skills)
        if self._index.understands:
            return await to_thread.run_sync(partial(self._find, query, limit, "skill", scope))
        if not is_patient:
            self._begin()
        return None

    async def compare(self, text: str, others: Sequence[str]) -> Mapping[str, float] | None:
        """Return by text how near others are to one in meaning, in [0, 1].

        None where only words can be compared: no model is loaded, or it cannot be used now. Nothing is
        loaded for it.
        """
        embedder = self._embedder
        if embedder is None or not others or self._closed.is_set():
            return None
        return await to_thread.run_sync(partial(self._compared, embedder, text, tuple(dict.fromkeys(others))))

    def _compared(self, embedder: Embedder, text: str, others: tuple[str, ...]) -> dict[str, float] | None:
        try:
            kept = make_vectors(self._folder / _COMPARED, embedder, others)
            products = kept.matrix @ embedder.embed([text])[0]
        except EmbeddingsUnavailable as reason:
            self._note = str(reason)
            return None
        except OSError as error:
            self._note = f"vectors cannot be kept in {self._folder}: {error.strerror}"
            return None
        return {other: min(1.0, max(0.0, float(products[row]))) for other, row in kept.rows.items()}

    async def _kept_up(self, tools: Sequence[Tool], skills: Sequence[Skill]) -> bool:
        """Make these the entries; return whether vectors of them were waited for, a little."""
        await to_thread.run_sync(self._keep_up, tuple(tools), tuple(skills))
        is_patient = self._patience_now() > 0
        if is_patient:
            self._begin()
            await to_thread.run_sync(self._settled.wait, self._patience_now(), abandon_on_cancel=True)
        return is_patient

    def close(self) -> None:
        """End what is being embedded, of which nothing is kept, and wait for that.

        A process that ends while its model is being loaded or run is aborted by that library.
        """
        self._closed.set()
        if self._maker is not None and self._maker.ident is not None:
            self._maker.join(_CLOSING_SECONDS)

    def _keep_up(self, tools: tuple[Tool, ...], skills: tuple[Skill, ...]) -> None:
        """Make these the entries, and have vectors made where they are due."""
        with self._lock:
            is_new = (tools, skills) != self._known
            if is_new:
                self._index.update([*tool_entries(tools), *map(skill_entry, skills)])
                self._known = (tools, skills)
            if self._open_embedder is None or self._index.understands:
                self._settled.set()
            elif self._is_due(is_new):
                self._settled.clear()
                self._note = _MAKING if self._embedder is not None else _LOADING
                self._started = time.monotonic()
                self._maker = threading.Thread(target=self._make, name="skillbank-vectors", daemon=True)

    def _begin(self) -> None:
        """Start what is due, if it is not under way."""
        with self._lock:
            if self._maker is not None and self._maker.ident is None:
                self._maker.start()

    def _patience_now(self) -> float:
        """Return for how many seconds a search may wait for vectors; none where none are being made."""
        if self._settled.is_set():
            return 0.0
        most = self._patience if self._embedder is not None else self._loading
        return self._started + most - time.monotonic()

    def _is_due(self, is_new: bool) -> bool:
        if self._maker is not None and (self._maker.ident is None or self._maker.is_alive()):
            return False
        return is_new or time.monotonic() - self._started >= _RETRY_SECONDS

    def _make(self) -> None:
        """Make vectors until those of the entries as they are now are there, or it cannot be done."""
        try:
            embedder = self._embedder = self._embedder or self._opened()
            self._note = _MAKING
            while not self._closed.is_set():
                with self._lock:
                    texts = self._index.texts
                vectors = make_vectors(self._folder, embedder, texts, self._on_progress)
                with self._lock:
                    if self._index.texts == texts:
                        self._index.understand(vectors)
                        self._note = ""
                        return
        except EmbeddingsUnavailable as reason:
            self._note = str(reason)
        except OSError as error:
            self._note = f"vectors cannot be kept in {self._folder}: {error.strerror}"
        except Stopped:
            self._note = "embedding was ended"
        finally:
            self._settled.set()

    def _opened(self) -> Embedder:
        if self._open_embedder is None:
            raise EmbeddingsUnavailable("no model for embeddings is configured")
        return self._open_embedder()

    def _on_progress(self, done: int, of: int) -> bool:
        self._note = f"embeddings are being made: {done} of {of} texts"
        return not self._closed.is_set()

    def _find(self, query: str, limit: int, kind: EntryKind | None, scope: Scope) -> Findings:
        with self._lock:
            embedder = self._embedder if self._index.understands else None
            try:
                found = self._index.search(query, limit, kind=kind, scope=scope, embedder=embedder)
            except EmbeddingsUnavailable as reason:
                return Findings(self._index.search(query, limit, kind=kind, scope=scope), str(reason))
        return Findings(found, "" if found.method == "embeddings" else self._note)
