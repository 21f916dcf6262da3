"""What `gilscope export` writes, and what it leaves alone."""

import json
import re
from pathlib import Path

import pytest
import yaml
from dashboards.generator import rules

from gilscope import __home__
from gilscope.assets.config_map import config_map
from gilscope.cli import main
from gilscope.reports import metric_table
from support.docs.pages import ROOT, section, table_rows

_GRAFANA = ROOT / "dashboards" / "grafana"
_RULES = ROOT / "dashboards" / "rules"
_OBJECTS = ROOT / "deploy" / "prometheus-operator"
_MAN_PAGE = (ROOT / "docs" / "man" / "gilscope-export.8.md").read_text()
_ADDRESS = "https://git.example.org/gilscope"


def _exported(folder: Path, *words: str) -> dict[str, str]:
    assert 0 == main(["export", words[0], str(folder), *words[1:]])
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _texts(folder: Path, pattern: str) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob(pattern)}


def test_dashboards_are_those_of_the_checkout(tmp_path: Path) -> None:
    """
    Byte for byte, and no other files.
    """
    assert _texts(_GRAFANA, "*.json") == _exported(tmp_path, "dashboards")


def test_rules_are_those_of_the_checkout(tmp_path: Path) -> None:
    """
    Byte for byte, without their tests.
    """
    assert _texts(_RULES, "*.yml") == _exported(tmp_path, "rules")


def test_metric_table_leads_nowhere(tmp_path: Path) -> None:
    """
    It is the page of the documentation, but for links to what is not exported with it.
    """
    page = metric_table.render()
    links = {
        "[gilscope-serve(8)](man/gilscope-serve.8.md#fields)": "gilscope-serve(8)",
        "[gilscope-client](client.md)": "gilscope-client",
        "[service](man/gilscope-serve.8.md#services)": "service",
    }

    unlinked = page
    for link, words in links.items():
        assert link in unlinked
        unlinked = unlinked.replace(link, words)
    assert {"metrics.md": unlinked} == _exported(tmp_path, "metrics")


def test_provider_finds_the_dashboards(tmp_path: Path) -> None:
    """
    They lie where the exported provider says, if the folder is Grafana's own.
    """
    found = _exported(tmp_path, "provisioning")
    (provider,) = yaml.safe_load(found["dashboards/gilscope.yaml"])["providers"]
    place = Path(provider["options"]["path"]).relative_to("/etc/grafana/provisioning")

    assert {f"{place}/{name}": text for name, text in _texts(_GRAFANA, "*.json").items()} == {
        name: text for name, text in found.items() if name.endswith(".json")
    }


def test_config_maps_hold_the_dashboards(tmp_path: Path) -> None:
    """
    One for each, because together they would be too large for `kubectl apply`.
    """
    found = [
        yaml.safe_load(text)
        for name, text in _exported(tmp_path, "kubernetes").items()
        if name.startswith("dashboard-")
    ]

    assert {f"gilscope-{name}": text for name, text in _texts(_GRAFANA, "*.json").items()} == {
        name: text for each in found for name, text in each["data"].items()
    }
    assert {"1"} == {each["metadata"]["labels"]["grafana_dashboard"] for each in found}
    assert max(len(json.dumps(each)) for each in found) < 2**18


def test_objects_of_the_operator_are_current(tmp_path: Path) -> None:
    """
    Those with rules are what `make docs` would write now, and all of them are exported.
    """
    committed = _texts(_OBJECTS, "*.yaml")
    exported = _exported(tmp_path, "kubernetes")

    assert {
        name: text for name, text in committed.items() if name.startswith("rules-")
    } == rules.render(_RULES)
    assert committed == {
        name: text for name, text in exported.items() if not name.startswith("dashboard-")
    }


@pytest.mark.parametrize("file", sorted(_RULES.glob("*.yml")), ids=lambda path: path.name)
def test_rules_of_the_operator_are_the_rules(file: Path) -> None:
    """
    An object's specification is the content of its file.
    """
    made = yaml.safe_load(rules.render(_RULES)[f"rules-{file.stem}.yaml"])

    assert yaml.safe_load(file.read_text()) == made["spec"]


@pytest.mark.parametrize("what", ["rules", "kubernetes"])
@pytest.mark.parametrize("end", ["", "/"])
def test_runbooks_can_have_an_address(tmp_path: Path, what: str, end: str) -> None:
    """
    The address stands before the path of every runbook, and nothing else changes.
    """
    plain = _exported(tmp_path / "plain", what)
    linked = _exported(tmp_path / "linked", what, "--runbooks", _ADDRESS + end)

    published = f"{__home__}/blob/main/"
    assert plain == {
        name: text.replace(f"runbook_url: {_ADDRESS}/", f"runbook_url: {published}")
        for name, text in linked.items()
    }
    assert "".join(linked.values()).count(f"runbook_url: {_ADDRESS}/docs/runbooks/") == sum(
        text.count("runbook_url:") for text in plain.values()
    )


def test_paths_go_to_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    All of them at each run; how many were written goes to stderr.
    """
    folder = tmp_path / "new" / "rules"
    paths = "".join(
        f"{folder}/{name}.yml\n" for name in ("agent", "gil", "locks", "requests", "stm")
    )

    assert 0 == main(["export", "rules", str(folder)])
    assert (paths, "5 of 5 files were written anew.\n") == capsys.readouterr()
    (folder / "gil.yml").unlink()
    assert 0 == main(["export", "rules", str(folder)])
    assert (paths, "1 of 5 files were written anew.\n") == capsys.readouterr()


def test_a_changed_file_is_not_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """
    Nothing is written then, not even what is missing, and the error names the file.
    """
    changed = tmp_path / "gil.yml"
    changed.write_text("mine")

    assert 12 == main(["export", "rules", str(tmp_path)])
    said = capsys.readouterr()
    assert not said.out
    assert said.err == (
        f"error: nothing was written, because files have another content: {changed}\n"
        "Overwrite them with --force, or choose another folder.\n"
    )
    assert {changed} == set(tmp_path.iterdir())
    assert "mine" == changed.read_text()


def test_a_changed_file_is_overwritten_by_force(tmp_path: Path) -> None:
    """
    And what else is in the folder stays.
    """
    (tmp_path / "gil.yml").write_text("mine")
    (tmp_path / "other.yml").write_text("mine")

    found = _exported(tmp_path, "rules", "--force")

    assert {**_texts(_RULES, "*.yml"), "other.yml": "mine"} == found


@pytest.mark.parametrize("place", ["file", "file/below"])
def test_file_in_the_way_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    """
    The folder is a file, or is below one.
    """
    (tmp_path / "file").touch()

    assert 1 == main(["export", "metrics", str(tmp_path / place)])
    said = f"error: {tmp_path / place} is in the way: it is not a folder\n"
    assert ("", said) == capsys.readouterr()


def test_what_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A folder has the name of a file.
    """
    (tmp_path / "gil.yml").mkdir()

    assert 1 == main(["export", "rules", str(tmp_path)])
    said = f"error: cannot write {tmp_path}/gil.yml: Is a directory\n"
    assert ("", said) == capsys.readouterr()


def test_runbooks_go_with_alerts_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """
    Whoever asks for them elsewhere has misunderstood something.
    """
    with pytest.raises(SystemExit) as caught:
        main(["export", "dashboards", str(tmp_path), "--runbooks", _ADDRESS])

    assert 2 == caught.value.code
    assert "dashboards has no runbooks" in capsys.readouterr().err


@pytest.mark.parametrize("what", ["dashboards", "rules", "metrics", "provisioning", "kubernetes"])
def test_man_page_names_the_files(tmp_path: Path, what: str) -> None:
    """
    Each file is in the table by its name; a dashboard among other files by what all have in common.
    """
    rows = {row[0]: row[1] for row in table_rows(section(_MAN_PAGE, "## FIELDS"))}
    names = {
        re.sub(r"^dashboards/gilscope/.*", "dashboards/gilscope/", name)
        if what == "provisioning"
        else re.sub(r"^dashboard-.*", "dashboard-NAME.yaml", name)
        for name in _exported(tmp_path, what)
    }

    assert names == set(re.findall(r"`([^`]+)`", rows[f"`{what}`"]))


@pytest.mark.parametrize("text", ["a: 1\nb: 2\n", '{\n  "a": [\n\n  ]\n}\n', "# ü\n"])
def test_config_map_holds_the_text(text: str) -> None:
    """
    What YAML reads is the text that was written.
    """
    made = yaml.safe_load(config_map("some", {"a": "1"}, {"x.y": text}))

    assert {"x.y": text} == made["data"]
