"use strict";
// Compares two commits; dashboard.py says by which rule. Each commit is a script of its own, since a page that is opened
// from a file may load nothing else.
const [base, head, said, table] = ["base", "head", "said", "compared"].map((id) => document.getElementById(id));
const { series, commits } = kernelgate_commits;
const known = new Map();
const policy = globalThis.trustedTypes?.createPolicy("kernelgate", { createScriptURL: (url) => url });

function kernelgate_commit(name, value) {
  known.set(name, value);
}

function loaded([name, , file]) {
  if (known.has(name)) return Promise.resolve();
  return new Promise((done, failed) => {
    const script = document.createElement("script");
    const url = `commits/${encodeURIComponent(file)}.js`;
    script.src = policy ? policy.createScriptURL(url) : url;
    script.onload = done;
    script.onerror = () => failed(new Error(`the file of commit ${name} is missing: write the site again`));
    document.head.append(script);
  });
}

// What was typed may be shorter than the names here, or a whole id.
const begins = (name, text) => name.startsWith(text) || (name.length === 12 && text.startsWith(name));

function chosen(input) {
  const text = input.value.trim().toLowerCase();
  const fitting = text ? commits.filter(([name]) => begins(name.toLowerCase(), text)) : [];
  return fitting.length === 1 ? fitting[0] : null;
}

const percent = (log) => 100 * Math.expm1(log);

function apart(change, one, other, means) {
  const reach = one === null || other === null ? null : Math.hypot(one, other);
  const interval = reach === null ? null : [percent(change - reach), percent(change + reach)];
  return { change: percent(change), interval, means };
}

// The change the other way round, in percent.
const inverted = (change) => 100 * (100 / (100 + Math.max(change, -99.99)) - 1);

function together(number, from, to, [baseName, headName]) {
  const means = "the same processes";
  const direct = to.together.findLast(([at, name]) => at === number && name === baseName);
  if (direct) return { change: direct[2], interval: direct[3], means };
  const other = from.together.findLast(([at, name]) => at === number && name === headName);
  return other && { change: inverted(other[2]), interval: other[3] && [...other[3]].reverse().map(inverted), means };
}

function between(number, from, to, names) {
  const paired = together(number, from, to, names);
  if (paired) return paired;
  const [one, other] = [from.measured[number], to.measured[number]];
  const pinned = one.length > 3 && other.length > 3 && one[5] === other[5];
  const alike = one[2] === other[2];
  const means = pinned ? `the pinned commit ${one[5].slice(0, 7)}${alike ? "" : ", in two environments"}` : "times of different days";
  // How unequally a new environment changes the two, no scatter shows.
  if (pinned) return { ...apart(other[3] - one[3], alike ? other[4] : null, one[4], means), about: !alike };
  if (alike) return { ...apart(Math.log(other[0] / one[0]), other[1], one[1], means), about: true };
  return { change: null, interval: null, means: "two environments: they do not compare" };
}

function duration(us) {
  const [scale, unit] = [[1e6, "s"], [1e3, "ms"], [1, "µs"]].find(([size]) => us >= size) ?? [1e-3, "ns"];
  return `${(us / scale).toPrecision(4)} ${unit}`;
}

function signed(value, digits) {
  const text = Math.abs(value).toFixed(digits);
  return (Number(text) === 0 ? "" : value < 0 ? "−" : "+") + text;
}

// `name`: its column's, for a narrow window.
function cell(row, text, name, number = false) {
  const made = document.createElement(name ? "td" : "th");
  if (name) made.dataset.name = name;
  made.textContent = text;
  if (number) made.className = "number";
  row.append(made);
  return made;
}

function drawn(from, to, names) {
  const both = Object.keys(to.measured).filter((number) => number in from.measured).map(Number);
  const lines = both.map((number) => [number, between(number, from, to, names)]);
  lines.sort(([, one], [, other]) => Math.abs(other.change ?? 0) - Math.abs(one.change ?? 0));
  const body = table.tBodies[0];
  body.replaceChildren();
  for (const [number, { change, interval, means, about }] of lines) {
    const row = document.createElement("tr");
    const [card, name, gpu, id] = series[number];
    const link = document.createElement("a");
    link.href = `series/${id}.html`;
    link.textContent = [card, name].filter(Boolean).join(" ");
    cell(row, "").append(link, gpu ? ` on ${gpu}` : "");
    cell(row, duration(from.measured[number][0]), "base", true);
    cell(row, duration(to.measured[number][0]), "head", true);
    const digits = interval && interval[1] - interval[0] < 0.1 ? 2 : 1;
    const size = cell(row, change === null ? "—" : `${about ? "≈ " : ""}${signed(change, digits)}% `, "change", true);
    if (interval) {
      const small = document.createElement("small");
      small.textContent = `[${interval.map((end) => signed(end, digits)).join(", ")}]`;
      size.append(small);
    }
    cell(row, means, "known from");
    body.append(row);
  }
  table.hidden = both.length === 0;
  return both.length;
}

async function compared() {
  table.hidden = true;
  const pair = [chosen(base), chosen(head)];
  const missing = [base, head].filter((input, at) => input.value.trim() && !pair[at]);
  if (missing.length) {
    said.textContent = `No single measured commit begins with ${missing.map((one) => one.value.trim()).join(" or ")}.`;
    return;
  }
  if (!pair[0] || !pair[1]) {
    said.textContent = `Choose two of ${commits.length} commits.`;
    return;
  }
  try {
    await Promise.all(pair.map(loaded));
  } catch (error) {
    said.textContent = error.message;
    return;
  }
  if (chosen(base) !== pair[0] || chosen(head) !== pair[1]) return; // others were chosen meanwhile
  const [from, to] = pair.map(([name]) => known.get(name));
  const count = drawn(from, to, pair.map(([name]) => name));
  const noun = count === 1 ? "1 case was" : `${count} cases were`;
  said.textContent = count ? `${noun} measured of both, the largest change first.` : "No case was measured of both.";
  history.replaceState(null, "", `#${pair[0][0]}..${pair[1][0]}`);
}

for (const [name, day] of commits) {
  const option = document.createElement("option");
  option.value = name;
  option.label = day ? `${name.slice(0, 7)}, ${day}` : name;
  document.getElementById("commits").append(option);
}
const asked = decodeURIComponent(location.hash.slice(1)).split("..");
if (asked.length === 2) [base.value, head.value] = asked;
else if (commits.length > 1) [head.value, base.value] = [commits[0][0], commits[1][0]];
document.querySelector(".tools").hidden = false;
for (const input of [base, head]) input.addEventListener("change", compared);
document.getElementById("swap").addEventListener("click", () => {
  [base.value, head.value] = [head.value, base.value];
  compared();
});
compared();
