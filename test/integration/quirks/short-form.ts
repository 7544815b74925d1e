/**
 * Streams as this folder writes them: one event a line, and `{…` for the fields that every chunk begins with and that
 * are not what a test is about.
 */

const oddHead = '{"id":"chatcmpl-417","object":"chat.completion.chunk","created":1795200000,"model":"theirs",';
const lineHead = '{"model":"m:latest","created_at":"2026-11-20T10:00:00.123456789Z",';

/** What a runtime sends. Lines that are no JSON lines of Ollama's are events, with an empty line between. */
export function fromRuntime(short: string): string {
  const lines = short.trim().split("\n");
  const full = lines.map((line) => line.trim().replace("{…", line.includes("data:") ? oddHead : lineHead));
  return full.every((line) => line.startsWith("{")) ? `${full.join("\n")}\n` : `${full.join("\n\n")}\n\n`;
}

/** What a client was sent, with its head checked: the same one on every chunk, and the client's own name of the model. */
export function toClient(stream: string): string {
  const heads = new Set(stream.matchAll(/\{"id":.*?"model":"[^"]*",/g).map(([head]) => head));
  if (heads.size > 1) throw new Error(`the chunks have several heads: ${[...heads].join(" ")}`);
  const [head = "{"] = heads;
  const own = /^\{"id":"chatcmpl-\w{12,}","object":"chat.completion.chunk","created":\d{10},"model":"m",$/;
  if (heads.size > 0 && !own.test(head)) throw new Error(`the head of the chunks is not regular: ${head}`);
  return `\n${stream.replaceAll(head, "{… ").replaceAll("\n\n", "\n")}`;
}
