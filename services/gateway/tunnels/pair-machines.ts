import { createHash } from "node:crypto";
import { once } from "node:events";
import { isIP } from "node:net";
import { checkServerIdentity, connect } from "node:tls";
import type { FastifyInstance } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import { machineNameUsed } from "#shared/records/change-machine.ts";
import { type JoinOutcome, useJoin } from "#shared/records/join-machine.ts";
import type { MachineStore } from "#shared/records/machine-record.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import {
  type ChallengeAnswer,
  challengePath,
  type PairAnswer,
  pairPath,
  pairRequest,
  provesSame,
  tunnelPath,
  credentialPath,
} from "#shared/protocol/pairing.ts";
import type { MachineRecords } from "../fleet/machine-records.ts";
import { boundBodies, refuseOtherMethods } from "../http/answer-faults.ts";
import { readJsonObject, readShape } from "../http/read-json.ts";
import type { BadKeys } from "../keys/bad-keys.ts";

/** Largest body of a request to pair. It takes a third of this. */
export const pairBodyBytesMax = 1_024;

interface PairingParts {
  readonly machines: MachineStore;
  readonly keys: Pick<KeyStore, "find">;
  readonly records: Pick<MachineRecords, "site">;
  /** Returns true while an agent that was not paired has this name. */
  readonly isNameUsed: (machine: string) => boolean;
  readonly challenges: Challenges;
  /** Counts the wrong proofs of each address together with its wrong keys. */
  readonly badKeys: BadKeys;
  readonly clock: Pick<Clock, "wall">;
  readonly log: Log;
}

/** Mounts the routes by which a machine uses its join line: it asks for a challenge, and answers it with a proof. */
export function pairMachines(server: FastifyInstance, parts: PairingParts): void {
  const { records, challenges, log } = parts;
  void server.register(
    async (agents) => {
      boundBodies(agents, { log, bodyBytesMax: pairBodyBytesMax, bodyLimitName: "pairBodyBytesMax" });
      agents.addHook("onRequest", async (_request, reply) => void reply.header("cache-control", "no-store"));
      agents.get(below(challengePath), async (): Promise<ChallengeAnswer> => {
        return { site: records.site.id, challenge: challenges.make() };
      });
      agents.post(below(pairPath), async ({ body, ip, id }): Promise<PairAnswer> => {
        const json = body instanceof Buffer ? readJsonObject(body) : {};
        return pair(readShape(pairRequest, json).value, { from: ip, requestId: id }, parts);
      });
      agents.post(below(credentialPath), () => {
        throw new Fault("direct_unavailable", {
          message: "This site offers no direct connections to NATS. The machine connects through a gateway instead.",
        });
      });
    },
    { prefix: tunnelPath },
  );
  refuseOtherMethods(server, challengePath, ["GET", "HEAD"]);
  refuseOtherMethods(server, pairPath, ["POST"]);
  refuseOtherMethods(server, credentialPath, ["POST"]);
}

/** Returns a path as the scope of the tunnel's path has it. */
function below(path: string): string {
  return path.slice(tunnelPath.length);
}

function assertChallenge({ challenge }: { readonly challenge: string }, challenges: Challenges): void {
  if (challenges.isGood(challenge)) return;
  throw new Fault("challenge_invalid", {
    message: `This challenge is older than ${challengeMsMax / 1_000} s (challengeMsMax), or another site made it. Ask for a new one at ${challengePath}.`,
    param: "challenge",
  });
}

async function pair(
  request: Parameters<typeof useJoin>[0]["request"],
  { from, requestId }: { readonly from: string; readonly requestId: string },
  { machines, keys, records, isNameUsed, challenges, badKeys, clock, log }: PairingParts,
): Promise<PairAnswer> {
  assertChallenge(request, challenges);
  const site = records.site.id;
  const means = { machines, keys, clock, isNameUsed, requestId };
  const use = (): Promise<JoinOutcome> => useJoin({ request, from, site }, means);
  const outcome = await badKeys.ask(from, use);
  if (outcome.outcome === "paired") {
    const { machine, proof, isNew } = outcome;
    if (isNew) log.info({ request: requestId, machine, address: from }, "a machine was paired");
    return { machine, site, proof };
  }
  if (outcome.outcome === "used") {
    const { machine, usedAt, usedFrom } = outcome;
    const first = { first_address: usedFrom, first_at: new Date(usedAt).toISOString() };
    log.warn({ request: requestId, machine, address: from, ...first }, "a join line was used a second time");
  }
  if (outcome.outcome === "withdrawn") {
    const fields = { request: requestId, machine: outcome.machine, address: from };
    log.warn(fields, "a join line of an admin key that was taken back was used");
  }
  throw refusal(outcome);
}

function refusal(outcome: Exclude<JoinOutcome, { readonly outcome: "paired" }>): Fault {
  switch (outcome.outcome) {
    case "invalid":
      return new Fault("join_invalid", {
        message: `This site knows no such join line: it was replaced or withdrawn, or is not whole. ${newLine("<name>")}`,
      });
    case "withdrawn":
      return new Fault("join_invalid", {
        message: `The admin key that made this join line was revoked or disabled, which withdraws the line. ${newLine(outcome.machine)}`,
      });
    case "expired":
      return new Fault("join_expired", {
        message: `This join line expired at ${new Date(outcome.expiresAt).toISOString()}. ${newLine(outcome.machine)}`,
      });
    case "used": {
      const { machine, usedAt, usedFrom } = outcome;
      const first = `at ${new Date(usedAt).toISOString()} from ${usedFrom}`;
      return new Fault("join_used", {
        message: `This join line was used ${first}, and pairs no other machine. If that was not you, revoke what has it now: trunkline machines revoke ${machine}. ${newLine(machine)}`,
      });
    }
    case "name-used":
      return machineNameUsed(outcome.machine);
    case "known-key":
      return new Fault("machine_key_used", {
        message: "This site accepted this public key before. Make a new key for each pairing.",
        param: "public_key",
      });
  }
}

function newLine(machine: string): string {
  return `Make a new line on the site: trunkline machines pair ${machine}`;
}

/** Time for which a challenge is good. */
export const challengeMsMax = 60_000;
/** Largest difference between the clocks of two gateways. */
const aheadMsMax = 5_000;

interface ChallengeParts {
  readonly peppers: Pick<Peppers, "challengeSignatures">;
  readonly clock: Pick<Clock, "wall">;
}

/**
 * The challenges that machines answer. A challenge is good at every gateway of the site and stored at none: it holds
 * the time when it was made, and a signature under a key that only gateways have.
 */
export class Challenges {
  readonly #parts: ChallengeParts;

  constructor(parts: ChallengeParts) {
    this.#parts = parts;
  }

  make(): string {
    const { peppers, clock } = this.#parts;
    const text = `${Math.round(clock.wall()).toString(36)}.${newToken()}`;
    const [signature] = peppers.challengeSignatures(text);
    return `${text}.${signature}`;
  }

  /** True if a gateway of this site made the challenge within `challengeMsMax`. */
  isGood(challenge: string): boolean {
    const { peppers, clock } = this.#parts;
    const end = challenge.lastIndexOf(".");
    const text = challenge.slice(0, end);
    const ageMs = clock.wall() - Number.parseInt(text, 36);
    if (!(ageMs <= challengeMsMax && ageMs >= -aheadMsMax)) return false;
    const signature = challenge.slice(end + 1);
    return peppers.challengeSignatures(text).some((each) => provesSame(each, signature));
  }
}

interface SiteMeans {
  readonly machines: Pick<MachineStore, "noteSite">;
  /** The URL by which machines on other hosts reach the site. */
  readonly publicUrl: string | undefined;
  /** The URL of the public port on this host. */
  readonly here: URL;
  /** True if other gateways share the store. */
  readonly isShared: boolean;
  /** True if proxies stand in front, whose certificate machines see in place of this gateway's. */
  readonly isProxied: boolean;
  /** False if this gateway cannot connect paired machines to the broker. */
  readonly takesMachines: boolean;
  /** The note of this gateway, for those that write records beside it. */
  readonly gateway: string;
}

/**
 * Notes in the store how machines reach the site, for the lines that pair them. A site of one process without a public
 * URL is reached from its own host.
 */
export async function noteSite(means: SiteMeans): Promise<void> {
  const { machines, publicUrl, here, isShared, isProxied, takesMachines, gateway } = means;
  if (publicUrl === undefined && isShared) return;
  const url = publicUrl ?? here.origin;
  const isPinned = here.protocol === "https:" && !isProxied;
  const certificateSha256 = isPinned ? await certificatePin(here, new URL(url).hostname) : undefined;
  const pin = certificateSha256 === undefined ? {} : { certificateSha256 };
  await machines.noteSite({ publicUrl: url, ...pin, ...(!takesMachines && { takesMachines }), gateway });
}

/** Returns the SHA-256 of a server's certificate, unless it is good for this name by the authorities that Node knows. */
async function certificatePin({ hostname: host, port }: URL, nameInUrl: string): Promise<string | undefined> {
  const name = nameInUrl.replace(/^\[|\]$/g, "");
  const socket = connect({
    host: host.replace(/^\[|\]$/g, ""),
    port: Number(port || 443),
    ...(isIP(name) === 0 && { servername: name }),
    // The judgement is read from `authorized`.
    rejectUnauthorized: false,
    checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
  });
  try {
    await once(socket, "secureConnect");
    const raw = socket.getPeerX509Certificate()?.raw;
    if (socket.authorized || raw === undefined) return undefined;
    return createHash("sha256").update(raw).digest("base64url");
  } finally {
    socket.destroy();
  }
}
