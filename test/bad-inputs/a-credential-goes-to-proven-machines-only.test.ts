import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { fromSeed } from "@nats-io/nkeys";
import { newToken } from "#shared/protocol/identifiers.ts";
import {
  credentialPath,
  challengeAnswer,
  challengePath,
  connectsPerMinuteMax,
  newMachineKeyPair,
  signChallenge,
} from "#shared/protocol/pairing.ts";
import type { Pairing } from "#shared/site/pairing-file.ts";
import { challengeMsMax } from "../../services/gateway/tunnels/pair-machines.ts";
import { CredentialSite } from "../harness/credential-site.ts";
import { errorOf } from "../harness/endpoint.ts";
import { TurnableClock } from "../harness/turnable-clock.ts";

const clock = new TurnableClock();
const mint = vi.fn(() => "a.jwt.of-nats");
let site: CredentialSite;
let paired: Pairing;
beforeAll(async () => {
  site = await CredentialSite.start({
    offer: { minter: { mint }, servers: "tls://nats.example:4222", ca: undefined },
    clock,
  });
  paired = await site.pair("attic");
});
afterAll(() => site?.[Symbol.asyncDispose]());
beforeEach(() => mint.mockClear());

type Sign = (challenge: string, machine: Pairing) => string;
const asAgent: Sign = (challenge, { seed, site: id }) =>
  signChallenge(seed, { purpose: "credential", site: id, challenge });

async function newChallenge(): Promise<string> {
  const response = await fetch(new URL(challengePath, site.origin));
  return challengeAnswer.parse(await response.json()).challenge;
}

function send(machine: Pairing, challenge: string, sign = asAgent): Promise<Response> {
  const body = { public_key: machine.publicKey, challenge, signature: sign(challenge, machine), boot: newToken() };
  const headers = { "content-type": "application/json" };
  return fetch(new URL(credentialPath, site.origin), { method: "POST", headers, body: JSON.stringify(body) });
}

async function isRefused(response: Response, code: string): Promise<string> {
  const error = await errorOf(response);
  expect([response.status, error.code]).toEqual([403, code]);
  expect(mint).not.toHaveBeenCalled();
  return error.message;
}

test("a machine that signs a new challenge gets a credential", async () => {
  const response = await send(paired, await newChallenge());
  expect(await response.json()).toMatchObject({ machine: "attic", jwt: "a.jwt.of-nats", expires_in_ms: 3_600_000 });
});

test("a machine that asks too often is told the limit and when it may ask again", async () => {
  const eager = await site.pair("loft");
  for (let count = 0; count < connectsPerMinuteMax; count += 1) {
    expect((await send(eager, await newChallenge())).status).toBe(200);
  }
  const refused = await send(eager, await newChallenge());
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "2"]);
  expect((await errorOf(refused)).message).toContain("(connectsPerMinuteMax)");
  clock.advance(2_000);
  expect((await send(eager, await newChallenge())).status).toBe(200);
});

describe("a proof", () => {
  test.each<[string, Sign]>([
    [
      "that signs the bare nonce, as clients of NATS do",
      (challenge, { seed }) =>
        Buffer.from(fromSeed(Buffer.from(seed)).sign(Buffer.from(challenge))).toString("base64url"),
    ],
    [
      "relayed from another site, which gave the challenge on as its own",
      (challenge, { seed }) => signChallenge(seed, { purpose: "credential", site: newToken(), challenge }),
    ],
    [
      "relayed from a tunnel, whose nonce was the challenge",
      (challenge, { seed, site: id }) => signChallenge(seed, { purpose: "connect", site: id, challenge }),
    ],
    ["for an earlier challenge", (_, machine) => asAgent("an-earlier-challenge", machine)],
    [
      "made with another machine's key",
      (challenge, machine) => asAgent(challenge, { ...machine, ...newMachineKeyPair() }),
    ],
  ])("%s is refused", async (_, sign) => {
    await isRefused(await send(paired, await newChallenge(), sign), "wrong_proof");
  });

  test("is refused when its challenge is older than its limit, which is named", async () => {
    const challenge = await newChallenge();
    clock.advance(challengeMsMax);
    expect((await send(paired, challenge)).status).toBe(200);
    mint.mockClear();
    clock.advance(1);
    expect(await isRefused(await send(paired, challenge), "challenge_invalid")).toContain("60 s (challengeMsMax)");
  });

  test("of a key that this site never paired, or whose machine was revoked, is refused", async () => {
    const unknown = { ...paired, ...newMachineKeyPair() };
    await isRefused(await send(unknown, await newChallenge()), "machine_unknown");
    const lost = await site.pair("cellar");
    await site.revoke("cellar");
    expect(await isRefused(await send(lost, await newChallenge()), "machine_revoked")).toContain("cellar");
  });
});
