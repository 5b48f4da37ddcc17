"""Rows as Parquet files, which verl reads. Needs pyarrow, which `skillbank[train]` brings."""

# pyarrow is only there with the extra, and has no types.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

__all__ = ["parquet_bytes"]


def parquet_bytes(rows: Sequence[Mapping[str, Any]]) -> bytes:
    """Return a Parquet file; a column that is empty in every row is kept as nulls.

    Raises:
        ModuleNotFoundError: pyarrow is not here.
    """
    pyarrow: Any = import_module("pyarrow")
    parquet: Any = import_module("pyarrow.parquet")
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist([dict(row) for row in rows]), sink)
    return bytes(sink.getvalue().to_pybytes())
