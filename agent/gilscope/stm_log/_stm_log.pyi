from typing import Any, Self

from typing_extensions import Buffer

MOST_ENTRIES: int
MOST_PARTS: int
TABLES: tuple[str, ...]

class Log:
    def __new__(
        cls,
        *,
        table: str | None = None,
        semantics: str | None = None,
        original: bool = False,
        scales: tuple[tuple[int, int, int], ...] = (),
    ) -> Self: ...
    def feed(self, data: Buffer, /) -> bool: ...
    def finish(self) -> None: ...
    def snapshot(self) -> dict[str, Any]: ...
    def sums(self) -> dict[str, Any]: ...
