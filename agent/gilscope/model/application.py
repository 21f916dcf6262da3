"""Which code is the application's, as far as the user has said."""

from gilscope.values import dataclass

__all__ = ["EVERYBODYS", "Application"]


@dataclass(frozen=True, slots=True)
class Application:
    """Where its code is. Without anything, all that neither came with Python nor was installed."""

    folders: tuple[str, ...] = ()
    """Absolute, without a slash at the end."""
    packages: tuple[str, ...] = ()
    """By their import names, ``shop`` or ``shop.billing``."""

    @property
    def is_said(self) -> bool:
        """Whether the user has said anything."""
        return bool(self.folders or self.packages)


EVERYBODYS = Application()
"""By the rule that needs nobody to say anything."""
