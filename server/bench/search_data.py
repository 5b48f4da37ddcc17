"""The labelled requests of the search benchmark and the tools they are looked for among.

`data/search.json.gz` holds them; `data/README.md` says where each comes from and by which rule
it was taken. MedCalc-Bench may not be handed on with a program, so its rows are read from a file.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import TypeAdapter, ValidationError

from catalog.canonical import JsonValue
from catalog.tools import Tool, ToolId
from server.provisioning.errors import TasksRejected

__all__ = ["PARAPHRASES", "WHOLE_TASKS", "Labelled", "Request", "load_labelled", "load_medcalc"]

_DATA: Final = Path(__file__).with_name("data")
PARAPHRASES: Final = "own paraphrases"
WHOLE_TASKS: Final = frozenset({"BFCL multi-turn", "BFCL parallel multiple", "MCP-Bench tasks", "τ²-bench"})
"""Sources whose requests need several tools and are looked for sub-goal by sub-goal."""
_MEDCALC_SERVER: Final = "mb-medcalc"
_CALCULATORS: Final = {
    "Adjusted Body Weight": "ibw_abw_calculator",
    "Body Mass Index (BMI)": "bmi_bsa_calculator",
    "Body Surface Area Calculator": "bmi_bsa_calculator",
    "CHA2DS2-VASc Score for Atrial Fibrillation Stroke Risk": "chads2_vasc_score",
    "CKD-EPI Equations for Glomerular Filtration Rate": "egfr_epi",
    "Calcium Correction for Hypoalbuminemia": "corrected_calcium",
    "Child-Pugh Score for Cirrhosis Mortality": "child_pugh_score",
    "Creatinine Clearance (Cockcroft-Gault Equation)": "crcl_cockcroft_gault",
    "Estimated Due Date": "pregnancy_calculator",
    "Estimated Gestational Age": "pregnancy_calculator",
    "Estimated of Conception": "pregnancy_calculator",
    "Framingham Risk Score for Hard Coronary Heart Disease": "framingham_risk_score",
    "Ideal Body Weight": "ibw_abw_calculator",
    "Maintenance Fluids Calculations": "maintenance_fluids",
    "Mean Arterial Pressure (MAP)": "map_calculator",
    "Morphine Milligram Equivalents (MME) Calculator": "calculate_mme",
    "QTc Bazett Calculator": "qtc_calculator",
    "QTc Framingham Calculator": "qtc_calculator",
    "QTc Fridericia Calculator": "qtc_calculator",
    "QTc Hodges Calculator": "qtc_calculator",
    "QTc Rautaharju Calculator": "qtc_calculator",
    "Revised Cardiac Risk Index for Pre-Operative Risk": "revised_cardiac_risk_index",
    "Sodium Correction for Hyperglycemia": "corrected_sodium",
    "Steroid Conversion Calculator": "steroid_conversion",
    "Wells' Criteria for Pulmonary Embolism": "wells_pe_criteria",
}
"""Calculators of MedCalc-Bench by name, with the tool of the medcalc server that computes each."""


@dataclass(frozen=True, slots=True)
class Request:
    """A text with the tools that its reference calls."""

    source: str
    id: str
    text: str
    wanted: tuple[ToolId, ...]

    @property
    def is_held_out(self) -> bool:
        """Whether nothing was tuned on it: half of all, by hash of source and id."""
        return hashlib.sha256(f"{self.source} {self.id}".encode()).digest()[0] % 2 == 1


@dataclass(frozen=True, slots=True)
class Labelled:
    """Requests, and the tools among which they are looked for."""

    tools: tuple[Tool, ...]
    requests: tuple[Request, ...]


_Parameter = str | tuple[str, list[str]]
_Tools = TypeAdapter(list[tuple[str, str, str, dict[str, _Parameter]]])
_Requests = TypeAdapter(list[tuple[str, str, str, list[int]]])
_Paraphrases = TypeAdapter(list[tuple[str, str]])
_Rows = TypeAdapter(list[dict[str, JsonValue]])


def load_labelled() -> Labelled:
    """Return everything that comes with the benchmark, our own paraphrases included."""
    content = json.loads(gzip.decompress((_DATA / "search.json.gz").read_bytes()))
    tools = [_tool(*told) for told in _Tools.validate_python(content["tools"])]
    requests = [
        Request(source, request, text, tuple(tools[number].id for number in wanted))
        for source, request, text, wanted in _Requests.validate_python(content["requests"])
    ]
    own = _Paraphrases.validate_json((_DATA / "paraphrases.json").read_bytes())
    requests += [Request(PARAPHRASES, str(n), text, (_id(wanted),)) for n, (text, wanted) in enumerate(own)]
    return Labelled(tuple(tools), tuple(requests))


def load_medcalc(path: Path) -> list[Request]:
    """Return the different questions of rows of MedCalc-Bench whose calculator the pool has.

    Raises:
        TasksRejected: the file cannot be read or holds no such rows.
    """
    try:
        rows = _Rows.validate_json(path.read_bytes())
    except OSError as error:
        raise TasksRejected(f"{path}: {error.strerror}") from error
    except ValidationError as error:
        raise TasksRejected(f"{path}: not a JSON list of MedCalc-Bench rows") from error
    asked = dict.fromkeys(_asked(rows))
    if not asked:
        raise TasksRejected(f"{path}: no row has a known `Calculator Name` and a `Question`")
    return [
        Request("MedCalc-Bench", question, question, (ToolId(_MEDCALC_SERVER, tool),))
        for question, tool in asked
    ]


def _asked(rows: Sequence[dict[str, JsonValue]]) -> Iterable[tuple[str, str]]:
    for row in rows:
        tool = _CALCULATORS.get(str(row.get("Calculator Name")))
        question = row.get("Question")
        if tool is not None and isinstance(question, str):
            yield question, tool


def _tool(server: str, name: str, description: str, parameters: dict[str, _Parameter]) -> Tool:
    properties: dict[str, JsonValue] = {}
    for parameter, told in parameters.items():
        text, values = (told, []) if isinstance(told, str) else told
        properties[parameter] = {"description": text, **({"enum": [*values]} if values else {})}
    return Tool(ToolId(server, name), {"type": "object", "properties": properties}, description=description)


def _id(text: str) -> ToolId:
    server, _, tool = text.partition("/")
    return ToolId(server, tool)
