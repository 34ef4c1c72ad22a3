"""Memory that is cut into places, and seen by two processes."""

from __future__ import annotations

import os

import pytest
import torch

from kernelgate.bench.system import worker
from kernelgate.bench.timing import arena
from kernelgate.bench.timing.arena import ALIGNMENT, Layout


@pytest.mark.parametrize(
    ("tensor", "size"),
    [
        (torch.empty(3, 5), 60),
        (torch.empty(3, 5, dtype=torch.float16).T, 30),
        (torch.empty(1).expand(7, 9), 4),
        (torch.empty(4, 10)[:, 2:5], 4 * 33),
        (torch.empty(0, 8), 0),
        (torch.tensor(1.0), 4),
    ],
    ids=["contiguous", "transposed", "expanded", "a slice", "empty", "a number"],
)
def test_a_tensor_takes_the_bytes_from_its_first_element_to_its_last(tensor: torch.Tensor, size: int) -> None:
    assert arena.footprint(tensor) == size


def test_places_lie_one_after_the_other_and_are_aligned() -> None:
    layout = Layout()
    one, other = layout.place(torch.empty(3), count=2), layout.place(torch.empty(5, dtype=torch.int8), 3, 4)
    assert (one.offset, one.step, one.bytes) == (0, ALIGNMENT, 12)
    assert (other.offset, other.step, other.bytes) == (2 * ALIGNMENT, 3, 5)
    assert layout.bytes == 3 * ALIGNMENT


def test_both_ends_see_the_same_tensors() -> None:
    layout = Layout()
    place = layout.place(torch.empty(2, 3), count=4)
    with worker.memory_file() as fd:
        mine = arena.create("cpu", layout.bytes, fd, shared=True)
        theirs = arena.open_shared(mine.memory)
        mine.view(place, 3).copy_(torch.arange(6.0).view(2, 3))
        assert theirs.view(place, 3).flatten().tolist() == [0, 1, 2, 3, 4, 5]
        assert torch.equal(theirs.view(place, 7), mine.view(place, 3)), "indices begin again"
        assert theirs.view(place, 0).count_nonzero() == 0
        assert theirs.rows(place).shape == (4, ALIGNMENT)
        assert theirs.address != mine.address
        arena.close(mine, owner=True)
        assert mine.address == 0
        with pytest.raises(ValueError, match="the memory is closed"):
            mine.view(place, 0)
        assert theirs.view(place, 3)[1, 2] == 5, "the other end has its own"


def test_a_file_in_memory_is_never_cut() -> None:
    """A process that still maps its end would be killed."""
    with worker.memory_file() as fd:
        arena.create("cpu", 8192, fd, shared=True)
        arena.create("cpu", 4096, fd, shared=True)
        assert os.fstat(fd).st_size == 8192
