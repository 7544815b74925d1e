import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { changeMachine, type MachineChange } from "#shared/machines/change-machine.ts";
import type { MachineRecord } from "#shared/machines/machine-record.ts";
import { systemClock as clock } from "#shared/process/clock.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import {
  credentialAnswer,
  credentialPath,
  challengeAnswer,
  challengePath,
  type MachineKeyPair,
  newMachineKeyPair,
  parseJoinLine,
  signChallenge,
} from "#shared/protocol/pairing.ts";
import { readPairing } from "#shared/site/pairing-file.ts";
import { errorOf } from "../harness/endpoint.ts";
import { lentOnly } from "../harness/found-servers.ts";
import { NatsUser } from "../harness/infra/nats-user.ts";
import { OperatorSite } from "../harness/operator-site.ts";
import { pairAt } from "../harness/pair-over-http.ts";
import { until } from "../harness/until.ts";

const actor = { by: "the operator" };

describe.skipIf(lentOnly("nats", "redis"))("a machine with TRUNKLINE_DIRECT", () => {
  let site: OperatorSite;
  beforeAll(async () => {
    site = await OperatorSite.start({
      gatewayEnvOn: (nats) => ({
        TRUNKLINE_NATS_DIRECT_URL: nats.url.replace("nats:", "tls:"),
        TRUNKLINE_NATS_SYSTEM_CREDS: nats.file("system.creds"),
        TRUNKLINE_NATS_OPERATOR_KEY_FILE: nats.file("operator.seed"),
      }),
    });
  });
  afterAll(() => site?.[Symbol.asyncDispose]());

  const recordOf = (name: string): Promise<MachineRecord | undefined> => site.operator.store.machines.find(name);
  const change = (name: string, wish: MachineChange) =>
    changeMachine(name, wish, { ...site.operator.store, clock, actor });

  /** Asks for a credential as an agent does. */
  async function ask(keyPair: MachineKeyPair, place = 0): Promise<Response> {
    const origin = site.originOf(place);
    const told = await fetch(`${origin}${challengePath}`);
    const { site: id, challenge } = challengeAnswer.parse(await told.json());
    const signature = signChallenge(keyPair.seed, { purpose: "credential", site: id, challenge });
    const body = { public_key: keyPair.publicKey, challenge, signature, boot: newToken() };
    const headers = { "content-type": "application/json" };
    return fetch(`${origin}${credentialPath}`, { method: "POST", headers, body: JSON.stringify(body) });
  }

  async function pairKey(name: string): Promise<MachineKeyPair> {
    const keyPair = newMachineKeyPair();
    const line = parseJoinLine(await site.joinLine(name, site.originOf(0)));
    if (line === undefined) throw new Error("the line is none");
    expect((await pairAt(line.origin, line, keyPair)).status).toBe(200);
    return keyPair;
  }

  async function connect(keyPair: MachineKeyPair, jwt: string): Promise<NatsUser> {
    const { url, certificates } = site.nats;
    const user = await NatsUser.connect({ url, caFile: certificates.caFile, jwt: { jwt, key: keyPair } });
    onTestFinished(() => user[Symbol.asyncDispose]());
    return user;
  }

  test("serves chats over NATS without a tunnel, and is cut, refused and told when it is revoked", async () => {
    const agent = await site.startMachine("attic", { models: ["scripted"], env: { TRUNKLINE_DIRECT: "true" } });
    await site.untilListed("scripted");
    for (const endpoint of site.endpoints) {
      expect(await endpoint.answer({ model: "scripted", says: "Hello" })).toMatch(/./);
    }
    for (const gateway of site.gateways) {
      expect((await gateway.logLines()).filter(({ msg }) => msg === "a machine has connected")).toEqual([]);
    }
    const pairing = readPairing(agent.stateDir);
    if (pairing === undefined) throw new Error("the agent is not paired");
    const { jwt } = credentialAnswer.parse(await (await ask(pairing)).json());
    await change("attic", { action: "machine_revoked" });
    await until(() => agent.ended, { what: "the agent to end" });
    expect(await agent.stderr()).toContain("was revoked");
    await expect(connect(pairing, jwt)).rejects.toThrow(/authorization/i);
    for (const place of [0, 1]) expect((await errorOf(await ask(pairing, place))).code).toBe("machine_revoked");
    await until(async () => (await recordOf("attic"))?.direct?.endedAt, { what: "the end to be noted" });
  });

  test("follows a renaming, and nobody else gets its former name before NATS refuses it there", async () => {
    const agent = await site.startMachine("cellar", { models: ["scripted:plain"], env: { TRUNKLINE_DIRECT: "true" } });
    await site.untilListed("scripted:plain");
    await change("cellar", { action: "machine_renamed", name: "loft" });
    await until(() => readPairing(agent.stateDir)?.machine === "loft", { what: "the new name to be kept" });
    const [endpoint] = site.endpoints;
    await until(async () => (await endpoint?.chat({ model: "scripted:plain", says: "Hello" }))?.status === 200, {
      what: "the machine to serve under its new name",
    });
    await until(async () => (await recordOf("loft"))?.direct?.formerly === undefined, { what: "the former name" });
    await pairKey("cellar");
  });

  test("gets a credential for its own subjects alone, which lasts an hour at most", async () => {
    const keyPair = await pairKey("desk");
    const answer = credentialAnswer.parse(await (await ask(keyPair)).json());
    expect([answer.machine, answer.expires_in_ms <= 3_600_000]).toEqual(["desk", true]);
    const user = await connect(keyPair, answer.jwt);
    for (const pattern of [
      ">",
      "$SYS.>",
      "_INBOX.>",
      "tl1.reply.>",
      "tl1.tunnel.*",
      "tl1.placed.*",
      "tl1.machine.attic.>",
    ]) {
      expect([pattern, await user.listen(pattern)]).toEqual([pattern, ["refused"]]);
    }
  });

  test("is refused by name with a wrong proof, or an unknown key", async () => {
    const keyPair = await pairKey("shed");
    const other = newMachineKeyPair();
    expect((await errorOf(await ask({ ...keyPair, seed: other.seed }))).code).toBe("wrong_proof");
    expect((await errorOf(await ask(other))).code).toBe("machine_unknown");
  });
});
