import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Input, AdminOperation, AdminSite } from "#shared/admin/operation.ts";
import { faultEntry, Fault } from "#shared/fault/fault.ts";
import type { KeyStore } from "#shared/records/key-store.ts";
import { linesMedia, type ManageLine } from "#shared/protocol/model.ts";
import type { Log } from "#shared/process/log.ts";
import type { SessionStore } from "#shared/records/session-record.ts";
import type { AlertSender } from "../alerts/alert-sender.ts";
import type { Keeper } from "../placing/keeper.ts";
import type { BadKeys } from "../keys/bad-keys.ts";
import { untilClientLeaves } from "../keys/authenticate.ts";
import type { FleetModels } from "../jobs/fleet-models.ts";
import { clientBacklogBytesMax } from "../jobs/write-answer.ts";
import { logFieldsOf } from "../http/request-state.ts";
import { readJsonObject, readShape } from "../http/read-json.ts";
import { faultBody } from "../http/answer-faults.ts";
import { askerOf, assertAdmin, type Asker } from "./operations-access.ts";
import type { FleetView } from "./fleet-view.ts";
import type { SiteParts } from "./site-view.ts";
import type { EventTeller } from "./tell-events.ts";
import type { SiteRequests } from "./site-requests.ts";

/** The parts of a gateway with which operations of the admin API work. */
export interface AdminParts extends Omit<AdminSite, "actor" | "admin"> {
  /** The key store that authenticates admin keys. Defaults to `keys`. */
  readonly newest?: Pick<KeyStore, "find">;
  readonly keeper: Pick<Keeper, "plan">;
  readonly sessions: SessionStore;
  readonly badKeys: BadKeys;
  readonly fleet: Pick<FleetModels, "list" | "manage">;
  readonly view: Pick<FleetView, "machines" | "route">;
  readonly siteParts: SiteParts;
  /** Where clients reach the models, and people the console. */
  readonly addresses: () => { readonly baseUrl: string; readonly consoleUrl: string };
  readonly events: Pick<EventTeller, "follow">;
  readonly running: Pick<SiteRequests, "list" | "cancel">;
  readonly alertSender: Pick<AlertSender, "send">;
  readonly log: Log;
}

type InputOf<Of extends AdminOperation> = Input<Of["params"], Of["query"], Of["body"]>;

/** Reads and validates the whole request, runs the operation and sends its answer. */
export type Handle<Parts = AdminParts> = (
  request: FastifyRequest,
  reply: FastifyReply,
  parts: Parts,
) => Promise<unknown>;

/** Returns the handle of an operation that answers with one JSON object. */
export function answering<Of extends AdminOperation>(
  operation: Of,
  run: (input: InputOf<Of>, parts: AdminParts & Asker) => Promise<z.output<Of["answer"]>>,
): Handle {
  return async (request, reply, parts) => {
    const answer = await run(readInput(operation, request), { ...parts, ...askerOf(request) });
    return reply.code(operation.status).send(answer);
  };
}

/** The client's side of an operation that reports its progress line by line. */
interface LineOutput {
  readonly tell: (line: ManageLine) => void;
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignal;
}

/**
 * Returns the handle of a long operation that reports its progress as JSON lines. The last line says that it is done, or is its error.
 * The operation is aborted when its client disconnects.
 */
export function tellingLines<Of extends AdminOperation>(
  operation: Of,
  run: (input: InputOf<Of>, output: LineOutput, parts: AdminParts & Asker) => Promise<void>,
): Handle {
  return async (request, reply, parts) => {
    const { log } = parts;
    const { raw } = reply;
    const input = readInput(operation, request);
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
      await run(input, { tell, signal: leaving.signal }, { ...parts, ...askerOf(request) });
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
}

const linesHeaders = { "content-type": linesMedia, "cache-control": "no-store", "x-accel-buffering": "no" } as const;

function tooSlow(): Fault {
  return new Fault("slow_client", {
    message: `The client left more than ${clientBacklogBytesMax} bytes unread (clientBacklogBytesMax).`,
  });
}

export function serveOperation<Parts>(
  server: FastifyInstance,
  { method, path, forAdmins }: AdminOperation,
  { handle, parts }: { readonly handle: Handle<Parts>; readonly parts: Parts },
): void {
  server.route({
    method,
    url: routeUrl(path),
    ...(forAdmins && { onRequest: assertAdmin }),
    handler: (request, reply) => handle(request, reply, parts),
  });
}

export function readInput({ params, query, body }: AdminOperation, request: FastifyRequest): Input {
  return {
    params: readShape(params, { ...Object(request.params) }).value,
    query: readShape(query, { ...Object(request.query) }).value,
    body: readShape(body, readBody(request.body)).value,
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
