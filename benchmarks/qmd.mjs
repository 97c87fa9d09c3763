// node qmd.mjs PACKAGE INDEX NOTES: answers one JSON line for each on standard input.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [home, dbPath, notes] = process.argv.slice(2);
const { createStore } = await import(pathToFileURL(join(home, "dist", "index.js")));
const { version } = JSON.parse(readFileSync(join(home, "package.json"), "utf8"));
const store = await createStore({
  dbPath,
  config: { collections: { notes: { path: notes, pattern: "**/*.md" } } },
});

async function timed(work) {
  const cpu = process.cpuUsage();
  const begun = process.hrtime.bigint();
  const found = await work();
  const wall = Number(process.hrtime.bigint() - begun) / 1e9;
  const used = process.cpuUsage(cpu);
  return { wall, cpu: (used.user + used.system) / 1e6, found: found?.length ?? null };
}

console.log(JSON.stringify({ version }));
for await (const line of createInterface({ input: process.stdin })) {
  const { query } = JSON.parse(line);
  const work = query ? () => store.searchLex(query, { limit: 10 }) : () => store.update();
  console.log(JSON.stringify(await timed(work)));
}
