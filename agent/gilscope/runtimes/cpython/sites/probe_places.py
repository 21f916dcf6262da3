"""Lets probes be placed only where an instruction of a known function starts."""

from collections.abc import Iterable

from gilscope.elf.image import ElfImage
from gilscope.elf.instruction_starts import InstructionStarts
from gilscope.errors import GilCodeNotFound
from gilscope.runtimes.cpython.sites.branches import LibraryCall
from gilscope.runtimes.sites import PausePoint, Site

__all__ = ["ProbePlaces"]


class ProbePlaces:
    """Makes sites, and counts the places that it refuses."""

    def __init__(self, image: ElfImage, starts: InstructionStarts, misread: int) -> None:
        self._image = image
        self._architecture = image.architecture
        self._starts = starts
        self.refused = misread
        """Places that may not be probed; *misread* of them were found before."""

    def required(self, calls: Iterable[LibraryCall]) -> tuple[Site, ...]:
        """Return the sites of calls; raises GilCodeNotFound where one may not be probed."""
        return tuple(self._required(call.site) for call in calls)

    def required_pauses(self, calls: Iterable[LibraryCall]) -> tuple[PausePoint, ...]:
        """Return the sites of calls that sleep; raises GilCodeNotFound likewise."""
        return tuple(
            PausePoint(self._required(call.site), self._required(self._behind(call)))
            for call in calls
        )

    def possible(self, calls: Iterable[LibraryCall]) -> tuple[Site, ...]:
        """Return the sites of those calls that may be probed."""
        sites = (self._site(call.site) for call in calls)
        return tuple(site for site in sites if site is not None)

    def possible_pauses(self, calls: Iterable[LibraryCall]) -> tuple[PausePoint, ...]:
        """Return the sites of those calls that sleep and may be probed before and after."""
        found = ((self._site(call.site), self._site(self._behind(call))) for call in calls)
        return tuple(PausePoint(call, after) for call, after in found if call and after)

    def all_or_none(self, addresses: Iterable[int]) -> tuple[Site, ...] | None:
        """Return the sites at addresses; None where one of them may not be probed."""
        sites = [self._site(vaddr) for vaddr in addresses]
        found = tuple(site for site in sites if site is not None)
        return found if len(found) == len(sites) else None

    def emulated_behind(self, behind: int) -> int:
        """Return the address of the first instruction from *behind* on that is cheap to probe."""
        seen = self._image.read(behind, self._architecture.straight_line)
        return behind + self._architecture.distance_to_emulated(seen)

    def _behind(self, call: LibraryCall) -> int:
        behind = call.site + call.length
        seen = self._image.read(behind, self._architecture.jump_lookahead)
        return behind + self._architecture.distance_to_jump(seen)

    def _required(self, vaddr: int) -> Site:
        site = self._site(vaddr)
        if site is None:
            raise GilCodeNotFound(
                f"the code at {vaddr:#x} belongs to the GIL, but decoding its function from the "
                "start does not show that an instruction begins there"
            )
        return site

    def _site(self, vaddr: int) -> Site | None:
        if not self._starts.is_start(vaddr):
            self.refused += 1
            return None
        return Site(vaddr, self._image.file_offset(vaddr))
