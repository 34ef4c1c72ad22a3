"use strict";
// Finds and orders the cases; without this script all of them are there, by name.
const tools = document.querySelector(".tools");
const find = document.getElementById("find");
const order = document.getElementById("order");
const groups = [...document.querySelectorAll(".group")];
const rows = groups.map((group) => [...group.querySelectorAll("tbody tr")]);
// From the most to be looked at: the largest change of time, the smallest multiple of the reference.
const worth = { release: ["since release", 1], best: ["over its best", 1], reference: ["× reference", -1] };

function found() {
  const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  groups.forEach((group, at) => {
    let inside = 0;
    for (const row of rows[at]) {
      const text = row.dataset.words.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      inside += row.hidden ? 0 : 1;
    }
    group.hidden = inside === 0;
    count += inside;
  });
  const all = rows.flat().length;
  const noun = all === 1 ? "case" : "cases";
  document.querySelector(".count").textContent = count === all ? `${all} ${noun}` : `${count} of ${all} ${noun}`;
}

function weight(row) {
  const [name, sign] = worth[order.value];
  const value = row.querySelector(`[data-name="${name}"]`).dataset.sort;
  return value === undefined ? -Infinity : sign * Number(value);
}

function ordered() {
  groups.forEach((group, at) => {
    const wanted = order.value ? [...rows[at]].sort((one, other) => weight(other) - weight(one) || 0) : rows[at];
    group.querySelector("tbody").append(...wanted);
  });
}

if (tools) {
  tools.hidden = false;
  find.addEventListener("input", found);
  order.addEventListener("change", ordered);
  found();
  ordered(); // a browser that goes back keeps what was chosen
}
