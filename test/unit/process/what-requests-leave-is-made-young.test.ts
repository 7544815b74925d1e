import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { until } from "../../harness/until.ts";

const run = promisify(execFile);
const bornYoung = join(import.meta.dirname, "../../../shared/process/born-young.ts");

/** Makes what stays for a while, as requests do that are under way, until V8 has learnt from it. */
const busy = `
const underWay = new Array(400_000);
for (let made = 0; made < 1_000_000; made += 1) {
  underWay[made % underWay.length] = { made, parts: [made, made + 1], of: { name: made } };
  if (made % 20_000 === 0) await new Promise((resolve) => setImmediate(resolve));
}`;

/** How many kinds of objects V8 decides to make old from the start. */
async function madeOld(script: string): Promise<number> {
  const node = ["--trace-pretenuring-statistics", "--input-type=module", "--eval", script];
  const { stdout } = await run(process.execPath, node);
  return Math.max(0, ...stdout.matchAll(/ tenured=(\d+)/g).map(([, kinds]) => Number(kinds)));
}

test("of what stays for a while V8 would make nearly all old from the start, and here nothing", async () => {
  // What V8 learns hangs on when its other threads are done with what they compile.
  const learns = async (): Promise<boolean> => (await madeOld(busy)) > 0;
  await until(learns, { what: "V8 to learn that these survive", timeoutMs: 15_000 });
  expect(await madeOld(`import { bearYoung } from ${JSON.stringify(bornYoung)}; bearYoung(); ${busy}`)).toBe(0);
});
