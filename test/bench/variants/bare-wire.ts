export const jobSubject = "bare.machine.one.job";
export const cancelSubject = "bare.machine.one.cancel";
export const replyPrefix = "bare.reply.one.";

/** The first byte of every message to the gateway. A whole answer has its status in two more. */
export const frame = { data: 0, end: 1, broken: 2, whole: 3 } as const;

/** Something that has to be sent once the event loop has brought all that it has for now. */
interface Waiting {
  send(): void;
}

let waiting: Waiting[] = [];

/** All that comes together in one turn of the event loop leaves in one write. */
export function sendAfterTurn(one: Waiting): void {
  if (waiting.push(one) > 1) return;
  setImmediate(() => {
    const all = waiting;
    waiting = [];
    for (const each of all) each.send();
  });
}
