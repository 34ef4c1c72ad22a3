"use strict";
(() => {
  // What each tile takes was worked out before; it is looked up here.
  const { axes, cards } = JSON.parse(document.getElementById("calculator-data").textContent);
  const form = document.getElementById("calculator-form");
  if (!form) return;
  const field = (name) => form.elements.namedItem(name);

  const item = (said) => {
    const made = document.createElement("li");
    made.textContent = said;
    return made;
  };
  const update = () => {
    const { card, answers, places } = cards[Number(field("card").value)];
    const chosen = Object.keys(axes).map((name) => Number(field(name).value));
    const place = Object.values(axes).reduce((sum, values, n) => sum * values.length + values.indexOf(chosen[n]), 0);
    document.getElementById("fits").replaceChildren(...answers[places[place]].map(item));
    const [rows, columns, stages, warps] = chosen;
    document.getElementById("command").textContent =
      `kernelgate resources --tile ${rows}x${columns} --stages ${stages} --warps ${warps} --card ${card}`;
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
