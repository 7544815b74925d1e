import { Fault } from "#shared/fault/fault.ts";
import type { Book } from "#shared/records/book.ts";
import type { KeyRecord, KeyVerdict } from "#shared/records/key-record.ts";
import { type KeyId, parseKeyToken } from "#shared/keys/key-token.ts";
import type { BadKeys } from "./bad-keys.ts";
import { type KnownKeys, authUnavailable } from "./known-keys.ts";
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Exchange } from "../http/request-state.ts";
import { TimedResponse } from "../http/timed-response.ts";

/** Returns the record of a valid key; throws the fault for any other verdict. */
export function validKey(verdict: KeyVerdict): KeyRecord {
  switch (verdict.outcome) {
    case "valid":
      return verdict.proven.record;
    case "expired":
      throw new Fault("key_expired", { message: "This API key has expired. Ask whoever issued it for a new one." });
    case "replaced":
      throw new Fault("key_expired", {
        message: "This API key was replaced by a new one, and its time of grace is over. Use the new one.",
      });
    case "disabled":
      throw new Fault("key_invalid", { message: "This API key is disabled for now. Ask whoever issued it." });
    case "invalid":
      throw new Fault("key_invalid", { message: "Incorrect API key provided: it does not exist or has been revoked." });
    case "altered":
      throw new Fault("key_invalid", {
        message: "The record of this key was altered in the store. Ask the operator for another key.",
        internal: "the kind of the record is not the kind of the key, so it was altered in the store",
      });
    case "unjudged":
      throw authUnavailable("the key is under a pepper that this gateway does not have");
  }
}

const bearer = /^bearer (\S+)$/i;

/** Returns the token of a Bearer Authorization header; undefined for any other header. */
export function bearerText(authorization: string | undefined): string | undefined {
  return bearer.exec(authorization ?? "")?.[1];
}

/**
 * Returns the text that a request sent as its key. A well-formed key in the Authorization header is taken before those
 * of other headers: some clients send a placeholder there, others in `x-api-key`.
 */
export function sentKey(headers: IncomingHttpHeaders): string | undefined {
  const own = bearer.exec(headers.authorization ?? "")?.[1];
  const other = headers["x-api-key"] || headers["api-key"];
  if (typeof other !== "string") return own;
  return own !== undefined && parseKeyToken(own).outcome === "parsed" ? own : other;
}

/**
 * Finds the key of a request by the text that was sent as its key: at once if the key is known. The address only bounds
 * the lookups of wrong keys.
 */
export function authenticate(
  sent: { readonly text: string | undefined; readonly address: string },
  { knownKeys, badKeys }: { readonly knownKeys: KnownKeys; readonly badKeys: BadKeys },
): KeyRecord | Promise<KeyRecord> {
  if (sent.text === undefined) {
    throw new Fault("key_invalid", {
      message: "No API key was sent. Send it as a header: Authorization: Bearer trunkline_…",
    });
  }
  const parsed = parseKeyToken(sent.text);
  // A malformed key costs no lookup in the store, and so needs no limit.
  if (parsed.outcome !== "parsed") return validKey({ outcome: "invalid" });
  const { token } = parsed;
  const known = knownKeys.recall(token);
  if (known?.outcome === "valid") return known.proven.record;
  if (known !== undefined) return validKey(known);

  if (token.kind !== "model") {
    const kind = token.kind === "admin" ? "An admin key" : "A viewer key";
    throw new Fault("key_invalid", { message: `${kind} calls no models. Send an API key.` });
  }
  const ask = (): Promise<KeyVerdict> => knownKeys.ask(token);
  return (knownKeys.has(token) ? ask() : badKeys.ask(sent.address, ask)).then(validKey);
}

/** The terms that hold for a valid key at this moment. */
export interface Standing {
  /** The key with the least of its own, its person's and its team's terms. */
  readonly key: KeyRecord;
  /** The books that its requests are admitted to: those with limits. */
  readonly books: readonly Book[];
}

/** The sender of a request, with its proven key. */
export interface Caller extends Standing {
  /** Aborts when the request must end: the client has left, or its key was revoked or disabled. */
  readonly leaving: AbortController;
  /** Ends work of the request that goes on without its client when its key is revoked. Call the result when it is over. */
  readonly begin?: (running: AbortController) => () => void;
}

declare module "../http/request-state.ts" {
  interface RequestState {
    caller?: Caller;
  }
}

/** Notes the caller of a request. From now on the request ends when its key is revoked or disabled, or its person is. */
export function noteCaller(
  { request, reply }: Exchange,
  { key, books }: Standing,
  { leaving, running }: { readonly leaving: AbortController; readonly running: RunningRequests },
): void {
  const { state } = request;
  state.caller = { key, books, leaving, begin: (staying) => running.begin(key, staying) };
  state.key = key.id;
  if (!leaving.signal.aborted) reply.raw.once("close", running.begin(key, leaving));
}

/** Returns the caller of an authenticated request. To reach such a route without a caller is a bug, never a way in. */
export function callerOf(request: FastifyRequest): Caller {
  const { caller } = request.state;
  if (caller === undefined) throw Fault.from(new Error("a route that needs a key was reached without one"));
  return caller;
}

/**
 * Returns a controller whose signal aborts when the client leaves before its answer is complete, streamed or not. This
 * signal carries a cancel from the client's socket to the GPU.
 */
export function untilClientLeaves(response: ServerResponse): AbortController {
  const leaving = new AbortController();
  if (response instanceof TimedResponse) response.leaving = leaving;
  response.once("close", () => {
    if (response.writableFinished) return;
    leaving.abort(
      new Fault("client_closed", { message: "The client closed the connection before the answer was complete." }),
    );
  });
  return leaving;
}

/**
 * The running requests of this gateway by key and by its person, from the proof of the key on, so that revoking the key or
 * disabling the person ends them.
 */
export class RunningRequests {
  readonly #byKey = new Map<KeyId, Set<AbortController>>();
  readonly #byPerson = new Map<string, Set<AbortController>>();

  get keyIds(): Iterable<KeyId> {
    return this.#byKey.keys();
  }

  has(id: KeyId): boolean {
    return this.#byKey.has(id);
  }

  /** Adds a running request. Call the returned function when the request has ended, in whatever way. */
  begin({ id, person }: Pick<KeyRecord, "id" | "person">, leaving: AbortController): () => void {
    const endOfKey = beginIn(this.#byKey, id, leaving);
    if (person === undefined) return endOfKey;
    const endOfPerson = beginIn(this.#byPerson, person, leaving);
    return () => {
      endOfKey();
      endOfPerson();
    };
  }

  cut(id: KeyId, fault: Fault): void {
    for (const leaving of this.#byKey.get(id) ?? []) leaving.abort(fault);
  }

  cutPerson(person: string, fault: Fault): void {
    for (const leaving of this.#byPerson.get(person) ?? []) leaving.abort(fault);
  }
}

function beginIn<Id>(running: Map<Id, Set<AbortController>>, id: Id, leaving: AbortController): () => void {
  const all = running.get(id) ?? new Set();
  running.set(id, all.add(leaving));
  return () => {
    if (all.delete(leaving) && all.size === 0) running.delete(id);
  };
}

interface Dependencies {
  readonly knownKeys: KnownKeys;
  readonly badKeys: BadKeys;
  readonly running: RunningRequests;
  /** Throws the fault of a valid key that is refused for the sake of its team or person. */
  readonly standings: { of(key: KeyRecord): Standing | Promise<Standing> };
}

/**
 * Lets only requests with a proven key into a scope of routes, before a byte of their bodies is read. From then on the
 * request is ended when its client leaves, or when its key is revoked or disabled.
 */
export function proveCallers(scope: FastifyInstance, dependencies: Dependencies): void {
  const { running, standings } = dependencies;
  scope.addHook("onRequest", (request, reply, done) => {
    const leaving = untilClientLeaves(reply.raw);
    const enter = (standing: Standing): void => noteCaller({ request, reply }, standing, { leaving, running });
    const key = authenticate({ text: sentKey(request.headers), address: request.ip }, dependencies);
    const standing = key instanceof Promise ? key.then((proven) => standings.of(proven)) : standings.of(key);
    if (standing instanceof Promise) return standing.then(enter);
    enter(standing);
    done();
    return undefined;
  });
}
