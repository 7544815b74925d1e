import { execFile } from "node:child_process";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { foundServers } from "../harness/found-servers.ts";

const script = join(import.meta.dirname, "../../infra/try-several-gateways.sh");

test("one script starts a whole site on this machine, and both machines outlive a killed gateway", async ({ skip }) => {
  const { nats, redis } = foundServers();
  if (nats.by !== "binary" || redis.by !== "binary") return skip("nats-server or redis-server is not on the PATH");
  const PATH = [dirname(nats.path), dirname(redis.path), process.env["PATH"]].join(delimiter);
  const { stdout, stderr } = await promisify(execFile)(script, { timeout: 60_000, env: { ...process.env, PATH } });
  const answers = stdout.split("\n").filter((line) => /^gateway-\d  /.test(line));
  const answer = expect.stringMatching(/ {2}token-0 token-1 token-2 $/);
  expect(answers).toEqual(Array.from({ length: 6 }, () => answer));
  expect(answers.slice(4).every((line) => line.startsWith("gateway-2"))).toBe(true);
  expect([stdout, stderr]).toEqual([expect.stringContaining("It works."), ""]);
}, 70_000);
