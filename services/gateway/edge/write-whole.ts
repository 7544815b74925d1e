import type { ServerResponse } from "node:http";
import type { FastifyReply } from "fastify";
import { addDueHeaders } from "./due-headers.ts";
import { TimedResponse } from "./timed-response.ts";

/** Up to this size, copying a body costs less than writing it to the kernel separately. */
const joinedBytesMax = 16 * 1024;
const pieceBytes = 64 * 1024;

/**
 * Writes a complete answer, head and body in one piece, past the framework's handling of unknown payloads. The headers
 * are `lines` (a name, its value, the next name) and the reply's current headers. Together they must be all headers of
 * the answer.
 */
export function writeWhole(reply: FastifyReply, lines: string[], body: Buffer): void {
  lines.push("content-length", String(body.byteLength));
  addDueHeaders(lines, reply);
  reply.hijack();
  const response = reply.raw;
  response.writeHead(200, lines);
  // Node joins a head and a body that are both strings. In latin1 each byte is one character, and back.
  if (body.byteLength <= joinedBytesMax) response.end(body.toString("latin1"), "latin1");
  else writeInPieces(response, body);
}

/**
 * Writes one piece after the other as the client reads them. With one large piece the client's progress could not be
 * seen.
 */
function writeInPieces(response: ServerResponse, body: Buffer): void {
  let at = 0;
  const writeOn = (): void => {
    while (!response.destroyed) {
      const piece = body.subarray(at, at + pieceBytes);
      at += piece.byteLength;
      if (response instanceof TimedResponse) response.keptBytes = body.byteLength - at;
      if (at === body.byteLength) {
        response.end(piece);
        return;
      }
      if (!response.write(piece)) {
        response.once("drain", writeOn);
        return;
      }
    }
  };
  writeOn();
}
