import { expect, test } from "vitest";
import { Lifecycle, watchNpm } from "#shared/process/lifecycle.ts";
import { createLog } from "#shared/process/log.ts";
import { TurnableClock } from "../../harness/turnable-clock.ts";

const start = { npm_package_name: "trunkline", npm_lifecycle_event: "start" };
const command = { npm_package_name: "trunkline", npm_lifecycle_event: "trunkline" };
const npx = { npm_lifecycle_event: "npx", npm_lifecycle_script: "'trunkline'" };

/** A process with this environment, whose parent goes. */
function orphaned(environment: Record<string, string>, platform = "linux") {
  const clock = new TurnableClock();
  const lifecycle = new Lifecycle({ clock, log: createLog({ level: "silent", name: "test" }) });
  let parent = 7;
  const told = watchNpm({ environment, lifecycle, clock, parent: () => parent, platform });
  clock.advance(10_000);
  expect(told.aborted).toBe(false);
  parent = 1;
  clock.advance(1_000);
  return { told, lifecycle, clock };
}

test.each([start, command, npx])(
  "a process started by the script $npm_lifecycle_event stops when npm has gone",
  (script) => {
    const { told } = orphaned(script);
    expect([told.aborted, told.reason]).toEqual([true, "npm has gone"]);
  },
);

test.each([
  ["a supervisor", {}],
  ["a script of another project", { npm_package_name: "site", npm_lifecycle_event: "start" }],
  ["a command of another package that npx started", { npm_lifecycle_event: "npx", npm_lifecycle_script: "'site'" }],
  ["another script, as that of the tests", { npm_package_name: "trunkline", npm_lifecycle_event: "test" }],
])("who was started by %s goes on when its parent goes", (_by, environment) => {
  const { told, clock } = orphaned(environment);
  expect([told.aborted, clock.timersWaiting]).toEqual([false, 0]);
});

test("a process on Windows, where no process gets another parent, does not look for npm", () => {
  const { told, clock } = orphaned(start, "win32");
  expect([told.aborted, clock.timersWaiting]).toEqual([false, 0]);
});

test("a watcher that has stopped looks no more", async () => {
  const { lifecycle, clock } = orphaned(start);
  await lifecycle.stop(0);
  expect(clock.timersWaiting).toBe(0);
});
