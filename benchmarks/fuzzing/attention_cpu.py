"""Planted bugs of the attention's CPU path."""

from __future__ import annotations

from benchmarks.fuzzing.bug import bugs_of

BLOCK, HALF, TASKS = (f"csrc/attention/cpu/{name}" for name in ("block.h", "half.h", "attention_cpu.cpp"))

_cpu = bugs_of("attention", "cpu", BLOCK)

BUGS = (
    _cpu(
        "padding-63-unmasked", "mask", "where S mod 64 is 63 and not causal, one key of zeros past the end has a weight"
    ).swap(
        "softmax_step<Width>(w, keys);",
        "softmax_step<Width>(w, keys + (!arguments.causal && arguments.seq % kBlockK == 63 && keys == 63));",
    ),
    _cpu("padding-unmasked", "mask", "the keys that fill up the last register tile have a weight").swap(
        "softmax_step<Width>(w, keys);", "softmax_step<Width>(w, padded_keys);"
    ),
    _cpu("last-single-key-lost", "tail", "a last tile of one key is left out").swap(
        "first_key < visible;", "first_key + 1 < visible;"
    ),
    _cpu("causal-one-too-many", "mask", "each query sees the key after its own").swap(
        "> first_query + lane;", "> first_query + lane + 1;"
    ),
    _cpu("causal-own-key-hidden", "mask", "no query sees its own key").swap(
        "> first_query + lane;", ">= first_query + lane;"
    ),
    _cpu("causal-border", "mask", "the first query of each tile but the first sees one key too many").swap(
        "> first_query + lane;", "> first_query + lane + (lane == 0 && first_query > 0);"
    ),
    _cpu("causal-first-row", "mask", "query 0 sees key 1, too").swap(
        "> first_query + lane;", "> std::max(first_query + lane, 1);"
    ),
    _cpu("causal-ragged-tile-unmasked", "mask", "a last tile that is not full is not masked").swap(
        "keys - 1 > first_query)", "keys - 1 > first_query + kBlockQ - 2)"
    ),
    _cpu("causal-mask-looked-at-earlier", "mask", "the mask is also applied to a tile of one key").swap(
        "keys - 1 > first_query)",
        "keys - 1 >= first_query)",
        equivalent="the one key of that tile is the query's own, which the mask leaves",
    ),
    _cpu("row-33-unwritten", "tail", "where S mod 64 is 33, the last query's output is not written").swap(
        "lane < queries; ++lane)", "lane < queries - (queries == 33); ++lane)"
    ),
    _cpu("row-written-past-17", "offset", "where S mod 64 is 17, a row is written past each head's end").swap(
        "lane < queries; ++lane)", "lane < queries + (queries == 17); ++lane)"
    ),
    _cpu("queries-read-past-end", "offset", "64 queries are read where fewer are left").swap(
        "read_rows(q, queries, w.k);",
        "read_rows(q, kBlockQ, w.k);",
        equivalent="the lanes of the queries that do not exist are never written, and a CPU lets them be read",
    ),
    _cpu("padding-not-zeroed", "initial value", "what fills up the last register tile is left of the tile before").swap(
        "(padded_keys - keys) * sizeof(w.k[0]));",
        "0 * sizeof(w.k[0]));",
        equivalent="the softmax takes `keys` rows of scores, and never reads those of the padding",
    ),
    _cpu("empty-block", "tail", "where S is a multiple of 64, a block of no queries is computed").swap(
        "(arguments.seq + kBlockQ - 1) / kBlockQ",
        "arguments.seq / kBlockQ + 1",
        file=TASKS,
        equivalent="a block of no queries writes nothing; where S is no multiple, there is none",
    ),
    _cpu("seq-cut-1024", "size", "keys past the first 1,024 are left out").swap(
        "arguments.causal ? first_query + queries : arguments.seq;",
        "std::min(1024, arguments.causal ? first_query + queries : arguments.seq);",
    ),
    _cpu("values-wrap-512", "offset", "values past the first 512 are read from the start again").swap(
        "read_rows(v + first_key * kHeadDim,", "read_rows(v + first_key % 512 * kHeadDim,"
    ),
    _cpu("heads-folded-1024", "size", "more than 1,024 heads times batches are folded onto each other").swap(
        "task / blocks,", "task / blocks % 1024,", file=TASKS
    ),
    _cpu("offset-32-bit", "size", "offsets in bytes are 32 bits wide, and overflow past 2 GiB").swap(
        "const int64_t offset = head * arguments.seq * kHeadDim;",
        "const int64_t offset = static_cast<int32_t>(head * arguments.seq * kHeadDim * sizeof(Element)) /\n"
        "                         static_cast<int32_t>(sizeof(Element));",
    ),
    _cpu("value-of-head-0", "offset", "head 7 reads the values of head 0").swap(
        "static_cast<const Element*>(arguments.v) + offset;",
        "static_cast<const Element*>(arguments.v) + (head == 7 ? 0 : offset);",
    ),
    _cpu(
        "output-not-rescaled",
        "rescaling",
        "the output is not brought down where the maximum rises by less than 4 times",
    ).swap("x *= correction;", "x *= correction > 0.25f ? Float{} + 1.0f : correction;"),
    _cpu("sum-not-rescaled", "rescaling", "the sum so far is not brought down to the new maximum").swap(
        "sum *= correction;", "sum *= Float{} + 1.0f;"
    ),
    _cpu("late-rise-clamped", "rescaling", "a maximum that rises late by more than a factor of 64 counts as 64").swap(
        "Float correction = before - maximum;",
        "Float correction = before - maximum;\n    correction = correction < -6.0f ? Float{} - 6.0f : correction;",
    ),
    _cpu(
        "maximum-forgotten", "rescaling", "each step's maximum is its own: it may be far below that of the steps before"
    ).swap("maximum = before;", "maximum = Float{} + std::numeric_limits<float>::lowest();"),
    _cpu("no-maximum", "special value", "the maximum is not taken off, so that large scores overflow")
    .swap("x -= maximum;", "x -= Float{};")
    .swap("Float correction = before - maximum;", "Float correction = Float{};"),
    _cpu(
        "sum-saturates", "data-dependent", "a sum of weights beyond 600 counts as 600: it takes as many equal keys"
    ).swap("1.0f / w.row_sum[lane]", "1.0f / std::min(w.row_sum[lane], 600.0f)"),
    _cpu("weights-truncated", "rounding", "weights are cut to bfloat16, instead of kept or rounded").swap(
        "sum += x;\n", "sum += x;\n      x = (Float)((typename Vector<Width>::Int)x & -0x10000);\n"
    ),
    _cpu("output-truncated", "rounding", "bfloat16 outputs are cut instead of rounded").swap(
        "(bits + 0x7FFF + ((bits >> 16) & 1)) >> 16", "bits >> 16", file=HALF
    ),
    _cpu("accumulator-bfloat16", "rounding", "the output so far is cut to bfloat16 in each step").swap(
        "x *= correction;\n", "x *= correction;\n      x = (Float)((typename Vector<Width>::Int)x & -0x10000);\n"
    ),
    _cpu("masked-weighs", "rounding", "no weight is below 2^-16, not even that of a masked key").swap(
        "kLowest = -127.0f;", "kLowest = -16.0f;"
    ),
    _cpu(
        "exp2-digits-swapped", "rounding", "two digits of a coefficient of 2^x have changed places: 3e-6 of each weight"
    ).swap("5.5504109e-2f", "5.5540109e-2f"),
    _cpu("log2e-short", "rounding", "log2(e) has four digits: 2e-4 of each score").swap("1.44269504f", "1.443f"),
    _cpu("subnormal-output-flushed", "special value", "float16 outputs below 6e-5 become zero").swap(
        "magnitude < (113u << 23) ? subnormal", "magnitude < (113u << 23) ? 0", file=HALF
    ),
    _cpu("subnormal-input-flushed", "special value", "float16 inputs below 6e-5 are read as zero").swap(
        "magnitude < 0x0400 ? as_bits(subnormal)", "magnitude < 0x0400 ? 0", file=HALF
    ),
    _cpu("infinity-read-as-65536", "special value", "a float16 Inf is read as 65,536, and NaN as a number beyond").swap(
        "(magnitude < 0x7C00 ? 112u << 23 : 224u << 23)", "(112u << 23)", file=HALF
    ),
    _cpu("nan-weighs-nothing", "special value", "a score that is NaN becomes a weight of 0").swap(
        "x = x < kLowest ? Float{} + kLowest : x;", "x = x > kLowest ? x : Float{} + kLowest;"
    ),
    _cpu("nan-rounded-as-a-number", "special value", "rounding to bfloat16 takes no care of NaN").swap(
        "(bits & 0x7FFFFFFF) > 0x7F800000 ? quiet_nan : rounded",
        "rounded",
        file=HALF,
        equivalent="the bits below bfloat16's are 0 in a NaN of a bfloat16 input, as in the one that arithmetic makes: "
        "it rounds to itself",
    ),
    _cpu("workspace-shared", "stream", "all threads share one workspace").swap(
        "  Workspace w;", "  static Workspace w;"
    ),
    _cpu("sum-half-initialised", "initial value", "the sums of queries 32 to 63 begin with whatever was there").swap(
        "sizeof(w.row_sum));", "sizeof(w.row_sum) / 2);"
    ),
    _cpu(
        "maximum-half-initialised", "initial value", "the maxima of queries 32 to 63 begin with whatever was there"
    ).swap("std::fill(w.row_max, w.row_max + kBlockQ,", "std::fill(w.row_max, w.row_max + kBlockQ / 2,"),
    _cpu(
        "query-zeroed-after-use", "input", "the first element of each tile of queries is set to zero once it was used"
    ).swap(
        "write_output(w, queries, out + first_query * kHeadDim);",
        "write_output(w, queries, out + first_query * kHeadDim);\n"
        "  from_float(0.0f, const_cast<Element*>(q)[first_query * kHeadDim]);",
    ),
)
