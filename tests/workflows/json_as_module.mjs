// A load hook: @actions/workflow-parser imports its JSON schemas without the import attribute that Node asks for.
export async function load(url, context, nextLoad) {
  if (!url.endsWith(".json")) return nextLoad(url, context);
  const { readFile } = await import("node:fs/promises");
  const source = `export default ${await readFile(new URL(url), "utf8")};`;
  return { format: "module", source, shortCircuit: true };
}
