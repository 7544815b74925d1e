import { join } from "node:path";
import { expect, test } from "vitest";
import { lentOnly } from "../harness/found-servers.ts";
import { startOperatorNats } from "../harness/infra/operator-nats.ts";
import { startRedisServer } from "../harness/redis-server.ts";
import { Site } from "../harness/start-site.ts";
import { anywhere } from "../harness/start-trunkline.ts";
import { folderOfTest } from "../harness/temporary-folder.ts";
import type { Settings } from "../harness/trunkline-command.ts";
import { trunklineHere } from "../harness/trunkline-here.ts";
import { TrunklineProcess } from "../harness/trunkline-process.ts";

async function succeed(args: readonly string[], settings: Settings): Promise<string> {
  const { exitCode, out, err } = await trunklineHere(args, settings);
  expect(err + String(exitCode)).toMatch(/0$/);
  return out;
}

test.skipIf(lentOnly("nats", "redis"))(
  "a backup of trunkline up moves its key and its paired machine to a gateway with NATS and Redis",
  async () => {
    const folder = folderOfTest();
    const file = join(folder, "site.backup");
    await using site = await Site.start();
    const env = { TRUNKLINE_STATE_DIR: join(folder, "loft"), TRUNKLINE_SCRIPTED_MODELS: "scripted:mlx" };
    await site.startAgent(["--join", await site.joinLine("loft")], env);
    const says = { model: "scripted:mlx", says: "/script tokens=3" };
    await site.endpoint.untilListed(says.model);
    const before = await site.endpoint.answer(says);
    await succeed(["backup", file, "--secrets"], { TRUNKLINE_STATE_DIR: site.stateDir });
    await site.up.terminate();

    await using nats = await startOperatorNats();
    await using redis = await startRedisServer();
    const store = { TRUNKLINE_REDIS_URL: redis.url, TRUNKLINE_STATE_DIR: join(folder, "site") };
    const printed = await succeed(["restore", file], store);
    const pepper = /^(TRUNKLINE_KEY_PEPPER_FILE)=(.+)$/m.exec(printed) ?? [];
    const publicUrl = `http://127.0.0.1:${site.proxy.port}`;
    const { port } = new URL(site.endpoint.baseUrl);
    const settings = { ...anywhere, ...nats.gatewaySettings, ...store, [pepper[1] ?? ""]: pepper[2] ?? "" };
    const places = { TRUNKLINE_PUBLIC_URL: publicUrl, TRUNKLINE_PORT: port };
    await using gateway = await TrunklineProcess.start({ args: ["gateway"], settings: { ...settings, ...places } });
    await gateway.logged("gateway ready");
    await site.endpoint.untilListed(says.model);
    expect(await site.endpoint.answer(says)).toBe(before);
  },
);
