import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { natsPasswords, infraFolder } from "../harness/infra/compose-file.ts";
import { natsVariables, startConfiguredNats, type ConfiguredNats } from "../harness/infra/configured-servers.ts";
import { NatsUser } from "../harness/infra/nats-user.ts";
import { startOperatorNats } from "../harness/infra/operator-nats.ts";
import { foundServers, lentOnly } from "../harness/found-servers.ts";
import { makeNatsCertificates } from "../harness/self-signed.ts";

const environment = natsPasswords();
const passwords = Object.keys(environment).filter((name) => name.startsWith("NATS_PASSWORD_"));
const { nats: found } = foundServers();
const run = promisify(execFile);

const inForce = z.object({
  auth_required: z.boolean(),
  tls_required: z.boolean(),
  ping_interval: z.number(),
  ping_max: z.number(),
  write_deadline: z.number(),
  max_payload: z.number(),
  max_pending: z.number(),
  jetstream: z.record(z.string(), z.unknown()).optional(),
});
const secondInNanoseconds = 1e9;
const recommended = {
  auth_required: true,
  tls_required: true,
  ping_interval: secondInNanoseconds,
  ping_max: 2,
  write_deadline: 2 * secondInNanoseconds,
  max_payload: 1_048_576,
  max_pending: 33_554_432,
  jetstream: {},
};

describe.skipIf(found.by !== "binary")(`infra/nats.conf and ${found.title}`, () => {
  const check = async (variables: Readonly<Record<string, string>>): Promise<string> => {
    if (found.by !== "binary") throw new Error("there is no program to ask");
    const config = join(infraFolder, "nats.conf");
    const { stdout, stderr } = await run(found.path, ["-t", "-c", config], { env: variables });
    return stdout + stderr;
  };

  let variables: Readonly<Record<string, string>>;
  beforeAll(async () => {
    variables = natsVariables(environment, await makeNatsCertificates());
  });

  test("it is accepted with the passwords and the certificate's files in the environment", async () => {
    expect(await check(variables)).toContain("is valid");
  });

  test.each([...passwords, "NATS_TLS_CERT", "NATS_TLS_KEY"])(
    "it is refused without %s, which is named",
    async (name) => {
      const others = Object.entries(variables).filter(([other]) => other !== name);
      await expect(check(Object.fromEntries(others))).rejects.toThrow(`'${name}'`);
    },
  );
});

describe.skipIf(lentOnly("nats"))("NATS with infra/nats.conf", () => {
  let nats: ConfiguredNats;
  beforeAll(async () => void (nats = await startConfiguredNats(environment)));
  afterAll(() => nats.stop());

  test("NATS with infra/nats.conf tells clients of its limit, asks who they are, and has no JetStream", async () => {
    const password = environment["NATS_PASSWORD_GATEWAY"];
    const { url, certificates } = nats;
    await using user = await NatsUser.connect({ url, user: "gateway", password, caFile: certificates.caFile });
    const { info } = user;
    expect([info?.max_payload, info?.auth_required, info?.jetstream ?? false]).toEqual([1_048_576, true, false]);
    expect(info?.tls_required).toBe(true);
  });

  // In a container nobody outside reaches its monitoring, as it should be.
  test.skipIf(found.by === "docker")("NATS with infra/nats.conf has its settings in force", async () => {
    expect(await settingsOf(nats)).toEqual(recommended);
  });
});

describe.skipIf(lentOnly("nats") || found.by === "docker")("NATS as `trunkline nats init` configures it", () => {
  test("has the same settings in force", async () => {
    await using nats = await startOperatorNats();
    expect(await settingsOf(nats)).toEqual(recommended);
  });
});

async function settingsOf({ monitoringUrl }: ConfiguredNats): Promise<z.infer<typeof inForce>> {
  return inForce.parse(await (await fetch(`${monitoringUrl}/varz`)).json());
}

test("the monitoring in infra/nats.conf is for its own host only", async () => {
  const text = await readFile(join(infraFolder, "nats.conf"), "utf8");
  expect(text.match(/^(http|https|monitor)\w*:.*$/gm)).toEqual(['http: "127.0.0.1:8222"']);
});
