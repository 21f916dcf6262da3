"""Encrypted connections, asked by curl as users would."""

import subprocess
from pathlib import Path

import pytest

from gilscope.errors import InvalidWebConfig
from gilscope.web.config.access import Access
from support.certificates import Authority
from support.web.asking import TLS, ask, known
from unit.web.conftest import Serve

_REQUIRED = f"""{TLS}\
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: authority.crt
"""


def test_who_knows_the_authority_is_served(serve: Serve, authority: Authority) -> None:
    """
    All paths over HTTPS, by a certificate that curl accepts for this address.
    """
    url = serve(TLS)

    assert url.startswith("https://127.0.0.1:")
    for path in ("", "metrics", "healthz"):
        answer = ask(url, *known(authority), path=path)
        assert (0, 200) == (answer.exit_code, answer.status)


def test_who_does_not_know_it_refuses_the_server(serve: Serve) -> None:
    """
    The certificate is not one that everybody trusts.
    """
    assert 60 == ask(serve(TLS)).exit_code


def test_plain_http_is_told_what_to_do(serve: Serve) -> None:
    """
    A browser's user sees why, and nothing else.
    """
    answer = ask(serve(TLS).replace("https", "http"))

    assert 400 == answer.status
    assert answer.text.endswith("This port speaks HTTPS. Ask again with https:// in front.\n")


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_certificate_is_demanded(serve: Serve, authority: Authority, version: str) -> None:
    """
    One of the authority is let in; none, and one of another authority, are refused.
    """
    url = serve(_REQUIRED)
    exactly = (f"--tlsv{version}", "--tls-max", version)

    assert 200 == ask(url, *exactly, *known(authority, "authority-client")).status
    assert ask(url, *exactly, *known(authority)).is_refused
    assert ask(url, *exactly, *known(authority, "stranger-client")).is_refused


def test_a_certificate_may_be_voluntary(serve: Serve, authority: Authority) -> None:
    """
    Who shows none is let in; who shows one of another authority is not.
    """
    url = serve(_REQUIRED.replace("RequireAndVerifyClientCert", "VerifyClientCertIfGiven"))

    assert 200 == ask(url, *known(authority, "authority-client")).status
    assert 200 == ask(url, *known(authority)).status
    assert ask(url, *known(authority, "stranger-client")).is_refused


@pytest.mark.parametrize(
    ("allowed", "is_let_in"),
    [
        ("scraper.example", True),
        ("other.example, scraper.example", True),
        ("2001:db8:0:0::1", True),
        ("other.example", False),
        ("'*.example'", False),
        ("authority-client", False),
    ],
)
def test_names_in_certificates_are_compared(
    serve: Serve, authority: Authority, allowed: str, *, is_let_in: bool
) -> None:
    """
    One of the alternative names must be on the list, letter by letter; the subject is none.
    """
    url = serve(f"{_REQUIRED}  client_allowed_sans: [{allowed}]\n")

    assert is_let_in == (200 == ask(url, *known(authority, "authority-client")).status)
    assert "" == ask(url, *known(authority, "authority-nameless")).text


@pytest.mark.parametrize(
    ("options", "version", "is_let_in"),
    [
        ("min_version: TLS13", "1.2", False),
        ("min_version: TLS13", "1.3", True),
        ("max_version: TLS12", "1.3", False),
        ("max_version: TLS12", "1.2", True),
        ("cipher_suites: [TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]", "1.2", True),
        ("cipher_suites: [TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256]", "1.2", False),
    ],
)
def test_what_is_spoken_is_chosen(
    serve: Serve, authority: Authority, options: str, version: str, *, is_let_in: bool
) -> None:
    """
    A suite for RSA is of no use with a key that is none.
    """
    url = serve(f"{TLS}  {options}\n")
    exactly = (f"--tlsv{version}", "--tls-max", version)

    assert is_let_in == (200 == ask(url, *exactly, *known(authority)).status)


def test_the_curve_is_chosen(serve: Serve, authority: Authority) -> None:
    """
    Who knows only another cannot agree with it.
    """
    url = serve(f"{TLS}  curve_preferences: [CurveP521]\n")

    assert 200 == ask(url, "--curves", "P-521", *known(authority)).status
    assert ask(url, "--curves", "X25519", *known(authority)).is_refused


def test_the_order_of_suites_is_the_servers_or_the_clients(
    serve: Serve, authority: Authority
) -> None:
    """
    By default the one that stands first in the file.
    """
    suites = "  cipher_suites: [{}AES_256_GCM_SHA384, {}AES_128_GCM_SHA256]\n".replace(
        "{}", "TLS_ECDHE_ECDSA_WITH_"
    )
    theirs = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"
    options = ("--tls-max", "1.2", "--ciphers", theirs, "--verbose", *known(authority))

    ours = ask(serve(TLS + suites), *options).complaint
    clients = ask(serve(f"{TLS}{suites}  prefer_server_cipher_suites: false\n"), *options).complaint

    assert "using TLSv1.2 / ECDHE-ECDSA-AES256-GCM-SHA384" in ours
    assert "using TLSv1.2 / ECDHE-ECDSA-AES128-GCM-SHA256" in clients


def test_certificates_in_the_file_itself(serve: Serve, authority: Authority, config: Path) -> None:
    """
    They are used as those in files of their own are.
    """
    blocks = "".join(
        f"  {option}: |\n" + "".join(f"    {line}\n" for line in path.read_text().splitlines())
        for option, path in (
            ("cert", config.with_name("authority-server.crt")),
            ("key", config.with_name("authority-server.key")),
            ("client_ca", authority.cert),
        )
    )
    url = serve(f"tls_server_config:\n{blocks}  client_auth_type: RequireAndVerifyClientCert\n")

    assert 200 == ask(url, *known(authority, "authority-client")).status
    assert ask(url, *known(authority)).is_refused


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("server.crt", "gone.crt", "cert_file: cannot read {}/authority-gone.crt: No such file"),
        ("server.crt", "server.key", "cert_file ({}/authority-server.key) holds no certificate"),
        ("server.key", "server.crt", "key_file ({}/authority-server.crt) holds no private key"),
        (
            "server.key",
            "client.key",
            "key_file ({}/authority-client.key) is not the key of cert_fi",
        ),
        (
            "file: authority.crt",
            "file: web.yml",
            "client_ca_file ({}/web.yml) holds no certificate",
        ),
        ("server.key", "locked.key", "key_file ({}/authority-locked.key) is encrypted; a key with"),
        ("server.crt", "cut.crt", "cert_file ({}/authority-cut.crt) and what belongs to it cannot"),
    ],
)
def test_files_that_are_no_good_are_named(
    config: Path, authority: Authority, before: str, after: str, words: str
) -> None:
    """
    With the key, the path and what is wrong; nothing is asked at the terminal.
    """
    _spoilt(authority)
    config.write_text(_REQUIRED.replace(before, after))

    with pytest.raises(InvalidWebConfig) as caught:
        Access(str(config))

    expected = words.format(authority.folder)
    assert str(caught.value).startswith(f"{config}: tls_server_config.{expected}")


def _spoilt(authority: Authority) -> None:
    whole = (authority.folder / "authority-server.crt").read_text()
    (authority.folder / "authority-cut.crt").write_text(whole.replace("M", "N"))
    key, locked = (authority.folder / f"authority-{name}.key" for name in ("server", "locked"))
    command = [
        "openssl",
        "pkey",
        "-in",
        str(key),
        "-out",
        str(locked),
        "-aes256",
        "-passout",
        "pass:x",
    ]
    subprocess.run(command, check=True)
