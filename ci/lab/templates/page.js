"use strict";
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
