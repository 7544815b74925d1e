import type { FastifyReply } from "fastify";

/** Appends the reply's current headers to `lines` in Node's flat form: a name, its value, the next name. */
export function addDueHeaders(lines: string[], reply: FastifyReply): void {
  const headers = reply.getHeaders();
  for (const name in headers) {
    const value = headers[name];
    if (value !== undefined) lines.push(name, String(value));
  }
}
