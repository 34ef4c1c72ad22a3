// A client of `kernelgate mcp` by the TypeScript SDK: does what the first argument, JSON, says and prints what came of it.
//
// server: command, args, cwd, env. calls: name and arguments, one after the other. follow: then the `next` of each
// answer, at most so often; where a call of `before` has that name, it is made in its place. ready: a file that the
// last call makes: then it is cancelled, or with `hangUp` this process ends.

import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";

const asked = JSON.parse(process.argv[2]);
const client = new Client({ name: "kernelgate-tests", version: "1" });
await client.connect(new StdioClientTransport({ ...asked.server, stderr: "ignore" }));
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const told = [];
let heard = 0;

async function call(one, signal) {
  const options = { timeout: 600_000, signal, onprogress: () => (heard += 1) };
  const made = await client.callTool({ name: one.name, arguments: one.arguments }, undefined, options);
  told.push({ name: one.name, failed: Boolean(made.isError), said: made.structuredContent });
  return made.structuredContent;
}

async function interrupted(one) {
  const stop = new AbortController();
  const making = call(one, stop.signal).catch((error) => told.push({ name: one.name, cancelled: String(error) }));
  while (!existsSync(asked.ready)) await setTimeout(20);
  if (asked.hangUp) process.exit(0);
  stop.abort();
  await making;
}

let said;
for (const one of asked.calls.slice(0, asked.ready ? -1 : undefined)) said = await call(one);
if (asked.ready) await interrupted(asked.calls.at(-1));
for (let left = asked.follow ?? 0; left > 0 && said?.next; left -= 1) {
  const { tool, arguments: given } = said.next;
  said = await call(asked.before?.[tool] ?? { name: tool, arguments: given });
}
console.log(JSON.stringify({ tools, told, heard, version: client.getServerVersion().version }));
await client.close();
