"""Reads the text of a web configuration file: all of it is understood, or it is refused."""

import posixpath
import re
from collections.abc import Callable, Mapping
from typing import NoReturn, TypeVar

import yaml

from gilscope.errors import InvalidWebConfig
from gilscope.values import dataclass
from gilscope.web.config.settings import (
    CIPHERS,
    CURVES,
    HEADERS,
    ClientAuth,
    Pem,
    TlsSettings,
    WebSettings,
)

__all__ = ["KEYS", "parse"]

_NULL, _BOOL = "tag:yaml.org,2002:null", "tag:yaml.org,2002:bool"
_YES = {"y", "yes", "on", "true"}
_HASH = re.compile(r"\$2[abxy]\$(0[4-9]|[12][0-9]|3[01])\$[./A-Za-z0-9]{53}")
_VERSIONS = ("TLS12", "TLS13")
_CANNOT_ASK = ("RequestClientCert", "RequireAnyClientCert", "RequireClientCert")

_SECTIONS = ("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit")
_TLS = (
    *("cert", "key", "client_ca", "cert_file", "key_file", "client_ca_file"),
    *("client_auth_type", "client_allowed_sans", "min_version", "max_version"),
    *("cipher_suites", "prefer_server_cipher_suites", "curve_preferences"),
)
_HTTP = ("http2", "headers")

KEYS = frozenset((*_SECTIONS, *_TLS, *_HTTP))
"""All that may be written in a file, but for the names of users and headers."""

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _Place:
    """One node of the file, and how to speak of it."""

    file: str
    option: str
    """The keys that lead to it, joined by dots; empty: the file itself."""
    node: yaml.Node

    def fail(self, what: str) -> NoReturn:
        """Raise InvalidWebConfig about this place."""
        line = self.node.start_mark.line + 1
        option = f" {self.option}:" if self.option else ""
        raise InvalidWebConfig(f"{self.file}, line {line}:{option} {what}")

    def below(self, key: str, node: yaml.Node) -> "_Place":
        """Return the place of *node*, which stands under *key*."""
        return _Place(self.file, f"{self.option}.{key}" if self.option else key, node)


def parse(text: str, file: str) -> WebSettings:
    """Return what *text* says, which is the content of *file*; raises InvalidWebConfig.

    Relative paths in it are relative to the folder of *file*.
    """
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise InvalidWebConfig(f"{file} is no YAML: {_in_one_line(error)}") from error
    if node is None:
        return WebSettings()
    found = _fields(_Place(file, "", node), _SECTIONS)
    tls, http = found.get("tls_server_config"), found.get("http_server_config")
    if "rate_limit" in found:
        found["rate_limit"].fail("is not supported: limit the rate in front of gilscope")
    return WebSettings(
        tls=None if tls is None else _tls(tls),
        users=_users(found["basic_auth_users"]) if "basic_auth_users" in found else {},
        headers={} if http is None else _http(http),
    )


def _tls(place: _Place) -> TlsSettings | None:
    found = _fields(place, _TLS)
    if not found:
        return None
    cert, key = (_pem(found, name) for name in ("cert", "key"))
    if cert is None or key is None:
        missing = "cert" if cert is None else "key"
        place.fail(f"there is neither {missing}_file nor {missing}")
    version = {name: _one_of(found[name], _VERSIONS, _OLD) for name in _LIMITS if name in found}
    settings = TlsSettings(
        cert=cert,
        key=key,
        client_ca=_pem(found, "client_ca"),
        client_auth=_in(found, "client_auth_type", _client_auth, ClientAuth.NONE),
        allowed_sans=_in(found, "client_allowed_sans", _list, ()),
        ciphers=_in(found, "cipher_suites", _ciphers, ()),
        prefers_own_ciphers=_in(found, "prefer_server_cipher_suites", _flag, default=True),
        curve=_in(found, "curve_preferences", _curve, ""),
        **version,
    )
    _check(place, settings)
    return settings


_LIMITS = ("min_version", "max_version")
_OLD = "; older ones are not safe, and OpenSSL refuses them"


def _check(place: _Place, tls: TlsSettings) -> None:
    """Refuse what makes no sense together."""
    if tls.min_version > tls.max_version:
        place.fail(f"min_version {tls.min_version} is newer than max_version {tls.max_version}")
    if tls.client_auth is ClientAuth.NONE and tls.client_ca is not None:
        place.fail(
            f"{tls.client_ca.option} has no effect without client_auth_type; "
            f"{ClientAuth.REQUIRED.value} lets no client in that has no certificate of it"
        )
    if tls.client_auth is not ClientAuth.NONE and tls.client_ca is None:
        place.fail(f"client_auth_type {tls.client_auth.value} needs client_ca_file or client_ca")
    if tls.allowed_sans and tls.client_auth is not ClientAuth.REQUIRED:
        place.fail(f"client_allowed_sans needs client_auth_type {ClientAuth.REQUIRED.value}")


def _pem(found: Mapping[str, _Place], name: str) -> Pem | None:
    text, path = found.get(name), found.get(f"{name}_file")
    if text is not None and path is not None:
        text.fail(f"{name}_file says the same; leave one of them out")
    if path is not None:
        folder = posixpath.dirname(path.file)
        return Pem(f"{name}_file", path=posixpath.join(folder, _string(path)))
    return None if text is None else Pem(name, text=_string(text))


def _client_auth(place: _Place) -> ClientAuth:
    value = _string(place)
    if value in _CANNOT_ASK:
        place.fail(
            f"{value} is not supported: Python's ssl asks for no certificate that it does not "
            f"verify. {ClientAuth.REQUIRED.value} is what keeps others out"
        )
    return ClientAuth(_one_of(place, tuple(auth.value for auth in ClientAuth)))


def _ciphers(place: _Place) -> tuple[str, ...]:
    names = _list(place)
    for name in names:
        if name not in CIPHERS:
            place.fail(
                f"{name!r} is none of {', '.join(CIPHERS)}; those of TLS 1.3 cannot be chosen"
            )
    return tuple(CIPHERS[name] for name in names)


def _curve(place: _Place) -> str:
    names = _list(place)
    if len(names) > 1 or names[0] not in CURVES:
        place.fail(f"Python's ssl takes exactly one of {', '.join(CURVES)}")
    return CURVES[names[0]]


def _users(place: _Place) -> dict[str, str]:
    users = {name: _string(user) for name, user in _fields(place).items()}
    for name, hashed in users.items():
        if ":" in name:
            place.fail(f"user {name!r} can never log in: a name must not have a colon")
        if not _HASH.fullmatch(hashed):
            # The text itself may be a password, which belongs in no log.
            place.fail(
                f"what stands for user {name!r} is no hash of bcrypt, 60 characters that begin "
                "with $2y$, $2b$ or $2a$; make one with: htpasswd -nBC 10 USER"
            )
    return users


def _http(place: _Place) -> dict[str, str]:
    found = _fields(place, _HTTP)
    if "http2" in found and _flag(found["http2"]):
        found["http2"].fail("HTTP/2 is not supported; leave it out, or say false")
    if "headers" not in found:
        return {}
    headers = _fields(found["headers"], tuple(HEADERS))
    values = {}
    for name, at in headers.items():
        value = _one_of(at, HEADERS[name]) if HEADERS[name] else _string(at)
        if not value.isascii() or not value.isprintable():
            at.fail("a header is one line of ASCII")
        values[name] = value
    return values


def _fields(place: _Place, known: tuple[str, ...] | None = None) -> dict[str, _Place]:
    """Return the values of a mapping by key; where *known* is given, by no other key.

    A key without a value counts as one that is not there.
    """
    if place.node.tag == _NULL:
        return {}
    if not isinstance(place.node, yaml.MappingNode):
        place.fail("a mapping is expected, keys with values")
    found: dict[str, _Place] = {}
    for key_node, node in place.node.value:
        at = place.below("?", key_node)
        if not isinstance(key_node, yaml.ScalarNode):
            at.fail("a key has to be a word")
        key = key_node.value
        if known is not None and key not in known:
            place.below(key, key_node).fail(f"there is no such key; there are {', '.join(known)}")
        if key in found:
            place.below(key, key_node).fail("stands here for the second time")
        found[key] = place.below(key, node)
    return {key: at for key, at in found.items() if at.node.tag != _NULL or known is None}


def _string(place: _Place) -> str:
    if not isinstance(place.node, yaml.ScalarNode) or not place.node.value:
        place.fail("a text is expected")
    value: str = place.node.value
    return value


def _list(place: _Place) -> tuple[str, ...]:
    if not isinstance(place.node, yaml.SequenceNode) or not place.node.value:
        place.fail("a list is expected, with at least one entry")
    return tuple(_string(_Place(place.file, place.option, node)) for node in place.node.value)


def _flag(place: _Place) -> bool:
    if place.node.tag != _BOOL:
        place.fail("true or false is expected")
    return str(place.node.value).lower() in _YES


def _one_of(place: _Place, values: tuple[str, ...], more: str = "") -> str:
    value = _string(place)
    if value not in values:
        place.fail(f"{value!r} is none of {', '.join(values)}{more}")
    return value


def _in(
    found: Mapping[str, _Place], name: str, read: Callable[[_Place], _Value], default: _Value
) -> _Value:
    return read(found[name]) if name in found else default


def _in_one_line(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1}: {error.problem}"
    return " ".join(str(error).split())
