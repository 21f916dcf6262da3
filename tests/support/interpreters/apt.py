"""Packages of any Debian suite, downloaded with signatures checked and unpacked, not installed.

So are the sources that they were made from, as their authors have published them.
"""

import shutil
from pathlib import Path

from support.interpreters.interpreter import Unavailable, run

__all__ = ["dependencies", "machine_archive", "unpack", "unpack_source"]

_SYSTEM_KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")


def unpack(
    cache: Path, suite: str, names: tuple[str, ...], folder: Path, architecture: str = ""
) -> None:
    """Download the packages *names* of *suite* and unpack them into the empty *folder*.

    They are this machine's, unless Debian's name of another *architecture* is given.
    """
    options = _private_apt(cache, suite, architecture)
    shutil.rmtree(folder, ignore_errors=True)
    downloads = folder / "downloads"
    downloads.mkdir(parents=True)
    run(["apt-get", *options, "download", *names], cwd=downloads)
    for package in sorted(downloads.iterdir()):
        run(["dpkg-deb", "--extract", str(package), str(folder)])
    shutil.rmtree(downloads)


def unpack_source(cache: Path, suite: str, name: str, folder: Path) -> None:
    """Download the source of the package *name* of *suite* and unpack it into the empty *folder*.

    It is without the changes that Debian makes.
    """
    options = _private_apt(cache, suite, kind="deb-src")
    shutil.rmtree(folder, ignore_errors=True)
    downloads = folder / "downloads"
    downloads.mkdir(parents=True)
    run(["apt-get", *options, "source", "--download-only", "--tar-only", name], cwd=downloads)
    for archive in downloads.glob("*.orig.tar.*"):
        run(["tar", "--extract", f"--file={archive}", "--strip-components=1"], cwd=folder)
    shutil.rmtree(downloads)


def dependencies(cache: Path, suite: str, name: str) -> list[str]:
    """Return the packages that the newest *name* of *suite* depends on; raises Unavailable."""
    listing = run(["apt-cache", *_private_apt(cache, suite), "depends", name])
    words = (line.partition("Depends: ") for line in listing.splitlines())
    return [found for before, _, found in words if found and not before.strip(" ")]


def _private_apt(cache: Path, suite: str, architecture: str = "", kind: str = "deb") -> list[str]:
    """Return the options that make apt see *suite* alone, with its signed package lists fetched.

    They are lists of sources where apt's name of the *kind* is ``deb-src``.
    """
    is_source = kind != "deb"
    state = cache / "apt" / "-".join(filter(None, (suite, architecture, "source" * is_source)))
    for folder in ("sources", "lists/partial", "archives/partial"):
        (state / folder).mkdir(parents=True, exist_ok=True)
    options = [
        f"--option=Dir::Etc::sourceparts={state / 'sources'}",
        "--option=Dir::Etc::sourcelist=/dev/null",
        "--option=Dir::Etc::preferencesparts=/dev/null",
        f"--option=Dir::State={state}",
        "--option=Dir::State::status=/dev/null",
        f"--option=Dir::Cache={state}",
        "--option=Acquire::Languages=none",
        "--option=Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false",
        "--option=APT::Sandbox::User=root",
    ]
    if architecture:
        options += [
            f"--option=APT::Architecture={architecture}",
            f"--option=APT::Architectures={architecture}",
        ]
    if not (state / "updated").exists():
        mirror, own_suite = machine_archive()
        keyring = _SYSTEM_KEYRING if suite == own_suite else _newest_keyring(cache, own_suite)
        (state / "sources" / f"{suite}.sources").write_text(
            f"Types: {kind}\nURIs: {mirror}\nSuites: {suite}\nComponents: main\n"
            f"Signed-By: {keyring}\n"
        )
        run(["apt-get", *options, "--error-on=any", "update"])
        (state / "updated").touch()
    return options


def machine_archive() -> tuple[str, str]:
    """Return the address of the archive that this machine takes Debian from, and its suite."""
    columns = "--format=$(REPO_URI)|$(RELEASE)|$(COMPONENT)"
    # Without release information, so that it works before the machine's first update.
    listing = run(["apt-get", "indextargets", "--no-release-info", columns, "Created-By: Packages"])
    for line in listing.splitlines():
        address, suite, component = line.split("|")
        # The archives of updates and of security fixes hold no other suites.
        if component == "main" and "-" not in suite and "/" not in suite:
            return address, suite
    message = "apt has no Debian archive configured"
    raise Unavailable(message)


def _newest_keyring(cache: Path, own_suite: str) -> Path:
    """Return a keyring that the machine's own suite vouches for and that knows newer suites."""
    folder = cache / "debian-keyring"
    keyring = folder / _SYSTEM_KEYRING.relative_to("/")
    if not keyring.exists():
        unpack(cache, own_suite, ("debian-archive-keyring",), folder)
    return keyring
