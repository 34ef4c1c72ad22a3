"""Which lines gained samples: of a real change, and of planted ones."""

from __future__ import annotations

from kernelgate.bench.record import HotLine, HotSpots
from kernelgate.ci.explain.moved_samples import MovedLine, moved_lines
from tests import hot_examples


def spots(*lines: tuple[int, str | None, int], samples: int = 10_000, file: str = "a.cu") -> HotSpots:
    listed = tuple(HotLine(file=file, line=line, text=text, samples=count) for line, text, count in lines)
    return HotSpots(samples=samples, lines=listed)


def one(found: tuple[MovedLine, ...], text: str) -> MovedLine:
    (only,) = [each for each in found if each.text == text]
    return only


def test_of_a_tile_that_lost_its_padding_every_line_is_followed_to_its_new_number() -> None:
    found = moved_lines(hot_examples.quoted("transpose_padded"), hot_examples.quoted("transpose_tiled"))
    followed = {(each.base_lines, each.head_lines): round(each.gain_pct, 1) for each in found if each.text != "}"}
    assert followed == {
        ((17,), (9,)): 20.8,  # int x = …, which waits until the queue of shared memory is empty
        ((21,), (13,)): 8.7,  # out[…] = t[…][…], where the bank conflicts are
        ((), (7,)): 0.7,  # the kernel's name is another one
        ((19,), (11,)): -0.0,
        ((20,), (12,)): -0.1,
        ((15,), ()): -1.0,
        ((18,), (10,)): -35.0,  # t[…][…] = in[…]
    }
    assert [each.gain_pct for each in found] == sorted((each.gain_pct for each in found), reverse=True)


def test_what_chance_may_do_is_not_sure() -> None:
    few = moved_lines(spots((1, "x", 50), (2, "y", 50), samples=100), spots((1, "x", 58), (2, "y", 42), samples=100))
    many = moved_lines(spots((1, "x", 5_000), (2, "y", 5_000)), spots((1, "x", 5_800), (2, "y", 4_200)))
    assert [each.is_sure for each in few] == [False, False]
    assert [each.is_sure for each in many] == [True, True]


def test_a_line_that_one_side_does_not_list_may_have_as_much_as_its_last() -> None:
    base = spots((1, "x", 6_000), (2, "y", 1_000))  # 3,000 are on other lines, each of which has 1,000 at most
    found = one(moved_lines(base, spots((1, "x", 6_000), (9, "new", 4_000))), "new")
    assert (found.base.low, found.base.high, found.gain_pct) == (0.0, 10.0, 30.0)


def test_the_same_text_at_several_places_is_one_line_with_all_of_them() -> None:
    base = spots((3, "__syncthreads();", 2_000), (7, "__syncthreads();", 1_000), (1, "x", 7_000))
    head = spots((4, "__syncthreads();", 4_000), (1, "x", 6_000))
    found = one(moved_lines(base, head), "__syncthreads();")
    assert (found.base_lines, found.head_lines, found.gain_pct) == ((3, 7), (4,), 10.0)
