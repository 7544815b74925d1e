import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { changeMachine } from "#shared/records/change-machine.ts";
import { joinTtlMsMax, makeJoin } from "#shared/records/join-machine.ts";
import { machineNameOf } from "#shared/protocol/identifiers.ts";
import { challengePath, type JoinLine, newMachineKeyPair, pairPath } from "#shared/protocol/pairing.ts";
import { pairBodyBytesMax } from "../../services/gateway/tunnels/pair-machines.ts";
import { errorOf } from "../harness/endpoint.ts";
import { startGatewayInProcess, type GatewayInProcess } from "../harness/gateway-in-process.ts";
import type { SomeServer } from "../harness/found-servers.ts";
import { redisUrl } from "../harness/redis-server.ts";
import { pairAt } from "../harness/pair-over-http.ts";
import { folderOfTests } from "../harness/temporary-folder.ts";

let server: SomeServer;
beforeAll(async () => void (server = await redisUrl()));
afterAll(() => server.stop());

describe.each(["SQLite", "Redis"])("a site on %s", (kind) => {
  const stateDir = folderOfTests();
  const gateways: GatewayInProcess[] = [];
  const start = async (): Promise<GatewayInProcess> => {
    const store = kind === "Redis" ? { redisUrl: server.url } : { stateDir };
    const gateway = await startGatewayInProcess({ ...store, logLevel: "debug" });
    gateways.push(gateway);
    return gateway;
  };
  let one: GatewayInProcess;
  let other: GatewayInProcess;
  beforeAll(async () => {
    one = await start();
    await one.issue();
    other = await start();
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway[Symbol.asyncDispose]();
  });

  let lines = 0;
  const publicUrl = "https://models.example.org";
  const means = () => {
    const { machines, keys, clock } = one.store;
    return { machines, keys, clock, actor: { by: "the operator" } };
  };
  const nextLine = async (ttlMs = joinTtlMsMax): Promise<JoinLine & { readonly name: string }> => {
    const name = `${kind.toLowerCase()}-${(lines += 1)}`;
    return { ...(await makeJoin({ name, ttlMs, publicUrl }, means())).line, name };
  };
  const logged = (words: string): string[] =>
    [one, other].flatMap((gateway) => gateway.logged.filter((line) => line.includes(words)));

  test("pairs a machine that holds a join line, at any of its gateways, and proves itself to it", async () => {
    const line = await nextLine();
    const { publicKey } = newMachineKeyPair();
    const paired = await pairAt(other.baseUrl, line, { publicKey });
    const { id: site } = await one.store.machines.site();
    expect(paired).toMatchObject({ status: 200, isProved: true, answer: { machine: line.name, site } });
    expect(await one.store.machines.findByKey(publicKey)).toMatchObject({ name: line.name, pairedBy: "the operator" });
    expect(logged("a machine was paired").some((each) => each.includes(line.name))).toBe(true);
  });

  test("answers the same machine again that missed the answer, also elsewhere and with another challenge", async () => {
    const line = await nextLine();
    const { publicKey } = newMachineKeyPair();
    expect(await pairAt(one.baseUrl, line, { publicKey })).toMatchObject({ status: 200 });
    const before = await one.store.machines.find(line.name);
    expect(await pairAt(other.baseUrl, line, { publicKey })).toMatchObject({ status: 200, isProved: true });
    expect(await one.store.machines.find(line.name)).toEqual(before);
  });

  test("tells both sides of a second use: the agent when and from where the first was, operators both addresses", async () => {
    const line = await nextLine();
    expect(await pairAt(one.baseUrl, line)).toMatchObject({ status: 200 });
    const second = await pairAt(other.baseUrl, line);
    expect(second).toMatchObject({ status: 409, error: { code: "join_used" } });
    const { join: used } = (await one.store.machines.find(line.name)) ?? {};
    const message = "error" in second ? second.error.message : "";
    expect(message).toContain(`at ${new Date(used?.usedAt ?? 0).toISOString()} from 127.0.0.1`);
    expect(message).toContain(`trunkline machines revoke ${line.name}`);
    expect(used).toMatchObject({ usedFrom: "127.0.0.1", usedAgainFrom: "127.0.0.1" });
    const [told = ""] = logged("a join line was used a second time").filter((each) => each.includes(line.name));
    expect(JSON.parse(told)).toMatchObject({ address: "127.0.0.1", first_address: "127.0.0.1", machine: line.name });
  });

  test("refuses an expired line, and names the remedy", async () => {
    const line = await nextLine(0);
    const refused = await pairAt(one.baseUrl, line);
    expect(refused).toMatchObject({ status: 410, error: { code: "join_expired" } });
    expect("error" in refused ? refused.error.message : "").toContain(`trunkline machines pair ${line.name}`);
  });

  test("tells an unknown line from a wrong proof by nothing, whether the line waits, was used or expired", async () => {
    const [waiting, used, expired] = [await nextLine(), await nextLine(), await nextLine(0)];
    await pairAt(one.baseUrl, used);
    const secret = randomBytes(16);
    const guesses = [{ id: "abcDEF012345", secret }, ...[waiting, used, expired].map(({ id }) => ({ id, secret }))];
    const answers = await Promise.all(guesses.map(async (guess) => pairAt(one.baseUrl, guess)));
    expect(answers[0]).toMatchObject({ status: 403, error: { code: "join_invalid" } });
    for (const answer of answers) expect(answer).toEqual(answers[0]);
  });

  test("takes no line any more that was replaced, or whose machine was revoked before it was used", async () => {
    const first = await nextLine();
    const { line: second } = await makeJoin({ name: first.name, ttlMs: joinTtlMsMax, publicUrl }, means());
    expect(await pairAt(one.baseUrl, first)).toMatchObject({ error: { code: "join_invalid" } });
    await changeMachine(first.name, { action: "machine_revoked" }, means());
    expect(await pairAt(one.baseUrl, second)).toMatchObject({ error: { code: "join_invalid" } });
  });

  test("accepts no key twice, and no challenge that it did not make", async () => {
    const { publicKey } = newMachineKeyPair();
    await pairAt(one.baseUrl, await nextLine(), { publicKey });
    const line = await nextLine();
    expect(await pairAt(other.baseUrl, line, { publicKey })).toMatchObject({
      status: 409,
      error: { code: "machine_key_used", param: "public_key" },
    });
    const foreign = `${Date.now().toString(36)}.${"a".repeat(22)}.${"0".repeat(64)}`;
    expect(await pairAt(one.baseUrl, line, { challenge: foreign })).toMatchObject({
      status: 403,
      error: { code: "challenge_invalid", param: "challenge" },
    });
    expect(await pairAt(one.baseUrl, line)).toMatchObject({ status: 200 });
  });

  test("pairs no machine under the name of an agent that is there unpaired, and leaves the line good", async () => {
    const name = machineNameOf(hostname());
    const { line } = await makeJoin({ name, ttlMs: joinTtlMsMax, publicUrl }, means());
    expect(await pairAt(one.baseUrl, line)).toMatchObject({
      status: 409,
      error: { code: "machine_name_used", message: expect.stringContaining(`is there as ${name}`) },
    });
    expect((await one.store.machines.find(name))?.join?.usedAt).toBeUndefined();
  });

  test("reads no body beyond a small limit, with and without its length", async () => {
    const long = JSON.stringify({ join: "a".repeat(pairBodyBytesMax) });
    const bodies = [long, ReadableStream.from([Buffer.from(long)])];
    for (const body of bodies) {
      const response = await fetch(new URL(pairPath, one.baseUrl), {
        method: "POST",
        headers: { "content-type": "application/json" },
        body,
        duplex: "half",
      });
      expect(response.status).toBe(413);
      expect((await errorOf(response)).message).toContain("(pairBodyBytesMax)");
    }
  });

  test("has neither a challenge nor an answer kept by anybody on the way", async () => {
    const response = await fetch(new URL(challengePath, one.baseUrl));
    expect(response.headers.get("cache-control")).toBe("no-store");
  });

  test("logs no secret of a line and no proof", async () => {
    const line = await nextLine();
    await pairAt(one.baseUrl, line);
    const { join: kept } = (await one.store.machines.find(line.name)) ?? {};
    const all = gateways.flatMap((gateway) => gateway.logged).join("\n");
    expect(all).not.toContain(Buffer.from(line.secret).toString("base64url"));
    expect(kept?.key).toHaveLength(43);
    expect(all).not.toContain(kept?.key);
    expect(all).not.toContain('"proof"');
  });
});
