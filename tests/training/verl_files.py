"""Reads a Parquet file of ours by the datasets library, as verl does: run in the trainer's Python.

python verl_files.py ROWS.json
"""

import importlib.util
import json
import sys
from pathlib import Path

from datasets import load_dataset

_PARQUET = Path(__file__).parents[2] / "server" / "training" / "parquet.py"


def main():
    file = Path(sys.argv[1])
    spec = importlib.util.spec_from_file_location("parquet_of_ours", _PARQUET)
    ours = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ours)
    written = file.with_suffix(".parquet")
    written.write_bytes(ours.parquet_bytes(json.loads(file.read_text("utf-8"))))
    row = load_dataset("parquet", data_files=str(written), split="train")[0]
    assert isinstance(json.loads(row["tools"]), list)
    calls = [call for turn in row["messages"] for call in turn["tool_calls"] or []]
    print(json.dumps([json.loads(call["function"]["arguments"]) for call in calls]))


if __name__ == "__main__":
    main()
