"""Makes certificates for tests, with the program of OpenSSL."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Authority", "Pair"]


@dataclass(frozen=True, slots=True)
class Pair:
    """A certificate and its key, as files."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Authority:
    """Signs certificates, which are kept in one folder."""

    folder: Path
    name: str

    @property
    def cert(self) -> Path:
        """Its own certificate."""
        return self.folder / f"{self.name}.crt"

    @classmethod
    def made(cls, folder: Path, name: str = "authority") -> "Authority":
        """Return a new one that nobody trusts yet."""
        authority = cls(folder, name)
        authority.pair("", is_authority=True)
        return authority

    def pair(self, name: str, *sans: str, is_authority: bool = False) -> Pair:
        """Return a new certificate for *sans*, such as ``DNS:localhost``."""
        path = self.folder / f"{self.name}{name and '-'}{name}"
        made = Pair(path.with_suffix(".crt"), path.with_suffix(".key"))
        command = [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
            *("-noenc", "-days", "2", "-subj", f"/CN={path.name}"),
            *("-keyout", str(made.key), "-out", str(made.cert)),
        ]
        if not is_authority:
            signer = self.cert.with_suffix(".key")
            command += ["-CA", str(self.cert), "-CAkey", str(signer)]
            command += ["-addext", "basicConstraints=critical,CA:FALSE"]
        if sans:
            command += ["-addext", f"subjectAltName={','.join(sans)}"]
        subprocess.run(command, check=True, capture_output=True)
        return made
