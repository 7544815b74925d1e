import { expect, test, vi } from "vitest";
import { createLog } from "#shared/process/log.ts";
import { packagePath } from "#shared/protocol/site-package.ts";
import { createServer } from "../../../../services/gateway/server.ts";
import { packageRetryMs, servePackage } from "../../../../services/gateway/tunnels/routes-before-pairing.ts";
import { TurnableClock } from "../../../harness/turnable-clock.ts";

function started(read: () => Promise<Buffer>) {
  const clock = new TurnableClock();
  const logged: string[] = [];
  const log = createLog({ level: "info", name: "test", write: (line) => void logged.push(line) });
  const server = createServer({ log, bodyBytesMax: 1024, bodyLimitName: "bodyBytesMax" });
  servePackage(server, { clock, log, read });
  const ask = () => server.inject({ url: `${packagePath}?0.2.0` });
  return { clock, logged, ask };
}

test("a package that cannot be made is tried once in ten minutes, and its reason is logged once", async () => {
  const read = vi.fn(async (): Promise<Buffer> => Promise.reject(new Error("rolldown is missing")));
  const { clock, logged, ask } = started(read);
  for (const answer of await Promise.all([ask(), ask()])) {
    expect(answer.statusCode).toBe(404);
    expect(answer.json().error.message).toContain("without the package that machines install");
    expect(answer.body).not.toContain("rolldown");
  }
  clock.advance(packageRetryMs - 1);
  await ask();
  expect(read).toHaveBeenCalledTimes(1);
  clock.advance(1);
  await ask();
  expect(read).toHaveBeenCalledTimes(2);
  expect(logged.filter((line) => line.includes("rolldown is missing"))).toHaveLength(1);
});

test("a package that can be made later is served from then on, and made once", async () => {
  const read = vi.fn(async (): Promise<Buffer> => Buffer.from("a package"));
  read.mockRejectedValueOnce(new Error("no room left"));
  const { clock, ask } = started(read);
  expect((await ask()).statusCode).toBe(404);
  clock.advance(packageRetryMs);
  for (const answer of [await ask(), await ask()]) expect([answer.statusCode, answer.body]).toEqual([200, "a package"]);
  expect(read).toHaveBeenCalledTimes(2);
});
