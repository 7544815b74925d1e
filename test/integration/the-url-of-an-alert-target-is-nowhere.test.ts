import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Redis } from "ioredis";
import { expect, onTestFinished, test } from "vitest";
import { backupCommand, restoreCommand } from "../../services/cli/commands/backup.ts";
import { alertsCommand } from "../../services/cli/commands/alerts.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { startGatewayInProcess } from "../harness/gateway-in-process.ts";
import { dumpOf, startRedisServer } from "../harness/redis-server.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import { type Settings, testPepper } from "../harness/trunkline-command.ts";
import { commandHere } from "../harness/trunkline-here.ts";
import { until } from "../harness/until.ts";

const canary = "T0CANARYOFTHEPATH";
const newPepper = "the pepper that takes its place, long enough";

/** Starts a receiver, and returns its URL with the canary, and a function that sets the status of its answers. */
async function startReceiver() {
  let status = 204;
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? "");
    response.writeHead(status, { location: request.url }).end(request.url);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => void server.close());
  const answer = (next: number): void => void (status = next);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/${canary}?key=${canary}`, answer, paths };
}

/** Returns all files of a folder as texts. */
async function textsOf(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Promise.all(files.map(({ parentPath, name }) => readFile(join(parentPath, name), "latin1")));
}

test.each(["SQLite", "Redis"])(
  "the URL of an alert target is in no file, log, backup, list or error of a site on %s, and works after a move to another pepper and another store",
  async (kind) => {
    if (kind === "Redis" && lentOnly("redis")) return;
    const [stateDir, elsewhere, logged] = [folderOfTest(), folderOfTest(), [] as string[]];
    const redis = kind === "Redis" ? await startRedisServer() : undefined;
    if (redis !== undefined) onTestFinished(() => redis[Symbol.asyncDispose]());
    const place = redis === undefined ? { stateDir } : { stateDir, redisUrl: redis.url };
    const start = async (at: Parameters<typeof startGatewayInProcess>[0], env: Settings = {}) => {
      const gateway = await startGatewayInProcess({
        ...at,
        logLevel: "trace",
        env: { TRUNKLINE_ALERT_HOSTS: "127.0.0.1", ...env },
      });
      onTestFinished(() => gateway[Symbol.asyncDispose]());
      return gateway;
    };
    const receiver = await startReceiver();
    const first = await start(place);
    const admin = (await first.issue({ kind: "admin" })).endpoint.key;
    const told: string[] = [];
    const ask = async (gateway: typeof first, ...args: string[]) => {
      const environment = {
        TRUNKLINE_STATE_DIR: stateDir,
        TRUNKLINE_KEY_PEPPER: testPepper,
        TRUNKLINE_ADMIN_KEY: admin,
        TRUNKLINE_OPERATIONS_URL: gateway.operationsUrl,
        ...(redis && { TRUNKLINE_REDIS_URL: redis.url }),
      };
      const said = await commandHere(alertsCommand, args, { environment }).catch((error: unknown) => ({
        out: "",
        err: String(error),
      }));
      told.push(said.out, said.err);
      return said;
    };
    await ask(first, "add", "--to", receiver.url, "--on", "budget", "--name", "ops");
    expect((await ask(first, "test", "ops")).out).toContain("ops took the call with the status 204");
    for (const status of [500, 307]) {
      receiver.answer(status);
      expect((await ask(first, "test", "ops")).err).toContain(`it answers with the status ${status}`);
    }
    receiver.answer(204);
    expect(receiver.paths).toEqual(Array.from({ length: 3 }, () => `/${canary}?key=${canary}`));
    expect((await ask(first, "list")).out).toMatch(/^ops +127\.0\.0\.1:\d+ +budget/m);
    const log = await (
      await fetch(`${first.operationsUrl}/admin/v1/log`, { headers: { authorization: `Bearer ${admin}` } })
    ).text();
    expect(log).toContain("alert_set");

    // The old pepper goes once a gateway has started with the new one.
    const second = await start(place, { TRUNKLINE_KEY_PEPPER: newPepper, TRUNKLINE_KEY_PEPPER_ALSO: testPepper });
    await until(async () => (await second.store.alerts.find("ops"))?.version === 2, {
      what: "the target to be sealed anew",
    });
    expect((await ask(first, "test", "ops")).err).toContain("encrypted with another pepper");
    const own = { TRUNKLINE_KEY_PEPPER: newPepper };
    const file = join(elsewhere, "site.backup");
    const here = { ...own, TRUNKLINE_STATE_DIR: stateDir, ...(redis && { TRUNKLINE_REDIS_URL: redis.url }) };
    await commandHere(backupCommand, [file], { environment: here });
    const moved = join(elsewhere, "moved");
    await commandHere(restoreCommand, [file], { environment: { ...own, TRUNKLINE_STATE_DIR: moved } });
    const third = await start({ stateDir: moved }, own);
    const other = (await third.issue({ kind: "admin" })).endpoint.key;
    const headers = { authorization: `Bearer ${other}` };
    const tested = await fetch(`${third.operationsUrl}/admin/v1/alerts/ops/test`, { method: "POST", headers });
    expect(await tested.json()).toEqual({ alert: "ops", status: 204 });

    for (const gateway of [first, second, third]) logged.push(...gateway.logged);
    const dump = redis === undefined ? "" : await dumped(redis.url);
    const unpacked = gunzipSync(await readFile(file)).toString("latin1");
    const everything = [
      ...(await textsOf(stateDir)),
      ...(await textsOf(moved)),
      dump,
      unpacked,
      log,
      ...logged,
      ...told,
    ];
    expect(everything.join("\n")).toContain("127.0.0.1");
    for (const text of everything) expect(text).not.toContain(canary);
  },
);

async function dumped(url: string): Promise<string> {
  const client = new Redis(url);
  const dump = await dumpOf(client);
  client.disconnect();
  return [...dump].flat().join("\n");
}
