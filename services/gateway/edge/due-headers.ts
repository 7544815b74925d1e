import type { FastifyReply } from "fastify";

/** Adds the headers that a reply has by now to those of its answer, as Node takes them in one: a name, its value, the next name. */
export function addDueHeaders(lines: string[], reply: FastifyReply): void {
  const headers = reply.getHeaders();
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) lines.push(name, String(value));
  }
}
