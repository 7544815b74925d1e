import { hash } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { Fault } from "#shared/fault/fault.ts";
import { parseKeyToken } from "#shared/keys/key-token.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import {
  loginCodeMs,
  loginEndPath,
  loginKeyPath,
  loginPath,
  loginProof,
  type LoginProof,
  type LoginWish,
} from "#shared/protocol/login.ts";
import { changeKey } from "#shared/records/change-key.ts";
import { checkKey } from "#shared/records/judge-key.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import { boundBodies, refuseOtherMethods } from "../http/answer-faults.ts";
import { readJsonObject, readShape } from "../http/read-json.ts";
import type { IdempotencyRecords } from "../jobs/idempotency-records.ts";
import { validKey } from "../keys/authenticate.ts";
import type { BadKeys } from "../keys/bad-keys.ts";

/** Largest body of what the command asks. It takes a fifth of this. */
const loginBodyBytesMax = 2_048;

/** The key that a member allowed to a computer. */
const allowed = z.object({ person: z.string(), team: z.string(), computer: z.string() });
export type AllowedLogin = Readonly<z.infer<typeof allowed>>;

interface LoginParts {
  /** Keeps each code with what it allows, for all gateways. */
  readonly codes: IdempotencyRecords;
  readonly keys: KeyStore;
  readonly peppers: Peppers;
  readonly badKeys: BadKeys;
  readonly clock: Pick<Clock, "wall">;
  readonly log: Log;
  /** Makes the key as the member's own operation does. */
  readonly makeKey: (allowed: AllowedLogin, request: FastifyRequest) => Promise<unknown>;
}

/**
 * Allows a login to get a key of this member. Returns where the browser goes: to the computer that it runs on, with a code
 * that is good once, for `loginCodeMs`, for whoever knows the port, the state and the verifier of the login.
 */
export async function allowLogin(
  wish: LoginWish,
  person: string,
  { codes, peppers }: Pick<LoginParts, "codes" | "peppers">,
): Promise<string> {
  const { port, state, team, computer } = wish;
  const code = newToken();
  const owner = JSON.stringify({ person, team, computer } satisfies AllowedLogin);
  const digest = peppers.current.signChallenge(boundTo(`${code} ${owner}`, wish));
  await codes.put(nameOf(code), { owner, digest }, { forMs: loginCodeMs });
  return `http://127.0.0.1:${port}/?${new URLSearchParams({ code, state }).toString()}`;
}

/** Returns what a code allows, for exactly one call with the parts of its login, or the refusal of a wrong code. */
async function takeCode(
  { code, verifier, ...bound }: LoginProof,
  { codes, peppers }: Pick<LoginParts, "codes" | "peppers">,
): Promise<AllowedLogin | Fault> {
  // No record has this owner, so that this reads one and changes none.
  const held = await codes.put(nameOf(code), { owner: "", digest: "" }, { from: "nobody", forMs: loginCodeMs });
  if (held === undefined)
    return codeRefused(`is older than ${loginCodeMs / 1_000} s (loginCodeMs), or of another site`);
  const { owner: from } = held;
  const challenge = hash("sha256", verifier, "base64url");
  const signatures = peppers.challengeSignatures(boundTo(`${code} ${from}`, { ...bound, challenge }));
  if (![...signatures, used].includes(held.digest)) return codeRefused("belongs to another login");
  const mine = { owner: newToken(), digest: used };
  const taken = held.digest === used ? held : await codes.put(nameOf(code), mine, { from, forMs: loginCodeMs });
  if (taken?.owner !== mine.owner) return codeRefused("was used before");
  return allowed.parse(jsonIn(from));
}

const used = "used";

/** Records are bounded by key. The end of a code spreads them. */
function nameOf(code: string) {
  return { keyId: `login-${code.slice(-2)}`, name: code };
}

/** Returns what is signed under the pepper for a code, so that a writer of the store makes none. */
function boundTo(allows: string, { port, state, challenge }: Pick<LoginWish, "port" | "state" | "challenge">): string {
  return `login ${port} ${state} ${challenge} ${allows}`;
}

function codeRefused(reason: string): Fault {
  const message = `The code of this login ${reason}. Begin again with \`trunkline login\`.`;
  return new Fault("invalid_value", { message, param: "code" });
}

/** Mounts what `trunkline login` and `trunkline logout` ask for. Neither has a session. */
export function loginRoutes(server: FastifyInstance, parts: LoginParts): void {
  const { keys, peppers, badKeys, clock, log, makeKey } = parts;
  const mount = async (scope: FastifyInstance): Promise<void> => {
    boundBodies(scope, { log, bodyBytesMax: loginBodyBytesMax, bodyLimitName: "loginBodyBytesMax" });
    scope.addHook("onRequest", async (_, reply) => void reply.header("cache-control", "no-store"));
    scope.post(loginKeyPath.slice(loginPath.length), async (request) => {
      const proof = readBody(loginProof, request);
      const { taken } = await badKeys.ask(request.ip, async () => {
        const found = await takeCode(proof, parts);
        return { taken: found, outcome: found instanceof Fault ? "invalid" : "valid" };
      });
      if (taken instanceof Fault) throw taken;
      return makeKey(taken, request);
    });
    scope.post(loginEndPath.slice(loginPath.length), async (request) => {
      const parsed = parseKeyToken(readBody(z.strictObject({ key: z.string() }), request).key);
      const check = async () =>
        parsed.outcome === "parsed"
          ? checkKey({ token: parsed.token, keys, peppers, nowMs: clock.wall() })
          : ({ outcome: "invalid" } as const);
      const { id, kind, person } = validKey(await badKeys.ask(request.ip, check));
      if (kind !== "model" || person === undefined)
        throw new Fault("insufficient_permissions", { message: "This is no key of a person. An admin revokes it." });
      await changeKey(id, { action: "revoked" }, { keys, clock, actor: { by: `key ${id}`, request: request.id } });
      return { revoked: true };
    });
  };
  void server.register(mount, { prefix: loginPath });
  for (const each of [loginKeyPath, loginEndPath]) refuseOtherMethods(server, each, ["POST"]);
}

function readBody<Shape extends z.ZodType>(shape: Shape, { body }: FastifyRequest): z.output<Shape> {
  return readShape(shape, body instanceof Buffer ? readJsonObject(body) : {}).value;
}
