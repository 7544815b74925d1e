import type { IncomingMessage } from "node:http";

/** Time for a client that is still sending to read its answer. */
const lastWordsMs = 1_000;

/**
 * Closes a request's connection after the answer without reading the rest of its body. Closing it at once would lose
 * the answer. Because of the unread bytes the kernel reports a broken connection to the client instead. Therefore `end`
 * closes only this side first, and `destroy` closes the other after `lastWordsMs`.
 */
export function closeUnread(request: IncomingMessage): void {
  // Node reads and discards the whole body of a request that was never read from; `read(0)` counts as a read.
  request.read(0);
  const { socket } = request;
  socket.destroySoon = () => {
    socket.end();
    const closing = setTimeout(() => socket.destroy(), lastWordsMs);
    socket.once("close", () => clearTimeout(closing));
  };
}
