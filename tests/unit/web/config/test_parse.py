"""What a web configuration file may say."""

import pytest

from gilscope.errors import InvalidWebConfig
from gilscope.web.config.parse import parse
from gilscope.web.config.settings import ClientAuth, Pem, TlsSettings, WebSettings

_HASH = "$2y$10$" + 53 * "a"

_WHOLE = f"""\
tls_server_config:
  cert_file: tls/server.crt
  key_file: /etc/ssl/server.key
  client_auth_type: RequireAndVerifyClientCert
  client_ca_file: ca.crt
  client_allowed_sans: [prometheus.example.com, 192.0.2.1]
  min_version: TLS12
  max_version: TLS13
  cipher_suites:
    - TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384
    - TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
  prefer_server_cipher_suites: false
  curve_preferences: [CurveP384]
http_server_config:
  http2: false
  headers:
    Strict-Transport-Security: max-age=31536000
    X-Frame-Options: deny
basic_auth_users:
  prometheus: {_HASH}
  42: {_HASH}
"""


def test_every_option_is_understood() -> None:
    """
    Paths are relative to the folder of the file, and names become those of OpenSSL.
    """
    assert WebSettings(
        tls=TlsSettings(
            cert=Pem("cert_file", path="/etc/gilscope/tls/server.crt"),
            key=Pem("key_file", path="/etc/ssl/server.key"),
            client_ca=Pem("client_ca_file", path="/etc/gilscope/ca.crt"),
            client_auth=ClientAuth.REQUIRED,
            allowed_sans=("prometheus.example.com", "192.0.2.1"),
            ciphers=("ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-CHACHA20-POLY1305"),
            prefers_own_ciphers=False,
            curve="secp384r1",
        ),
        users={"prometheus": _HASH, "42": _HASH},
        headers={"Strict-Transport-Security": "max-age=31536000", "X-Frame-Options": "deny"},
    ) == parse(_WHOLE, "/etc/gilscope/web.yml")


@pytest.mark.parametrize(
    "text",
    ["", "# nothing", "{}", "tls_server_config:", "tls_server_config: {}\nbasic_auth_users:"],
)
def test_a_file_without_content_protects_nothing(text: str) -> None:
    """
    As with Prometheus' own exporters.
    """
    assert WebSettings() == parse(text, "web.yml")


def test_certificates_may_stand_in_the_file_itself() -> None:
    """
    Instead of the path of a file.
    """
    settings = parse("tls_server_config:\n  cert: |\n    one\n    two\n  key: three\n", "web.yml")

    assert settings.tls is not None
    assert (Pem("cert", text="one\ntwo\n"), Pem("key", text="three")) == (
        settings.tls.cert,
        settings.tls.key,
    )


def test_secrets_are_not_shown() -> None:
    """
    A key or a hash must not get into a log by way of a message.
    """
    settings = parse(
        f"tls_server_config: {{cert: a, key: S3}}\nbasic_auth_users: {{u: {_HASH}}}", "w"
    )

    assert "S3" not in repr(settings)
    assert _HASH not in repr(settings)


_TLS = "tls_server_config:\n  cert_file: c\n  key_file: k\n"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("tls: {}", 1, "tls: there is no such key; there are tls_server_config, "),
        (_TLS + "  cert_fil: x", 4, "tls_server_config.cert_fil: there is no such key"),
        (_TLS + "  key_file: x", 4, "tls_server_config.key_file: stands here for the second time"),
        (_TLS + "  key: x", 4, "tls_server_config.key: key_file says the same"),
        (
            "tls_server_config:\n  cert_file: c",
            2,
            "tls_server_config: there is neither key_file nor",
        ),
        ("tls_server_config:\n  client_auth_type: x\n  key: k", 2, "neither cert_file nor cert"),
        (
            _TLS + "  min_version: TLS11",
            4,
            "'TLS11' is none of TLS12, TLS13; older ones are not safe",
        ),
        (_TLS + "  min_version: TLS13\n  max_version: TLS12", 2, "TLS13 is newer than max_version"),
        (_TLS + "  client_auth_type: Maybe", 4, "'Maybe' is none of NoClientCert, VerifyClient"),
        (_TLS + "  client_auth_type: RequestClientCert", 4, "RequestClientCert is not supported"),
        (_TLS + "  client_auth_type: RequireAnyClientCert", 4, "AnyClientCert is not supported"),
        (_TLS + "  client_auth_type: RequireClientCert", 4, "RequireClientCert is not supported"),
        (
            _TLS + "  client_auth_type: VerifyClientCertIfGiven",
            2,
            "needs client_ca_file or client_ca",
        ),
        (_TLS + "  client_ca_file: x", 2, "client_ca_file has no effect without client_auth_type"),
        (_TLS + "  client_allowed_sans: [x]", 2, "client_allowed_sans needs client_auth_type Req"),
        (_TLS + "  client_allowed_sans: []", 4, "a list is expected, with at least one entry"),
        (_TLS + "  client_allowed_sans: x", 4, "a list is expected"),
        (
            _TLS + "  cipher_suites: [RC4]",
            4,
            "'RC4' is none of TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
        ),
        (
            _TLS + "  cipher_suites: [TLS_AES_128_GCM_SHA256]",
            4,
            "those of TLS 1.3 cannot be chosen",
        ),
        (
            _TLS + "  curve_preferences: [X25519]",
            4,
            "exactly one of CurveP256, CurveP384, CurveP521",
        ),
        (_TLS + "  curve_preferences: [CurveP256, CurveP384]", 4, "exactly one of"),
        (_TLS + "  prefer_server_cipher_suites: sometimes", 4, "true or false is expected"),
        (_TLS + "  cert:\n    - x", 5, "tls_server_config.cert: cert_file says the same"),
        ("tls_server_config: [1]", 1, "a mapping is expected"),
        ("- 1", 1, "a mapping is expected"),
        ("? [1]\n: 2", 1, "a key has to be a word"),
        (
            "http_server_config: {http2: true}",
            1,
            "http_server_config.http2: HTTP/2 is not supported",
        ),
        ("http_server_config:\n  headers: {Server: x}", 2, "headers.Server: there is no such key"),
        (
            "http_server_config:\n  headers: {X-Frame-Options: no}",
            2,
            "'no' is none of deny, sameorigin",
        ),
        (
            'http_server_config:\n  headers: {X-XSS-Protection: "1\\r\\nA: b"}',
            2,
            "one line of ASCII",
        ),
        ("rate_limit: {burst: 1}", 1, "rate_limit: is not supported"),
        ("basic_auth_users:\n  u: secret", 2, "what stands for user 'u' is no hash of bcrypt"),
        (f"basic_auth_users:\n  u: {_HASH}x", 2, "no hash of bcrypt"),
        (f"basic_auth_users:\n  u: {_HASH.replace('10', '03')}", 2, "no hash of bcrypt"),
        ("basic_auth_users:\n  u:", 2, "basic_auth_users.u: a text is expected"),
        (f"basic_auth_users:\n  'a:b': {_HASH}", 2, "a name must not have a colon"),
    ],
)
def test_what_cannot_be_meant_is_refused(text: str, line: int, words: str) -> None:
    """
    The message has the file, the line, the key, and what is expected.
    """
    with pytest.raises(InvalidWebConfig) as caught:
        parse(text, "web.yml")

    assert str(caught.value).startswith(f"web.yml, line {line}: ")
    assert words in str(caught.value)
    assert "secret" not in str(caught.value)


def test_what_is_no_yaml_is_refused() -> None:
    """
    With the place at which it ends to be.
    """
    with pytest.raises(InvalidWebConfig, match=r"^web.yml is no YAML: line 2: "):
        parse("a: [\nb: }", "web.yml")
