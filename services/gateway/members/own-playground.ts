import type { FastifyInstance, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import { keyId } from "#shared/keys/key-token.ts";
import type { Clock } from "#shared/process/clock.ts";
import { judgeProven, type KeyRecord } from "#shared/records/key-record.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import { noteCaller, type RunningRequests, type Standing, untilClientLeaves, validKey } from "../keys/authenticate.ts";
import { asStore } from "../operations/operations-access.ts";
import type { ProveMember, SignedInMember } from "./member-access.ts";

/** The header in which the page names a key by its id. It cannot have the secret of a key. */
const ownKeyHeader = "x-trunkline-key";

/** Time between two reads of the session of a running request: it may end at another gateway. */
const judgedAgainMs = 2_000;

export interface OwnPlayground {
  /** The keys as this gateway judges them. */
  readonly newest: Pick<KeyStore, "find">;
  readonly standings: { of(key: KeyRecord): Standing | Promise<Standing> };
  readonly running: RunningRequests;
  readonly clock: Pick<Clock, "wall" | "every">;
}

/**
 * Lets the playground of members call the public API with their session and one of their own keys. A request counts for that key,
 * its person and its team, and ends with the session, the key or the person.
 */
export function proveOwnPlayground(scope: FastifyInstance, prove: ProveMember, parts: OwnPlayground): void {
  const { running, standings, clock } = parts;
  scope.addHook("onRequest", async (request, reply) => {
    void reply.header("cache-control", "no-store");
    const leaving = untilClientLeaves(reply.raw);
    const member = await prove(request);
    noteCaller({ request, reply }, await standings.of(await ownKey(request, member, parts)), { leaving, running });
    if (leaving.signal.aborted) return;
    // The key too: its revocation may have been heard between its proof and the note of its caller.
    const judgeAgain = async () => Promise.all([member.again(), ownKey(request, member, parts)]);
    const look = clock.every(judgedAgainMs, () => void judgeAgain().catch((error: unknown) => end(leaving, error)));
    reply.raw.once("close", () => look.cancel());
  });
}

/** Ends a request whose session or key has ended. A store that is away ends none. */
function end(leaving: AbortController, error: unknown): void {
  const fault = Fault.from(error);
  if (fault.code === "key_invalid") leaving.abort(fault);
}

/** Returns the valid key of the member that a request names. The key of somebody else is as if it was not there. */
async function ownKey(
  { headers }: FastifyRequest,
  { person }: SignedInMember,
  { newest, clock }: OwnPlayground,
): Promise<KeyRecord> {
  const named = keyId.safeParse(headers[ownKeyHeader]);
  if (!named.success) {
    const message = `Name one of your keys by its id, in the header ${ownKeyHeader}.`;
    throw new Fault("missing_required_parameter", { message, param: ownKeyHeader });
  }
  const found = await asStore(() => newest.find(named.data));
  const isOwn = found.kind === "record" && found.record.kind === "model" && found.record.person === person.name;
  return validKey(
    isOwn ? judgeProven({ record: found.record, secretUntil: Infinity }, clock.wall()) : { outcome: "invalid" },
  );
}
