"""A virtual machine that is emulated in software, so that it needs nothing of this one's kernel."""

import subprocess
from pathlib import Path

__all__ = ["boot", "command_line"]

_MEMORY_MB = 4096
_CPUS = 2
_KERNEL_ARGUMENTS = "console=ttyS0 panic=-1 rdinit=/init quiet mitigations=off nokaslr"


def command_line(kernel: Path, archive: Path, results: Path) -> list[str]:
    """Return what starts the machine: its console is the output, its second port is *results*."""
    return [
        "qemu-system-x86_64",
        *("-accel", "tcg,thread=multi"),
        *("-cpu", "max", "-smp", str(_CPUS), "-m", str(_MEMORY_MB)),
        *("-kernel", str(kernel), "-initrd", str(archive), "-append", _KERNEL_ARGUMENTS),
        *("-display", "none", "-nodefaults", "-no-reboot", "-net", "none"),
        *("-serial", "stdio", "-serial", f"file:{results}"),
    ]


def boot(kernel: Path, archive: Path, folder: Path, limit_s: float) -> tuple[str, bool]:
    """Run the machine until it switches itself off; return its results, and whether it did.

    What is on its console goes into ``console`` of *folder*.
    """
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results"
    results.write_bytes(b"")
    with (folder / "console").open("wb") as console:
        machine = subprocess.Popen(
            command_line(kernel, archive, results),
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
        )
        try:
            ended = machine.wait(limit_s) == 0
        except subprocess.TimeoutExpired:
            ended = False
        finally:
            if machine.poll() is None:
                machine.kill()
                machine.wait()
    return results.read_text("utf-8", "replace"), ended
