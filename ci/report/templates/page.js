// Finds, sorts, opens and prints cases. Without it the page has everything as well, in one order.
"use strict";
(() => {
  // Paper opens nothing: all that is closed is printed, and closed again afterwards.
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = Array.from(document.querySelectorAll("details:not([open])"));
    for (const one of closed) one.open = true;
  });
  addEventListener("afterprint", () => closed.forEach((one) => { one.open = false; }));

  const list = document.getElementById("cases");
  if (!list) return;
  const { cases } = JSON.parse(document.getElementById("data").textContent);
  const rows = Array.from(list.children, (element, index) => ({ element, index, ...cases[index] }));
  const summaries = () => rows.map((row) => row.element).sort((a, b) => place(a) - place(b))
    .filter((element) => !element.hidden).map((element) => element.querySelector("summary"));
  const place = (element) => Array.prototype.indexOf.call(list.children, element);

  const open = () => {
    const target = location.hash && document.getElementById(location.hash.slice(1));
    if (target && target.localName === "details") {
      target.open = true;
      target.querySelector("summary").focus();
    }
  };
  addEventListener("hashchange", open);
  open();

  // Up and down go from case to case; what is typed into a field stays there.
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || event.target.localName !== "summary") return;
    const shown = summaries();
    const next = shown[shown.indexOf(event.target) + step];
    if (next) {
      event.preventDefault();
      next.focus();
    }
  });

  const tools = document.getElementById("tools");
  if (!tools) return;
  const [find, show, sort, all, count] = ["find", "show", "sort", "open", "count"].map((id) => document.getElementById(id));
  tools.hidden = false;
  tools.addEventListener("submit", (event) => event.preventDefault());

  const orders = {
    worst: (a, b) => a.index - b.index,
    name: (a, b) => a.name.localeCompare(b.name, "en", { numeric: true }) || a.index - b.index,
    time: (a, b) => (b.head_us ?? -1) - (a.head_us ?? -1) || a.index - b.index,
  };
  const update = () => {
    const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of rows) {
      const text = `${row.gpu} ${row.card} ${row.id} ${row.name}`.toLowerCase();
      const status = row.element.querySelector(".status").textContent;
      row.element.hidden = !words.every((word) => text.includes(word)) || (show.value !== "" && show.value !== status);
    }
    const shown = rows.filter((row) => !row.element.hidden).length;
    count.textContent = `${shown} of ${rows.length} cases`;
  };
  find.addEventListener("input", update);
  show.addEventListener("change", update);
  sort.addEventListener("change", () => list.append(...rows.slice().sort(orders[sort.value]).map((row) => row.element)));
  all.addEventListener("click", () => {
    const shown = rows.map((row) => row.element).filter((element) => !element.hidden);
    const opened = shown.some((element) => !element.open);
    for (const element of shown) element.open = opened;
    all.textContent = opened ? "Close all" : "Open all";
  });
  update();
})();
