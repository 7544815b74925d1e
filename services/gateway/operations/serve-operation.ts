import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { keyName } from "#shared/records/key-record.ts";
import { faultEntry, Fault, type FaultCode } from "#shared/fault/fault.ts";
import type { KeyStore, UnreadRecord } from "#shared/records/key-store.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import type { MachineStore } from "#shared/records/machine-record.ts";
import { linesMedia, type ManageLine } from "#shared/protocol/model.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { RouteStore } from "#shared/records/route-record.ts";
import type { SessionStore } from "#shared/records/session-record.ts";
import type { RequestRecords } from "#shared/requests/request-records.ts";
import type { UsageRows } from "#shared/usage/usage.ts";
import type { KeepStore } from "#shared/records/keep-record.ts";
import type { Keeper } from "../placing/keeper.ts";
import type { BadKeys } from "../keys/bad-keys.ts";
import { untilClientLeaves } from "../keys/authenticate.ts";
import type { FleetModels } from "../jobs/fleet-models.ts";
import { clientBacklogBytesMax } from "../jobs/write-answer.ts";
import { logFieldsOf } from "../http/request-state.ts";
import { readJsonObject } from "../http/read-json.ts";
import { readShape } from "../http/read-shape.ts";
import { faultBody } from "../http/answer-faults.ts";
import { askerOf, assertAdmin, type Asker } from "./operations-access.ts";
import type { FleetView } from "./fleet-view.ts";
import type { EventTeller } from "./tell-events.ts";

/** The parts of a gateway with which operations of the admin API work. */
export interface AdminParts {
  readonly keys: KeyStore;
  /** The key store that authenticates admin keys. Defaults to `keys`. */
  readonly newest?: Pick<KeyStore, "find">;
  readonly machines: MachineStore;
  readonly routes: RouteStore;
  readonly keeps: KeepStore;
  readonly keeper: Pick<Keeper, "plan">;
  readonly sessions: SessionStore;
  /** Returns true while an agent that was not paired has this name. */
  readonly isNameUsed: (machine: string) => boolean;
  readonly peppers: Peppers;
  readonly usage: UsageRows;
  readonly requests: RequestRecords;
  readonly badKeys: BadKeys;
  readonly fleet: Pick<FleetModels, "list" | "manage">;
  readonly view: Pick<FleetView, "machines" | "route">;
  /** Where clients reach the models, and people the console. */
  readonly addresses: () => { readonly baseUrl: string; readonly consoleUrl: string };
  readonly events: Pick<EventTeller, "follow">;
  readonly clock: Pick<Clock, "wall">;
  readonly log: Log;
}

/** The description of an operation. Its route and its documentation are both generated from this. */
interface Description<
  Params extends z.ZodType = z.ZodType,
  Query extends z.ZodType = z.ZodType,
  Body extends z.ZodType = z.ZodType,
  Answer extends z.ZodType = z.ZodType,
> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** The path below the API's prefix, with parameters in braces. */
  readonly path: string;
  readonly summary: string;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly answer: Answer;
  readonly status: 200 | 201;
  /**
   * The media type of an answer that is a stream of lines or of events, where each one matches `answer`. Undefined for one
   * JSON object.
   */
  readonly media?: typeof linesMedia | typeof eventsMedia;
  /** The faults that this operation may return besides those of every operation. */
  readonly refusals: readonly FaultCode[];
  /** True if it changes keys or sessions, which an operator's session may not. */
  readonly forAdmins?: true;
  /** An example body. It holds no secret. */
  readonly example?: object;
}

export interface AdminOperation extends Description {
  /** Reads and validates the whole request, runs the operation and sends its answer. */
  readonly handle: (request: FastifyRequest, reply: FastifyReply, parts: AdminParts) => Promise<unknown>;
}

/** A request whose parts the schemas of its operation have validated. */
interface OperationInput<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> {
  readonly params: z.output<Params>;
  readonly query: z.output<Query>;
  readonly body: z.output<Body>;
  /** The admin key that asks, and its name in the audit trail. Only `describeApi` is asked without one. */
  readonly asker: Asker;
}

export const nothing = z.strictObject({});

/** The usual fields of a description: the request has neither parameters nor a body. */
export const reads = {
  method: "GET",
  params: nothing,
  query: nothing,
  body: nothing,
  status: 200,
  refusals: [],
} as const;

/** Makes an operation that answers with one JSON object. */
export function defineOperation<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Answer extends z.ZodType,
>({
  run,
  ...description
}: Description<Params, Query, Body, Answer> & {
  readonly run: (input: OperationInput<Params, Query, Body>, parts: AdminParts) => Promise<z.output<Answer>>;
}): AdminOperation {
  return {
    ...description,
    handle: async (request, reply, parts) =>
      reply.code(description.status).send(await run(readInput(description, request), parts)),
  };
}

/** The client's side of an operation that reports its progress line by line. */
interface LineOutput {
  readonly tell: (line: ManageLine) => void;
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignal;
}

/**
 * Makes a long operation that reports its progress as JSON lines. The last line says that it is done, or is its error.
 * The operation is aborted when its client disconnects.
 */
export function defineLineOperation<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType>({
  run,
  ...description
}: Description<Params, Query, Body> & {
  readonly run: (input: OperationInput<Params, Query, Body>, output: LineOutput, parts: AdminParts) => Promise<void>;
}): AdminOperation {
  const handle: AdminOperation["handle"] = async (request, reply, parts) => {
    const { log } = parts;
    const { raw } = reply;
    const input = readInput(description, request);
    const leaving = untilClientLeaves(raw);
    // The status is sent with the first line, so a failure before that has its own status.
    const tell = (line: ManageLine): void => {
      if (!raw.headersSent) raw.writeHead(200, linesHeaders);
      raw.write(`${JSON.stringify(line)}\n`);
      if (raw.writableLength > clientBacklogBytesMax) leaving.abort(tooSlow());
    };
    for (const [name, value] of Object.entries(reply.getHeaders())) {
      if (value !== undefined) raw.setHeader(name, value);
    }
    let outcome: ManageLine = { done: true };
    try {
      await run(input, { tell, signal: leaving.signal }, parts);
    } catch (thrown) {
      const fault = Fault.from(thrown);
      if (!raw.headersSent) throw fault;
      const fields = { ...logFieldsOf(request), code: fault.code, internal: fault.reason };
      if (faultEntry(fault.code).status < 500) log.debug(fields, "work was ended by whoever asked for it");
      else log.warn(fields, "work failed after its first line");
      if (fault.code === "slow_client") raw.destroy();
      outcome = faultBody(fault);
    }
    reply.hijack();
    if (raw.destroyed) return reply;
    tell(outcome);
    raw.end();
    return reply;
  };
  return { ...description, media: linesMedia, handle };
}

export const eventsMedia = "text/event-stream";

const linesHeaders = { "content-type": linesMedia, "cache-control": "no-store", "x-accel-buffering": "no" } as const;

function tooSlow(): Fault {
  return new Fault("slow_client", {
    message: `The client left more than ${clientBacklogBytesMax} bytes unread (clientBacklogBytesMax).`,
  });
}

export function serveOperation(
  server: FastifyInstance,
  { method, path, forAdmins, handle }: AdminOperation,
  parts: AdminParts,
): void {
  server.route({
    method,
    url: routeUrl(path),
    ...(forAdmins && { onRequest: assertAdmin }),
    handler: (request, reply) => handle(request, reply, parts),
  });
}

function readInput<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType>(
  { params, query, body }: Pick<Description<Params, Query, Body>, "params" | "query" | "body">,
  request: FastifyRequest,
): OperationInput<Params, Query, Body> {
  return {
    params: readShape(params, { ...Object(request.params) }).value,
    query: readShape(query, { ...Object(request.query) }).value,
    body: readShape(body, readBody(request.body)).value,
    get asker() {
      return askerOf(request);
    },
  };
}

/** Converts a path with parameters in braces to the router's syntax. */
export function routeUrl(path: string): string {
  return path.replace(/\{(\w+)\}/g, ":$1");
}

/** Reads a JSON body. A missing body counts as an empty object. */
function readBody(body: unknown): Record<string, unknown> {
  return body instanceof Buffer && body.byteLength > 0 ? readJsonObject(body) : {};
}

/** The place of a request in the order in which requests ended. */
export const requestCursor = /^[1-9]\d{0,15}(?:-\d{1,16})?$/;

/** Returns the schema of an answer that lists entries. */
export function listOf<Entry extends z.ZodType>(data: z.ZodArray<Entry>) {
  return z.strictObject({ object: z.literal("list"), data });
}

/** Returns the schema of a list of stored records. */
export function recordsOf<Entry extends z.ZodType>(data: z.ZodArray<Entry>) {
  return listOf(data).extend({
    unread: z.int().describe("Records that this version of Trunkline cannot read. The list leaves them out."),
  });
}

/** Answers with the records of a list, and with the number of those that it leaves out. */
export async function listRecords<Kept, Shown>(
  list: (unread: UnreadRecord[]) => Promise<readonly Kept[]>,
  show: (record: Kept) => Shown,
) {
  const unread: UnreadRecord[] = [];
  const data = (await list(unread)).map(show);
  return { object: "list" as const, data, unread: unread.length };
}

/** Returns the schema of a whole number in a URL. */
export function numberInUrl<Schema extends z.ZodType>(schema: Schema) {
  return z.preprocess((text) => (typeof text === "string" && /^\d{1,9}$/.test(text) ? Number(text) : text), schema);
}

/** A filter by keys. */
export const keyText = keyName.describe("Only of the key with this id, or of the keys with this name.");

export const yesOrNo = z.stringbool({ truthy: ["true"], falsy: ["false"] });

const perPageMax = 1_000;
const perPageDefault = 100;

/** The length of a page, as a number in a URL. */
export const pageLength = numberInUrl(
  z.int().min(1).max(perPageMax).default(perPageDefault).describe("The most entries of a page."),
);

/** A field of answers to changes. */
export const replicated = z
  .boolean()
  .optional()
  .describe(
    "Told of a change that takes a right away, where Redis has a replica: whether one has the change. At false a failover " +
      "can lose it: repeat it until it is true.",
  );
