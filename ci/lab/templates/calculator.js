// How many blocks a multiprocessor holds, by the rules of bench/build/occupancy.py and bench/explain/tile.py: a test
// compares the two. The numbers of the rules and of the GPUs come from there.
"use strict";
const calculator = (rules) => {
  const up = (value, unit) => Math.ceil(value / unit) * unit;
  const byRegisters = (gpu, warps, registers) => {
    if (registers === 0) return gpu.registers;
    const aWarp = up(registers * rules.warp, rules.registers_per_warp_unit);
    const fitting = Math.floor(Math.floor(gpu.registers / aWarp) / rules.schedulers) * rules.schedulers;
    return Math.floor(fitting / warps);
  };
  const byShared = (gpu, bytes) => bytes > gpu.block_shared_bytes
    ? 0 : Math.floor(gpu.shared_bytes / up(bytes + rules.system_shared, rules.shared_unit));

  const occupancy = (gpu, threads, registers, bytes) => {
    const warps = Math.ceil(threads / rules.warp);
    const allowed = {
      "warps": Math.floor(gpu.warps / warps),
      "blocks": gpu.blocks,
      "registers": byRegisters(gpu, warps, registers),
      "shared memory": byShared(gpu, bytes),
    };
    const blocks = Math.min(...Object.values(allowed));
    const limits = Object.keys(allowed).filter((name) => allowed[name] === blocks);
    return { blocks, warps: blocks * warps, percent: (100 * blocks * warps) / gpu.warps, limits };
  };

  const kib = (bytes) => `${Number((bytes / 1024).toPrecision(6))} KiB`;
  // Of a thread whose share of the tile takes `least`; 0 is unknown.
  const about = (least) => least ? Math.min(rules.max_registers, least + rules.registers_beside) : 0;

  // How well a block fits; where it does not, `problem` says why. `registers` are a thread's own where they are known.
  const fit = ({ shared_bytes: bytes, threads, least_registers: least = 0, registers = about(least) }, gpu) => {
    if (bytes > gpu.block_shared_bytes) {
      return { problem: `does not fit: ${kib(bytes)} of shared memory per block, where a block may have ` +
        `${Math.floor(gpu.block_shared_bytes / 1024)} KiB; take a smaller tile or fewer stages` };
    }
    if (least > rules.max_registers) {
      return { problem: `will spill: the tile alone takes ${least} registers per thread, where ` +
        `${rules.max_registers} is the limit; take more warps or a smaller tile` };
    }
    const fits = occupancy(gpu, threads, registers, bytes);
    if (fits.blocks === 0) {
      return { problem: `does not fit: ${fits.limits.join(", ")} leave no room for one block; take fewer warps` };
    }
    return fits;
  };

  // "48KiB", "49152" or "49152B", as `kernelgate resources --tile` takes it; null for other words.
  const bytes = (words) => {
    const found = /^(\d{1,9})(KiB|B)?$/.exec(words);
    return found && Number(found[1]) * (found[2] === "KiB" ? 1024 : 1);
  };
  return { occupancy, about, fit, bytes, kib };
};
