"""The options that commands share."""

import argparse

import pytest

from gilscope.commands.options import add_application_option, chosen_application
from gilscope.model.application import Application


def _chosen(*words: str) -> Application:
    parser = argparse.ArgumentParser()
    add_application_option(parser)
    return chosen_application(parser.parse_args(words))


def test_folders_and_packages_are_told_apart() -> None:
    """
    Without any the rule decides that needs nobody to say anything.
    """
    assert Application() == _chosen()
    assert Application(("/srv/shop",), ("shop.billing", "jobs")) == _chosen(
        "--app", "/srv/shop/", "--app", "shop.billing", "--app", "jobs"
    )


@pytest.mark.parametrize("word", ["", "/", "shop/views.py", "my-shop", "..", "shop."])
def test_what_is_neither_is_refused(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    """
    A relative folder would be the agent's, not the program's.
    """
    with pytest.raises(SystemExit):
        _chosen("--app", word)

    assert "is neither an absolute folder nor the name of a package" in capsys.readouterr().err
