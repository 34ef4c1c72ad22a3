{% include "calculator.js" %}
(() => {
  const { gpus, axes, cards, rules, own } = JSON.parse(document.getElementById("calculator-data").textContent);
  const { about, fit, bytes, kib } = calculator(rules);
  const form = document.getElementById("calculator-form");
  const [block, command, rows] = ["block", "command", "fits"].map((id) => document.getElementById(id));
  const field = (name) => form.elements.namedItem(name);

  const cell = (row, text, name = "td") => {
    const made = document.createElement(name);
    made.textContent = text;
    row.append(made);
    return made;
  };
  const shown = (gpu, needs) => {
    const row = document.createElement("tr");
    cell(row, gpu.key === own ? `${gpu.name}, this session's` : gpu.name, "th").scope = "row";
    const found = fit(needs, gpu);
    if (found.problem) {
      const said = cell(row, found.problem);
      said.colSpan = 4;
      said.className = "problem";
    } else {
      for (const value of [found.blocks, found.warps, `${Number(found.percent.toPrecision(3))}%`]) {
        cell(row, value).className = "number";
      }
      cell(row, found.limits.join(" and "));
    }
    return row;
  };

  const show = (said, typed, needs) => {
    block.textContent = said;
    command.textContent = typed;
    command.hidden = !typed;
    rows.replaceChildren(...(needs ? gpus.map((gpu) => shown(gpu, needs)) : []));
    rows.parentElement.hidden = !needs;
  };
  const threadsOf = (count) => `${count} thread${count === 1 ? "" : "s"}`;

  const ofTile = () => {
    const { card, answers, places } = cards[Number(field("card").value)];
    const chosen = Object.keys(axes).map((name) => Number(field(name).value));
    const place = Object.values(axes).reduce((sum, values, n) => sum * values.length + values.indexOf(chosen[n]), 0);
    const said = answers[places[place]];
    const [tall, wide, stages, warps] = chosen;
    const which = cards.length > 1 ? ` --card ${card}` : "";
    const typed = `kernelgate resources --tile ${tall}x${wide} --stages ${stages} --warps ${warps}${which} --gpu ${own || "h200"}`;
    if (typeof said === "string") return show(`There is no such tile: ${said}.`, typed, null);
    const least = said.registers;
    const registers = least ? `, about ${about(least)} registers per thread (at least ${least})` : "";
    return show(`A block takes ${kib(said.shared_bytes)} of shared memory, ${threadsOf(said.threads)}${registers}.`, typed,
      { shared_bytes: said.shared_bytes, threads: said.threads, least_registers: least });
  };

  const whole = (name, least, most) => {
    const value = field(name).valueAsNumber;
    return Number.isInteger(value) && value >= least && value <= most ? value : null;
  };
  const ofBytes = () => {
    const shared = bytes(field("bytes").value.trim());
    const threads = whole("threads", 1, rules.max_threads);
    const registers = whole("registers", 0, rules.max_registers);
    if (shared === null) return show("Shared memory: write bytes, such as 49152, or 48KiB.", "", null);
    if (threads === null) return show(`Threads: a block has 1 to ${rules.max_threads}.`, "", null);
    if (registers === null) return show(`Registers: a thread has at most ${rules.max_registers}; 0 is unknown.`, "", null);
    const known = registers ? `, ${registers} registers per thread` : ", registers unknown";
    return show(`A block takes ${kib(shared)} of shared memory, ${threadsOf(threads)}${known}.`, "",
      { shared_bytes: shared, threads, registers });
  };

  const update = () => {
    const byTile = field("by").value === "tile";
    document.getElementById("by-tile").hidden = !byTile;
    document.getElementById("by-bytes").hidden = byTile;
    (byTile ? ofTile : ofBytes)();
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", update);
  form.hidden = false;
  update();
})();
(() => {
  // Served by `kernelgate session page --serve`: what changed in the log is shown as it comes.
  const status = document.getElementById("live");
  if (!status) return;
  const parts = () => Array.from(document.getElementById("shown").children);
  const said = (text) => { if (status.textContent !== text) status.textContent = text; };
  let answered = new Date();

  const put = (html) => {
    const fresh = document.createElement("template");
    fresh.innerHTML = html;
    const [old, made] = [parts(), Array.from(fresh.content.children)];
    if (old.length !== made.length) return document.getElementById("shown").replaceChildren(...made);
    old.forEach((part, n) => { if (part.outerHTML !== made[n].outerHTML) part.replaceWith(made[n]); });
  };
  const ask = async () => {
    try {
      const answer = await fetch("/state.json", { cache: "no-store", signal: AbortSignal.timeout(10000) });
      const { html, error } = await answer.json();
      answered = new Date();
      if (error) said(`What is shown is older than the log: ${error}`);
      else { put(html); said("Live: what is logged appears here."); }
      status.className = error ? "remark bad" : "live";
    } catch {
      said(`No answer since ${answered.toLocaleTimeString()}: is kernelgate session page --serve still running?`);
      status.className = "remark bad";
    }
    setTimeout(ask, 2000);
  };
  ask();
})();
