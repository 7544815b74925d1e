import { afterEach, expect, test } from "vitest";
import { Fault } from "#shared/fault/fault.ts";
import { type CpuBound, WorkThread } from "#shared/process/work-thread.ts";

interface Order {
  readonly name: string;
}

const module = new URL("../../harness/obedient-thread.ts", import.meta.url);
const bytes = (count = 10): Uint8Array => new Uint8Array(count);
const bound: CpuBound = { msPerMb: 500, fault: () => new Fault("bad_request", { message: "Too slow to read." }) };

const threads: WorkThread<Order, string>[] = [];
afterEach(async () => {
  for (const each of threads.splice(0)) await each.stop();
});
function thread(cpuBound?: CpuBound): WorkThread<Order, string> {
  const made = new WorkThread<Order, string>(module, cpuBound);
  threads.push(made);
  return made;
}

test("orders of a work thread are done in turn by sender, however many one sender has waiting", async () => {
  const worker = thread();
  const done: string[] = [];
  const orders = ["a1", "a2", "a3", "b1", "c1"].map(async (name) => {
    done.push(await worker.run({ name }, bytes(), { sender: name.slice(0, 1) }));
  });
  await Promise.all(orders);
  expect(done).toEqual(["a1", "a2", "b1", "c1", "a3"]);
  expect(worker.bytes).toBe(0);
});

test("orders of a work thread are dropped when their client leaves before their turn, and give their bytes back", async () => {
  const worker = thread(bound);
  const leaving = new AbortController();
  const stuck = worker.run({ name: "endless" }, bytes(), { sender: "a" });
  const left = worker.run({ name: "left" }, bytes(1_000), { sender: "b", signal: leaving.signal });
  leaving.abort(new Error("the client left"));
  await expect(left).rejects.toThrow("the client left");
  expect(worker.bytes).toBe(10);
  await expect(stuck).rejects.toThrow();
});

test("orders of a work thread end with their thread once they used more CPU time than their bytes permit, and the others are done by the next", async () => {
  const worker = thread(bound);
  const endless = worker.run({ name: "endless" }, bytes(), { sender: "a" });
  const others = ["b", "c"].map((name) => worker.run({ name }, bytes(), { sender: name }));
  await expect(endless).rejects.toMatchObject({ code: "bad_request", message: "Too slow to read." });
  expect(await Promise.all(others)).toEqual(["b", "c"]);
});
