interface Due {
  atTurnEnd(): void;
}

let due: Due[] = [];

/**
 * Calls `one.atTurnEnd` at the end of this turn of the event loop, in the order of registration. A registration during
 * these calls still runs in this turn. Messages that jobs publish then are sent with this turn, not one turn later,
 * when hundreds of sockets may have been read in between.
 */
export function atTurnEnd(one: Due): void {
  if (due.push(one) === 1) setImmediate(callAll);
}

function callAll(): void {
  let called = 0;
  try {
    while (called < due.length) due[called++]?.atTurnEnd();
  } finally {
    due = due.slice(called);
    if (due.length > 0) setImmediate(callAll);
  }
}
