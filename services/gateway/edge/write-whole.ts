import type { FastifyReply } from "fastify";
import { addDueHeaders } from "./due-headers.ts";

/** Up to this size a copy costs less than a piece of its own on the way to the kernel. */
const joinedBytesMax = 16 * 1024;

/**
 * Writes an answer that is complete, with these headers (a name, its value, the next name) and those that its reply has
 * by now: head and body in one piece, past all that a framework does for answers whose form it has yet to find out. Every
 * header that is due must be among them.
 */
export function writeWhole(reply: FastifyReply, lines: string[], body: Buffer): void {
  lines.push("content-length", String(body.byteLength));
  addDueHeaders(lines, reply);
  reply.hijack();
  const response = reply.raw;
  response.writeHead(200, lines);
  // Node joins a head and a body that are both text. In latin1 each byte is a character and each character that byte.
  if (body.byteLength <= joinedBytesMax) response.end(body.toString("latin1"), "latin1");
  else response.end(body);
}
