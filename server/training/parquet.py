"""Rows as Parquet files, which verl reads. Needs pyarrow, which `skillbank[train]` brings."""

# pyarrow is only there with the extra, and has no types.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportMissingModuleSource=false

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from server.training.errors import TrainerUnusable
from server.training.formats import Row

__all__ = ["parquet_bytes"]


def parquet_bytes(rows: Sequence[Row]) -> bytes:
    """Return a Parquet file; a column that is empty in every row is kept as nulls.

    Raises:
        TrainerUnusable: pyarrow is not here.
    """
    try:
        pyarrow: Any = import_module("pyarrow")
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError as error:
        raise TrainerUnusable(
            "Parquet files for verl need pyarrow: pip install 'skillbank[train]', or leave out --format verl"
        ) from error
    sink = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_pylist([dict(row) for row in rows]), sink)
    return bytes(sink.getvalue().to_pybytes())
