"""Reads a skill out of an Arazzo description of strangers: JSON or YAML, each step a call of an MCP tool.

What `arazzo` writes comes back; a document by another hand is taken as far as it says what is to be
called by `x-mcp-tool`. Whatever else a step says (HTTP operations, success criteria, retries, jumps) would
change what it means when left out, so it is refused with its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import cast

import yaml
from pydantic import JsonValue, ValidationError

from catalog.tools import ToolId
from skills_store.errors import NotImportable
from skills_store.interchange.bundle import (
    MAX_BUNDLE_BYTES,
    Imported,
    PortableVersion,
    checked_import,
    read_json_file,
    said_of,
)
from skills_store.interchange.portable import PinnedTool, PortableSkill
from skills_store.skill import Signature
from skills_store.workflow.model import Workflow
from skills_store.workflow.references import is_selector

__all__ = ["is_arazzo", "parse_arazzo"]

_MOST_STEPS = 200
_MOST_YAML_BYTES = 1 << 20
_STEP_KEYS = frozenset(
    {"stepId", "description", "x-mcp-tool", "parameters", "dependsOn", "outputs", "x-skillbank"}
)
_WORKFLOW_KEYS = frozenset(
    {"workflowId", "summary", "description", "inputs", "steps", "outputs", "x-skillbank"}
)
_OWN_KEYS = frozenset({"code", "forEach", "when", "expect"})
_STEP_OUTPUT = re.compile(r"\$steps\.([A-Za-z0-9_-]+)\.outputs\.([A-Za-z0-9_-]+)")
_BODY = re.compile(r"\$response\.body(#(/.*)?)?")
_FOREIGN = re.compile(
    r"\{?\$(steps|response|request|url|method|statusCode|message|sourceDescriptions|workflows|components)\b"
)
_NO_NAME = re.compile(r"[^a-z0-9]+")

_Object = dict[str, JsonValue]


def is_arazzo(content: bytes) -> bool:
    """Return whether a file says that it is an Arazzo description, in JSON or YAML."""
    return re.search(rb'^\s*[{]?\s*"?arazzo"?\s*:', content[:4_096], re.MULTILINE) is not None


def parse_arazzo(content: bytes, contracts: Mapping[ToolId, str] | None = None) -> Imported:
    """Return the skill of an Arazzo description, without tests: nothing in it was shown to work.

    Args:
        content: of the file.
        contracts: hashes of the contracts known here, for tools that the file pins none of.

    Raises:
        NotImportable: it is malformed, too large, or says what cannot be kept; says where.
    """
    document = _document(content)
    if not str(document.get("arazzo", "")).startswith("1."):
        raise NotImportable(f"arazzo: version {document.get('arazzo')!r} is not read, only 1.x")
    workflows = _list(document, "workflows", "the document")
    if len(workflows) != 1:
        raise NotImportable(f"workflows: it holds {len(workflows)}, and one is imported at a time")
    return _imported(_object(workflows[0], "workflows/0"), contracts or {})


def _document(content: bytes) -> _Object:
    if len(content) > MAX_BUNDLE_BYTES:
        raise NotImportable(f"it has {len(content)} bytes; at most {MAX_BUNDLE_BYTES}")
    is_json = content.lstrip()[:1] == b"{"
    return _object(read_json_file("the description", content if is_json else _from_yaml(content)), "it")


def _from_yaml(content: bytes) -> bytes:
    """Return a YAML document as JSON. Anchors, which a small file grows large by, are refused."""
    if len(content) > _MOST_YAML_BYTES:
        raise NotImportable(f"it has {len(content)} bytes of YAML; at most {_MOST_YAML_BYTES}")
    try:
        text = content.decode()
        if any(isinstance(token, yaml.AnchorToken | yaml.AliasToken) for token in yaml.scan(text)):
            raise NotImportable("it uses YAML anchors, which are not read")
        value = cast("object", yaml.load(text, Loader=_Plain))
        return json.dumps(value, allow_nan=False).encode()
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise NotImportable(f"it is no YAML that JSON could say: {error}") from error


class _Plain(yaml.SafeLoader):
    """Reads dates as the texts they are: JSON has none."""


_Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in found if tag != "tag:yaml.org,2002:timestamp"]
    for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _imported(given: _Object, contracts: Mapping[ToolId, str]) -> Imported:
    _only(given, _WORKFLOW_KEYS, "workflows/0")
    own = _object(given.get("x-skillbank", {}), "workflows/0/x-skillbank")
    steps = [_object(step, f"steps/{n}") for n, step in enumerate(_list(given, "steps", "workflows/0"))]
    if not 0 < len(steps) <= _MOST_STEPS:
        raise NotImportable(f"steps: there are {len(steps)}; one to {_MOST_STEPS} are read")
    names = [_id(step, number) for number, step in enumerate(steps)]
    said = _Said({name: name.lower().replace("-", "_") for name in names}, {})
    if len(set(said.ids.values())) < len(steps):
        raise NotImportable("steps: two of them have the same stepId")
    for number, step in enumerate(steps):
        said.outputs[_id(step, number)] = _outputs_of(step, number)
    name = _name(str(own.get("name") or given.get("workflowId", "")))
    document: _Object = {
        "name": name,
        "inputs": given.get("inputs", {"type": "object", "properties": {}}),
        "nodes": [_node(step, number, said) for number, step in enumerate(steps)],
        "outputs": {
            key: said.value(value, f"outputs/{key}")
            for key, value in _object(given.get("outputs", {}), "workflows/0/outputs").items()
        },
        "expect": own.get("expect", []),
    }
    try:
        workflow = Workflow.model_validate(document)
        skill = PortableSkill(
            name=name,
            title=None if given.get("summary") == name else _text(given.get("summary"), 200),
            description=_text(given.get("description"), 4_000) or "",
            workflow=workflow,
            signature=_signature(workflow, own),
            pins=_pins(workflow, own, contracts),
        )
        return checked_import(PortableVersion(version=1, digest=skill.digest, skill=skill), ())
    except ValidationError as error:
        raise NotImportable(said_of(error)) from error


def _node(step: _Object, number: int, said: _Said) -> JsonValue:
    place = f"steps/{number}"
    _only(step, _STEP_KEYS, place)
    own = _object(step.get("x-skillbank", {}), f"{place}/x-skillbank")
    if "skill" in own:
        raise NotImportable(f"{place}: it calls another skill, which did not come with it: import a bundle")
    _only(own, _OWN_KEYS, f"{place}/x-skillbank")
    node: _Object = {
        "id": said.ids[_id(step, number)],
        "arguments": _arguments(step, place, said),
        "after": [said.node(other, f"{place}/dependsOn") for other in _list(step, "dependsOn", place)],
        "expect": own.get("expect", []),
    }
    if "x-mcp-tool" in step:
        node["tool"] = _object(step["x-mcp-tool"], f"{place}/x-mcp-tool")
    if "code" in own:
        node["code"] = own["code"]
    if not node.keys() & {"tool", "code"}:
        raise NotImportable(f"{place}: it names no MCP tool by x-mcp-tool, so it cannot be run here")
    for key, field in (("forEach", "for_each"), ("when", "when")):
        if key in own:
            node[field] = said.value(own[key], f"{place}/x-skillbank/{key}")
    return node


def _arguments(step: _Object, place: str, said: _Said) -> _Object:
    arguments: _Object = {}
    for number, part in enumerate(_list(step, "parameters", place)):
        given = _object(part, f"{place}/parameters/{number}")
        _only(given, frozenset({"name", "value"}), f"{place}/parameters/{number}")
        name = given.get("name")
        if not isinstance(name, str) or name in arguments or "value" not in given:
            raise NotImportable(f"{place}/parameters/{number}: a parameter has a name of its own and a value")
        arguments[name] = said.value(given["value"], f"{place}/parameters/{number}")
    return arguments


class _Said:
    """What steps are called, and where each of their outputs lies in what their call answers."""

    def __init__(self, ids: dict[str, str], outputs: dict[str, dict[str, str]]) -> None:
        self.ids, self.outputs = ids, outputs

    def node(self, reference: JsonValue, place: str) -> str:
        name = str(reference).removeprefix("$steps.")
        if name not in self.ids:
            raise NotImportable(f"{place}: there is no step {name!r}")
        return self.ids[name]

    def value(self, value: JsonValue, place: str) -> JsonValue:
        """Return a value with runtime expressions as references of a workflow."""
        match value:
            case str():
                return self._text(value, place)
            case dict() if is_selector(value):
                inner = ("context", "with")
                return {k: self.value(v, place) if k in inner else v for k, v in value.items()}
            case dict():
                return {key: self.value(part, place) for key, part in value.items()}
            case list():
                return [self.value(part, place) for part in value]
            case _:
                return value

    def _text(self, text: str, place: str) -> str:
        read = _STEP_OUTPUT.sub(lambda found: self._reference(found[1], found[2], place), text)
        if not text.startswith("$$") and (foreign := _FOREIGN.search(read)):
            raise NotImportable(f"{place}: {foreign[0]!r} is an expression that is not read here")
        return read

    def _reference(self, step: str, output: str, place: str) -> str:
        outputs = self.outputs.get(step)
        if outputs is None or output not in outputs:
            raise NotImportable(f"{place}: there is no output {output!r} of a step {step!r}")
        return f"$nodes.{self.ids[step]}.output{outputs[output]}"


def _outputs_of(step: _Object, number: int) -> dict[str, str]:
    """Return by name the pointer of each output of a step, as a reference ends with it."""
    found: dict[str, str] = {}
    for name, said in _object(step.get("outputs", {}), f"steps/{number}/outputs").items():
        body = _BODY.fullmatch(said) if isinstance(said, str) else None
        if body is None:
            raise NotImportable(f"steps/{number}/outputs/{name}: only $response.body#/… is read")
        found[name] = f"#{body[2]}" if body[2] else ""
    return found


def _id(step: _Object, number: int) -> str:
    said = step.get("stepId")
    if not isinstance(said, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,63}", said):
        raise NotImportable(f"steps/{number}/stepId: {said!r} is no name of a step")
    return said


def _name(said: str) -> str:
    name = _NO_NAME.sub("_", said.lower()).strip("_")[:40].rstrip("_")
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name):
        raise NotImportable(f"workflowId: no name can be made of {said!r:.80}")
    return name


def _signature(workflow: Workflow, own: _Object) -> Signature:
    anything: _Object = {"type": "object", "properties": {name: {} for name in workflow.outputs}}
    given = own.get("outputSchema", anything)
    return Signature(
        input_schema=workflow.inputs, output_schema=_object(given, "workflows/0/x-skillbank/outputSchema")
    )


def _pins(workflow: Workflow, own: _Object, contracts: Mapping[ToolId, str]) -> tuple[PinnedTool, ...]:
    given = [PinnedTool.model_validate(pin) for pin in _list(own, "pins", "workflows/0/x-skillbank")]
    pinned = {pin.tool: pin.contract_hash for pin in given}
    pins: list[PinnedTool] = []
    for tool in dict.fromkeys(tool for node in workflow for tool in node.tools):
        contract = pinned.get(tool) or contracts.get(tool)
        if contract is None:
            raise NotImportable(
                f"it calls {tool}, and neither the file nor this bank knows that tool's contract:"
                " add its server first"
            )
        pins.append(PinnedTool(tool=tool, contract_hash=contract))
    return tuple(pins)


def _text(value: JsonValue, longest: int) -> str | None:
    return value[:longest] if isinstance(value, str) else None


def _only(given: _Object, known: frozenset[str], place: str) -> None:
    if strange := sorted(given.keys() - known):
        raise NotImportable(
            f"{place}: {strange[0]!r} is not read here, and without it the step means another"
        )


def _object(value: JsonValue, place: str) -> _Object:
    if not isinstance(value, dict):
        raise NotImportable(f"{place} is no object")
    return value


def _list(given: _Object, key: str, place: str) -> list[JsonValue]:
    found = given.get(key, [])
    if not isinstance(found, list):
        raise NotImportable(f"{place}/{key} is no list")
    return found
