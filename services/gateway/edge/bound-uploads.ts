import type { FastifyInstance, FastifyRequest } from "fastify";
import { callerIfProven } from "../access/caller.ts";
import { insistOnPlainJson } from "../intake/insist-on-plain-json.ts";
import { UploadRoom } from "../intake/upload-room.ts";
import { stateOf } from "./request-state.ts";
import { atClose } from "./timed-response.ts";

/**
 * Leaves every body as bytes, and lets it in only where there is room for it. A sender who waits to be asked for its
 * body is asked here, once its key is proved and never before.
 */
export function boundUploads(server: FastifyInstance, bodyBytesMax: number): void {
  server.removeAllContentTypeParsers();
  server.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => done(null, body));

  const room = new UploadRoom();
  server.addHook("preParsing", (request, reply, payload, done) => {
    if (!mayHaveBody(request)) {
      done(null, payload);
      return;
    }
    insistOnPlainJson(request.headers);
    const whose = callerIfProven(request)?.key.id ?? request.ip;
    const leave = room.enter({ headers: request.headers, bodyBytesMax, whose });
    stateOf(request).leaveRoom = leave;
    if (reply.raw.closed) leave();
    else atClose(reply.raw, leave);
    const declaredBytes = Number(request.headers["content-length"] ?? 0);
    const asksFirst = request.headers.expect !== undefined && request.raw.httpVersion === "1.1";
    if (asksFirst && declaredBytes <= bodyBytesMax) reply.raw.writeContinue();
    done(null, payload);
  });
  server.addHook("preHandler", (request, _reply, done) => {
    stateOf(request).leaveRoom?.();
    done();
  });
}

/** What comes with a method that takes none was refused before; a type alone makes no body. */
function mayHaveBody(request: FastifyRequest): boolean {
  return request.method !== "GET" && request.method !== "HEAD";
}
