import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { faultEntry } from "#shared/fault/fault-code.ts";
import { Fault } from "#shared/fault/fault.ts";
import { scrub, type Log } from "#shared/process/log.ts";
import { closeUnread } from "./close-unread.ts";
import { adoptError, type BodyLimit, unreadBody } from "../intake/adopt-error.ts";
import { faultBody, faultHeaders } from "../openai/fault-body.ts";
import { tiesOf } from "./request-facts.ts";
import { stateOf } from "./request-state.ts";
import { unknownUrl } from "./unknown-url.ts";

interface Means extends BodyLimit {
  readonly log: Log;
}

/** Answers every error that a server's routes throw with one kind of body and a code from one closed list. */
export function tellFaults(server: FastifyInstance, means: Means): void {
  server.setErrorHandler(async (thrown, request, reply) => {
    const gone = request.raw.destroyed && !request.raw.complete;
    const fault = gone ? clientLeft() : adoptError(thrown, means);
    const fields = { ...tiesOf(request), code: fault.code, internal: fault.reason };
    if (faultEntry(fault.code).status >= 500) means.log.warn(fields, "request failed");
    else if (fault.code === "key_invalid" && fault.internal !== undefined) means.log.warn(fields, "request refused");
    else means.log.debug(fields, "request refused");
    await tellFault(fault, { request, reply, ...means });
    return reply;
  });
  server.setNotFoundHandler(async (request) => {
    throw unknownUrl(request);
  });
}

/** Sends the body of a fault, and either reads or cuts off the unread rest of the request's body. */
export async function tellFault(
  fault: Fault,
  to: BodyLimit & { readonly request: FastifyRequest; readonly reply: FastifyReply },
): Promise<void> {
  const { request, reply, bodyBytesMax } = to;
  const state = stateOf(request);
  state.told = fault.code;
  state.reason = fault.reason;
  if (!request.raw.complete) {
    const rest = unreadBody({ code: fault.code, headers: request.headers, bodyBytesMax });
    if (rest === "close") {
      reply.header("connection", "close");
      closeUnread(request.raw);
    }
  }
  const { error } = faultBody(fault);
  // A message may quote the client's input, and a client may send its key in the wrong place.
  const body = { error: { ...error, message: scrub(error.message) } };
  reply.code(faultEntry(fault.code).status).headers(faultHeaders(fault)).send(body);
}

function clientLeft(): Fault {
  return new Fault("client_closed", { message: "The client closed the connection before its request was complete." });
}
