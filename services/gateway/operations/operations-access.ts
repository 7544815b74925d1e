import { issuersOf } from "#shared/records/key-lineage.ts";
import { authUnavailable } from "../keys/known-keys.ts";
import { checkKey, type KeyVerdict } from "#shared/records/judge-key.ts";
import { isIP } from "node:net";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { Fault } from "#shared/fault/fault.ts";
import type { Actor } from "#shared/records/audit-entry.ts";
import type { KeyRecord } from "#shared/records/key-record.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import { type KeyToken, parseKeyToken } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { BadKeys } from "../keys/bad-keys.ts";
import { bearerText, validKey } from "../keys/authenticate.ts";
import { stateOf } from "../http/request-state.ts";

/**
 * Refuses requests whose Host header is an unknown name. With DNS rebinding, any web page can point its own host name
 * at this port. The browser then lets the page read the answers. The Host header of such a request still has the
 * foreign name.
 */
export function assertKnownName(server: FastifyInstance, names: readonly string[]): void {
  server.addHook("onRequest", (request, _reply, done) => {
    done(isKnownName(request.headers.host, names) ? undefined : new Fault("bad_request", { message: unknownName }));
  });
}

/**
 * True if the host is an address, a name without a dot, or a configured name. Addresses need no DNS, and a name without
 * a dot belongs to this network. An HTTP/1.0 request may have no Host header.
 */
function isKnownName(host: string | undefined, names: readonly string[]): boolean {
  if (host === undefined || names.includes("*")) return true;
  const name = host
    .toLowerCase()
    .replace(/:\d*$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "");
  return isIP(name) !== 0 || !name.includes(".") || name.endsWith(".localhost") || names.includes(name);
}

const unknownName =
  "The operations port is not known by the name in this request's Host header. Ask for it by its address, or add the name to TRUNKLINE_OPERATIONS_HOSTS.";

/** The admin key of a request, and its name in the audit trail. */
export interface Asker {
  readonly actor: Actor;
  readonly admin: KeyRecord;
}

const askers = new WeakMap<FastifyRequest, Asker>();
const reading: ReadonlySet<string> = new Set(["GET", "HEAD"]);

/**
 * Refuses requests without a valid key of the admin API in a scope of routes, before their bodies are read. A viewer
 * key may only read.
 */
export function proveAdmins(scope: FastifyInstance, proof: AdminProof): void {
  scope.addHook("onRequest", async (request) => {
    const { authorization } = request.headers;
    const admin = await authenticateAdmin({ authorization, address: request.ip }, proof);
    stateOf(request).key = admin.id;
    if (admin.kind === "viewer" && !reading.has(request.method)) {
      throw new Fault("insufficient_permissions", { message: "A viewer key is read-only. Use an admin key here." });
    }
    askers.set(request, { actor: { by: `admin ${admin.id}`, request: request.id }, admin });
  });
}

/** Returns the one who asks. A route that is reached without a key is a bug. */
export function askerOf(request: FastifyRequest): Asker {
  const asker = askers.get(request);
  if (asker === undefined) throw Fault.from(new Error("a route that needs an admin key was reached without one"));
  return asker;
}

interface AdminProof {
  readonly keys: Pick<KeyStore, "find">;
  readonly peppers: Peppers;
  readonly badKeys: BadKeys;
  readonly clock: Pick<Clock, "wall">;
}

/**
 * Returns the admin or viewer key that the Authorization header carries. Reads the store on every request, so that a
 * revoked key stops working at once. A key that an admin key issued depends on its issuers: it is refused while any of
 * them is disabled or revoked, even where the revocation did not reach its own record.
 */
export async function authenticateAdmin(
  sent: { readonly authorization: string | undefined; readonly address: string },
  proof: AdminProof,
): Promise<KeyRecord> {
  const text = bearerText(sent.authorization);
  if (text === undefined) {
    throw new Fault("key_invalid", {
      message: "No admin key was sent. Send it as a header: Authorization: Bearer trunkline_admin_…",
    });
  }
  const parsed = parseKeyToken(text);
  if (parsed.outcome !== "parsed") return validKey({ outcome: "invalid" });
  const { token } = parsed;
  const ask = (): Promise<KeyVerdict> => verdictOn(token, proof);
  // Admin keys never wait behind wrong keys: an operator who is locked out of the operations port cannot stop an
  // attack.
  const record = validKey(await (token.kind === "model" ? proof.badKeys.ask(sent.address, ask) : ask()));
  if (record.kind !== "model") return record;
  throw new Fault("insufficient_permissions", {
    message: "This is an API key for models. Use an admin key here.",
  });
}

async function verdictOn(token: KeyToken, { keys, peppers, clock }: AdminProof): Promise<KeyVerdict> {
  try {
    const verdict = await checkKey({ token, keys, peppers, nowMs: clock.wall() });
    if (verdict.outcome !== "valid") return verdict;
    const issuers = await issuersOf(verdict.proven.record, keys);
    if (issuers.some(({ revokedAt }) => revokedAt !== undefined)) return { outcome: "invalid" };
    return issuers.some(({ disabledAt }) => disabledAt !== undefined) ? { outcome: "disabled" } : verdict;
  } catch (error) {
    const { internal, message } = Fault.from(error);
    throw authUnavailable(internal ?? message);
  }
}
