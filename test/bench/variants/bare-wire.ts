export const jobSubject = "bare.machine.one.job";
export const cancelSubject = "bare.machine.one.cancel";
/** Of this process, which answers come to. */
export const replyPrefix = `bare.reply.${process.pid}.`;

/** The first byte of every message to the gateway. A whole answer has its status in two more. */
export const frame = { data: 0, end: 1, broken: 2, whole: 3 } as const;

let waiting: (() => void)[] = [];

/** All that comes together in one turn of the event loop leaves in one write. */
export function afterTurn(send: () => void): void {
  if (waiting.push(send) > 1) return;
  setImmediate(() => {
    const all = waiting;
    waiting = [];
    for (const each of all) each();
  });
}
