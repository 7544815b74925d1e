import type { ServerResponse } from "node:http";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import { faultEntry, Fault } from "#shared/fault/fault.ts";
import { linesMedia, type ManageLine } from "#shared/model/model.ts";
import type { Log } from "#shared/process/log.ts";
import { untilClientLeaves } from "../keys/authenticate.ts";
import { clientBacklogBytesMax } from "../jobs/write-answer.ts";
import { logFieldsOf } from "../http/request-state.ts";
import { readJsonObject } from "../http/read-json.ts";
import { readShape } from "../http/read-shape.ts";
import { faultBody } from "../http/answer-faults.ts";
import type { AdminOperation } from "./admin-api.ts";

/** A request whose parts the schemas of its operation have validated. */
interface OperationInput<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType> {
  readonly params: z.output<Params>;
  readonly query: z.output<Query>;
  readonly body: z.output<Body>;
  readonly request: FastifyRequest;
}

/** Mounts the route of an operation. Reads and validates the whole request before the operation starts. */
export function serveOperation<
  Params extends z.ZodType,
  Query extends z.ZodType,
  Body extends z.ZodType,
  Answer extends z.ZodType,
>(
  server: FastifyInstance,
  operation: AdminOperation<Params, Query, Body, Answer>,
  answer: (input: OperationInput<Params, Query, Body>) => Promise<z.output<Answer>>,
): void {
  mount(server, operation, async (request, reply) =>
    reply.code(operation.status).send(await answer(readInput(operation, request))),
  );
}

/** The client's side of an operation that reports its progress line by line. */
interface LineOutput {
  readonly tell: (line: ManageLine) => void;
  /** Aborts when the client has disconnected. */
  readonly signal: AbortSignal;
}

/**
 * Mounts the route of a long operation that reports its progress as JSON lines. The last line says that it is done, or
 * is its error. The operation is aborted when its client disconnects.
 */
export function serveLines<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType>(
  server: FastifyInstance,
  operation: AdminOperation<Params, Query, Body>,
  parts: {
    readonly log: Log;
    readonly work: (input: OperationInput<Params, Query, Body>, output: LineOutput) => Promise<void>;
  },
): void {
  const { log, work } = parts;
  mount(server, operation, async (request, reply) => {
    const input = readInput(operation, request);
    const leaving = untilClientLeaves(reply.raw);
    const writer = new LineWriter(reply.raw, (fault) => leaving.abort(fault));
    for (const [name, value] of Object.entries(reply.getHeaders()))
      if (value !== undefined) reply.raw.setHeader(name, value);
    try {
      await work(input, { tell: (line) => writer.write(line), signal: leaving.signal });
    } catch (thrown) {
      const fault = Fault.from(thrown);
      if (!writer.begun) throw fault;
      const fields = { ...logFieldsOf(request), code: fault.code, internal: fault.reason };
      if (faultEntry(fault.code).status < 500) log.debug(fields, "work was ended by whoever asked for it");
      else log.warn(fields, "work failed after its first line");
      reply.hijack();
      if (fault.code === "slow_client" || reply.raw.destroyed) reply.raw.destroy();
      else writer.end(faultBody(fault));
      return reply;
    }
    reply.hijack();
    writer.end({ done: true });
    return reply;
  });
}

function mount(
  server: FastifyInstance,
  { method, path }: AdminOperation,
  handler: (request: FastifyRequest, reply: FastifyReply) => Promise<unknown>,
): void {
  server.route({ method, url: routeUrl(path), handler });
}

function readInput<Params extends z.ZodType, Query extends z.ZodType, Body extends z.ZodType>(
  operation: AdminOperation<Params, Query, Body>,
  request: FastifyRequest,
): OperationInput<Params, Query, Body> {
  return {
    params: readShape(operation.params, { ...Object(request.params) }).value,
    query: readShape(operation.query, { ...Object(request.query) }).value,
    body: readShape(operation.body, readBody(request.body)).value,
    request,
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

const linesHeaders = { "content-type": linesMedia, "cache-control": "no-store", "x-accel-buffering": "no" } as const;

/**
 * Writes an answer as JSON lines. The status line is sent with the first JSON line, so a failure before that has its
 * own status.
 */
class LineWriter {
  readonly #response: ServerResponse;
  readonly #onBacklog: (fault: Fault) => void;

  /** Calls `onBacklog` when the client's unread backlog exceeds `clientBacklogBytesMax`. */
  constructor(response: ServerResponse, onBacklog: (fault: Fault) => void) {
    this.#response = response;
    this.#onBacklog = onBacklog;
  }

  /** True if the status was sent. A failure can then only be reported in a line. */
  get begun(): boolean {
    return this.#response.headersSent;
  }

  write(line: ManageLine): void {
    if (!this.begun) this.#response.writeHead(200, linesHeaders);
    this.#response.write(`${JSON.stringify(line)}\n`);
    if (this.#response.writableLength <= clientBacklogBytesMax) return;
    this.#onBacklog(
      new Fault("slow_client", {
        message: `The client left more than ${clientBacklogBytesMax} bytes unread (clientBacklogBytesMax).`,
      }),
    );
  }

  /** Writes the last line, which reports the outcome, and ends the response. */
  end(line: ManageLine): void {
    this.write(line);
    this.#response.end();
  }
}
