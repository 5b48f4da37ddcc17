"""Files of strangers: every way in which a package or bundle may lie or overload is refused, and says how."""

from __future__ import annotations

import io
import json
import os
import tarfile
import zipfile

import pytest

from catalog.effects import Effect
from catalog.tools import ToolId
from skills_store.errors import NotImportable
from skills_store.interchange.bundle import parse_bundle, render_bundle
from skills_store.interchange.package_files import (
    MAX_FILES,
    MAX_PACKAGE_BYTES,
    check_path,
    read_package_files,
)
from skills_store.interchange.packages import parse_package
from skills_store.interchange.portable import portable, skill_digest
from skills_store.interchange.skill_md import render_package
from skills_store.skill import Pin, Skill
from skills_store.workflow.model import Node, SkillRef
from tests.skills_store.conftest import make_skill

PIN = Pin(tool=ToolId("weather", "current"), contract_hash=f"sha256:{'0' * 64}", effect=Effect.READ)


def a_skill(**changes) -> Skill:
    return make_skill(**{"pins": (PIN,), **changes})


def calling() -> Skill:
    node = Node(id="other", skill=SkillRef(name="temperature", version=1), arguments={"city": "$inputs.city"})
    skill = a_skill(name="caller")
    workflow = skill.workflow.model_copy(
        update={"nodes": (node,), "outputs": {"c": "$nodes.other.output#/celsius"}}
    )
    return skill.model_copy(update={"workflow": workflow})


class TestABundle:
    def test_comes_back_as_it_was(self):
        imported = parse_bundle(render_bundle(a_skill(version=3)))
        assert imported.skill.skill == portable(a_skill())
        assert (imported.skill.version, imported.skill.digest) == (3, skill_digest(a_skill()))

    def test_brings_the_skills_it_calls(self):
        imported = parse_bundle(render_bundle(calling(), [a_skill()]))
        assert [one.skill.name for one in imported.calls] == ["temperature"]

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            pytest.param(lambda d: d["skill"]["skill"].update(description="x"), "was changed", id="changed"),
            pytest.param(lambda d: d["skill"].update(digest="sha256:0"), "was changed", id="wrong digest"),
            pytest.param(lambda d: d.update(format="other"), "format", id="other format"),
            pytest.param(lambda d: d.update(extra=1), "extra", id="unknown field"),
            pytest.param(lambda d: d["skill"]["skill"].update(name="../evil"), "name", id="name"),
            pytest.param(lambda d: d["skill"].update(version=0), "version", id="version"),
            pytest.param(lambda d: d["skill"]["skill"].update(pins=[]), "without a pin", id="no pins"),
        ],
    )
    def test_that_lies_is_refused(self, change, said):
        document = json.loads(render_bundle(a_skill()))
        change(document)
        if said == "without a pin":
            skill = a_skill(pins=())
            document["skill"]["digest"] = skill_digest(skill)
        with pytest.raises(NotImportable, match=said):
            parse_bundle(json.dumps(document).encode())

    def test_without_what_it_calls_is_refused(self):
        with pytest.raises(NotImportable, match="did not come with it"):
            parse_bundle(render_bundle(calling()))

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            pytest.param(b"", "no JSON", id="empty"),
            pytest.param(b"{", "no JSON", id="cut"),
            pytest.param(b"\xff\xfe{}", "no JSON", id="no text"),
            pytest.param(b'{"a": NaN}', "no JSON", id="NaN"),
            pytest.param(b'{"a": 1e999}', "no JSON", id="infinite"),
            pytest.param(b"[" * 100_000, "no JSON", id="deep and cut"),
            pytest.param(b'{"a":' + b"[" * 500 + b"]" * 500 + b"}", "nested", id="deep"),
            pytest.param(b" " * (MAX_PACKAGE_BYTES + 1), "at most", id="large"),
        ],
    )
    def test_that_is_no_document_is_refused(self, content, said):
        with pytest.raises(NotImportable, match=said):
            parse_bundle(content)


def zipped(files: dict[str, bytes], path, **attributes):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)
            entry.compress_type = zipfile.ZIP_DEFLATED
            for key, value in attributes.items():
                setattr(entry, key, value)
            archive.writestr(entry, content)
    return path


def tarred(files: dict[str, bytes], path, kind=tarfile.REGTYPE, link=""):
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.size = kind, link, len(content)
            archive.addfile(entry, io.BytesIO(content))
    return path


def placed(files: dict[str, bytes], folder):
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


class TestAPackage:
    @pytest.mark.parametrize("put", [placed, zipped, tarred], ids=["folder", "zip", "tar"])
    @pytest.mark.parametrize("top", ["", "temperature/"], ids=["bare", "in a folder"])
    def test_comes_back_as_it_was(self, put, top, tmp_path):
        files = {f"{top}{path}": content for path, content in render_package(a_skill(version=2)).items()}
        imported = parse_package(read_package_files(put(files, tmp_path / "package")))
        assert imported.skill.skill == portable(a_skill())
        assert (imported.skill.version, imported.skill.digest) == (2, skill_digest(a_skill()))

    def test_brings_the_skills_it_calls(self):
        imported = parse_package(render_package(calling(), [a_skill()]))
        assert [one.skill.name for one in imported.calls] == ["temperature"]

    @pytest.mark.parametrize(
        ("path", "content", "said"),
        [
            pytest.param("assets/workflow.json", None, "no assets/workflow.json", id="text only"),
            pytest.param("assets/skill.json", None, "no assets/skill.json", id="no record"),
            pytest.param("assets/tests.json", b"[{}]", "tests", id="malformed tests"),
            pytest.param("assets/workflow.json", b"[]", "workflow", id="no workflow"),
            pytest.param("assets/skill.json", b"1", "no JSON object", id="no object"),
            pytest.param("assets/tests.json", b"[]", "was changed", id="tests taken out"),
            pytest.param("assets/skills.json", b"[1]", "no skill", id="called is none"),
        ],
    )
    def test_that_lies_is_refused(self, path, content, said):
        files = {name: kept for name, kept in render_package(a_skill()).items() if name != path}
        if content is not None:
            files[path] = content
        with pytest.raises(NotImportable, match=said):
            parse_package(files)

    @pytest.mark.parametrize(
        "name",
        [
            *("../x", "a/../../x", "/etc/passwd", "a//b", "./x", "a/.", "..\\x", "C:/x", "C:x", "a\\b"),
            *("con", "assets/NUL.json", "com1.txt", "lpt9", "x\x00y", "x.", "x ", ".hidden", "-rf", "a:b"),
            *("a/" * 9 + "x", "x" * 201, "", "e\u0301", "\u202egpj.x"),
        ],
    )
    def test_a_path_that_leads_elsewhere_is_refused(self, name):
        with pytest.raises(NotImportable):
            check_path(name)

    @pytest.mark.parametrize("put", [zipped, tarred], ids=["zip", "tar"])
    def test_an_archive_with_such_a_path_is_refused_and_writes_nothing(self, put, tmp_path):
        inside = tmp_path / "inside"
        inside.mkdir()
        path = put({"SKILL.md": b"x", "../escaped": b"x"}, inside / "package")
        with pytest.raises(NotImportable, match="no path below"):
            read_package_files(path)
        assert [entry.name for entry in tmp_path.iterdir()] == ["inside"]

    @pytest.mark.parametrize(
        "kind",
        [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE],
        ids=["symbolic link", "hard link", "device", "pipe"],
    )
    def test_a_tar_file_with_a_link_or_device_is_refused(self, kind, tmp_path):
        path = tarred({"SKILL.md": b""}, tmp_path / "package", kind, "/etc/passwd")
        with pytest.raises(NotImportable, match="no plain file"):
            read_package_files(path)

    def test_a_zip_file_with_a_link_is_refused(self, tmp_path):
        path = zipped({"SKILL.md": b"/etc/passwd"}, tmp_path / "package", external_attr=0o120777 << 16)
        with pytest.raises(NotImportable, match="is a link"):
            read_package_files(path)

    @pytest.mark.parametrize("target", ["file", "folder", "top"])
    def test_a_folder_with_a_link_is_refused(self, target, tmp_path):
        folder = placed(render_package(a_skill()), tmp_path / "package")
        if target == "top":
            (tmp_path / "link").symlink_to(folder)
            folder = tmp_path / "link"
        else:
            (folder / "extra").symlink_to("/etc/passwd" if target == "file" else "/etc")
        with pytest.raises(NotImportable, match="is a link"):
            read_package_files(folder)

    def test_a_folder_with_a_pipe_is_refused(self, tmp_path):
        folder = placed(render_package(a_skill()), tmp_path / "package")
        os.mkfifo(folder / "pipe")
        with pytest.raises(NotImportable, match="no plain file"):
            read_package_files(folder)

    @pytest.mark.parametrize("put", [zipped, tarred], ids=["zip", "tar"])
    def test_a_bomb_is_stopped_while_it_is_read(self, put, tmp_path):
        files = {"SKILL.md": b"x", "bomb": bytes(MAX_PACKAGE_BYTES + 1)}
        path = put(files, tmp_path / "package")
        assert path.stat().st_size < 100_000, "it is small before it is read"
        with pytest.raises(NotImportable, match="more than 16777216 bytes"):
            read_package_files(path)

    @pytest.mark.parametrize("put", [placed, zipped, tarred], ids=["folder", "zip", "tar"])
    def test_too_many_files_are_refused(self, put, tmp_path):
        files = {f"f{number}": b"" for number in range(MAX_FILES + 1)}
        with pytest.raises(NotImportable, match="more than 512 files"):
            read_package_files(put(files, tmp_path / "package"))

    def test_two_files_that_some_systems_take_for_one_are_refused(self, tmp_path):
        path = zipped({"SKILL.md": b"a", "skill.MD": b"b"}, tmp_path / "package")
        with pytest.raises(NotImportable, match="there twice"):
            read_package_files(path)

    @pytest.mark.parametrize(
        "content", [b"", b"PK\x03\x04", b"text", bytes(2000)], ids=["empty", "cut", "text", "zeros"]
    )
    def test_what_is_no_archive_is_refused(self, content, tmp_path):
        (tmp_path / "package").write_bytes(content)
        with pytest.raises(NotImportable):
            read_package_files(tmp_path / "package")

    def test_a_broken_archive_is_refused(self, tmp_path):
        path = zipped({"SKILL.md": os.urandom(5000)}, tmp_path / "package")
        content = bytearray(path.read_bytes())
        content[200:400] = bytes(200)
        path.write_bytes(content)
        with pytest.raises(NotImportable):
            read_package_files(path)
