// Answers questions about workflows with GitHub's own parser and expression evaluator: one JSON object a line, in and out.
import { register } from "node:module";
import { createInterface } from "node:readline";

register("./json_as_module.mjs", import.meta.url);
const { parseWorkflow, convertWorkflowTemplate, NoOperationTraceWriter } = await import("@actions/workflow-parser");
const { parseAction, convertActionTemplate } = await import("@actions/workflow-parser/actions/index");
const { Evaluator, Lexer, Parser, data } = await import("@actions/expressions");

const trace = new NoOperationTraceWriter();
const said = (errors) => errors.map((error) => error.message ?? error.Message ?? String(error));

// {file, files}: what GitHub has against a workflow; `files` are the reusable ones that it may call, by path.
async function workflowErrors({ file, files }) {
  const { context, value } = parseWorkflow(file, trace);
  if (!value) return said(context.errors.getErrors());
  const provider = {
    getFileContent: async (reference) => {
      const found = files[reference.path];
      if (found === undefined) throw new Error(`no workflow ${reference.path}`);
      return { name: reference.path, content: found };
    },
  };
  const options = { errorPolicy: 1, fetchReusableWorkflowDepth: 1 };
  const template = await convertWorkflowTemplate(context, value, provider, options);
  return [...new Set([...said(context.errors.getErrors()), ...said(template.errors ?? [])])];
}

function actionErrors({ file }) {
  const { context, value } = parseAction(file, trace);
  if (value) convertActionTemplate(context, value);
  return said(context.errors.getErrors());
}

const STATUS = ["success", "failure", "cancelled", "always"];

function evaluated(expression, contexts, status = {}) {
  const functions = STATUS.map((name) => ({
    name,
    minArgs: 0,
    maxArgs: 0,
    call: () => new data.BooleanData(name === "always" || status[name] === true),
  }));
  const { tokens } = new Lexer(expression).lex();
  const tree = new Parser(tokens, Object.keys(contexts), functions).parse();
  const known = JSON.parse(JSON.stringify(contexts), data.reviver);
  return new Evaluator(tree, known, new Map(functions.map((each) => [each.name, each]))).evaluate();
}

// {text, contexts}: the value of a text with ${{ }}; alone it keeps its type, amid others it becomes text.
function expanded({ text, contexts }) {
  const alone = text.match(/^\s*\$\{\{((?:(?!\}\})[^])*)\}\}\s*$/);
  if (alone) return JSON.parse(JSON.stringify(evaluated(alone[1], contexts), data.replacer));
  return text.replace(/\$\{\{([^]*?)\}\}/g, (_, inner) => evaluated(inner, contexts).coerceString());
}

// {text, contexts, status}: whether an `if:` holds.
function holds({ text, contexts, status }) {
  const inner = text.replace(/^\s*\$\{\{([^]*)\}\}\s*$/, "$1");
  const asked = /\b(success|failure|cancelled|always)\s*\(/i.test(inner) ? inner : `success() && (${inner})`;
  return evaluated(`(${asked}) && true || false`, contexts, status).value;
}

const ANSWERS = { workflowErrors, actionErrors, expanded, holds };

for await (const line of createInterface({ input: process.stdin })) {
  const { question, ...rest } = JSON.parse(line);
  try {
    process.stdout.write(JSON.stringify({ answer: await ANSWERS[question](rest) }) + "\n");
  } catch (error) {
    process.stdout.write(JSON.stringify({ error: String(error.message ?? error) }) + "\n");
  }
}
