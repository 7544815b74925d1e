import type { IncomingMessage } from "node:http";

/** How long a client that is still sending has to take its answer. */
const lastWordsMs = 1_000;

/**
 * Closes a request's connection after the answer without reading what its client still sends. To close it at once would
 * take the answer back: unread bytes make the system tell the client of a broken connection instead. So only our own
 * side is closed, and the other when the client had its time.
 */
export function closeUnread(request: IncomingMessage): void {
  // Of a body that nobody began to read, Node would read all that comes and throw it away.
  request.read(0);
  const { socket } = request;
  socket.destroySoon = () => {
    socket.end();
    const closing = setTimeout(() => socket.destroy(), lastWordsMs);
    socket.once("close", () => clearTimeout(closing));
  };
}
