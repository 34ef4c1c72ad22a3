// What a reader would see wrong: text that runs out of the window or into other text, or that is too faint.
() => {
  const faults = [];
  const say = (what, element) => faults.push(`${what}: <${element.localName} class="${element.getAttribute("class") ?? ""}"> ${(element.textContent ?? "").trim().slice(0, 60)}`);
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) faults.push(`the page is ${document.documentElement.scrollWidth} wide`);

  const rgb = (text) => {
    const [r, g, b, a = 1] = (text.match(/[\d.]+/g) ?? [0, 0, 0, 0]).map(Number);
    return { r, g, b, a: text === "transparent" ? 0 : a };
  };
  const light = ({ r, g, b }) => {
    const [x, y, z] = [r, g, b].map((one) => one / 255).map((one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (one, other) => {
    const [high, low] = [light(one), light(other)].sort((a, b) => b - a);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const found = rgb(getComputedStyle(one).backgroundColor);
      if (found.a === 1) return found;
    }
    return rgb(getComputedStyle(document.documentElement).colorScheme.includes("dark") && matchMedia("(prefers-color-scheme: dark)").matches ? "rgb(18,18,18)" : "rgb(255,255,255)");
  };
  const ownText = (element) => Array.from(element.childNodes).some((node) => node.nodeType === 3 && node.data.trim());
  const scrolls = (element) => element.closest(".scroll, pre, .markdown-body table, .markdown-body pre");
  const seen = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest("script, style, defs, template");

  const texts = Array.from(document.body.querySelectorAll("*")).filter((element) => ownText(element) && seen(element));
  for (const element of texts) {
    const style = getComputedStyle(element);
    const inSvg = element instanceof SVGElement;
    if (element.localName !== "option" && contrast(rgb(inSvg ? style.fill : style.color), ground(element)) < 4.5) say("text too faint", element);
    const box = element.getBoundingClientRect();
    if (!scrolls(element) && (box.left < -0.5 || box.right > width + 0.5)) say(`out of the window, ${box.left} to ${box.right}`, element);
  }

  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2.5;
  const apart = (elements) => elements.forEach((one, index) => {
    const box = one.getBoundingClientRect();
    for (const other of elements.slice(index + 1)) if (meet(box, other.getBoundingClientRect())) say(`meets "${other.textContent.trim()}"`, one);
  });
  for (const svg of document.querySelectorAll("svg")) if (seen(svg)) apart(Array.from(svg.querySelectorAll("text")));
  for (const bar of document.querySelectorAll("rect.grew, rect.shrank, rect.unexplained, rect.whole-change, rect.throttled")) {
    if (!seen(bar)) continue;
    for (const text of bar.closest("svg").querySelectorAll("text")) {
      if (meet(bar.getBoundingClientRect(), text.getBoundingClientRect())) say("meets a bar", text);
    }
  }
  for (const row of document.querySelectorAll("summary")) apart(Array.from(row.children).filter(seen));
  for (const whole of document.querySelectorAll("main, section, .markdown-body")) {
    apart(Array.from(whole.children).filter((element) => seen(element) && !element.classList.contains("definitions")));
  }

  // The heads of lines, marks and areas that mean something; grid and ground only help the eye.
  const meaning = ".curve, .whisker, .process, .whole, .cut, .gate, .gain, .edge, .zero, .state, .throttled, .roof, .arrow, .grew, .shrank, .unexplained, .whole-change, circle.head, rect.head, rect.base, path.all, .beyond, .mark, .tools input, .tools select, .tools button";
  for (const element of document.querySelectorAll(meaning)) {
    if (!seen(element) || element instanceof SVGTextElement) continue;
    const style = getComputedStyle(element);
    const colours = element instanceof SVGElement ? [style.stroke, style.fill] : [style.borderColor];
    const under = ground(element.parentElement);
    if (!colours.some((one) => one !== "none" && contrast(rgb(one), under) >= 3)) say("mark too faint", element);
  }
  return faults;
}
