import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";

const log = new URL("../../../shared/process/log.ts", import.meta.url).href;

/** Says something at once, in the next turns, and right before its end. */
const script = (end: string): string => `
  const { createLog } = await import(${JSON.stringify(log)});
  const log = createLog({ level: "info", name: "test" });
  log.info("at once");
  setImmediate(() => {
    log.info("soon after");
    setImmediate(() => {
      log.info("at the end");
      ${end}
    });
  });
`;

test.each([
  ["by itself", "", 0],
  ["on purpose", "process.exit(7);", 7],
  ["of a fault", 'throw new Error("it broke");', 1],
  ["of a promise that nobody waits for", 'void Promise.reject(new Error("it broke"));', 1],
])("a process that ends %s has written all of its lines, in their order and once", (_how, end, code) => {
  const { stderr, status } = spawnSync(process.execPath, ["--input-type=module", "-e", script(end)], {
    encoding: "utf8",
  });
  const said = stderr.split("\n").filter((line) => line.startsWith("{"));
  expect(said.map((line) => JSON.parse(line).msg)).toEqual(["at once", "soon after", "at the end"]);
  expect(status).toBe(code);
});
