"""The numbers shared with the BPF programs."""

from gilscope.assets.files import asset
from gilscope.gil.abi import Loss, defines


def test_every_loss_is_demanded_by_the_probe() -> None:
    """
    The probe refuses to compile without the number of each reason, and knows no other.
    """
    header = asset("probes/gil.bpf.h").read_text()

    # The last one is noticed by the agent alone.
    assert list(range(len(Loss) - 1)) == list(defines().values())
    assert [] == [name for name in defines() if f"!defined({name})" not in header]
