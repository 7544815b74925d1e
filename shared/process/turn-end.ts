interface Due {
  atTurnEnd(): void;
}

let due: Due[] = [];

/**
 * Calls these when this turn of the event loop is over, in the order in which they asked. One that asks while others are
 * called still belongs to this turn: what jobs hand to the broker at its end leaves with it, and not a turn later, when
 * hundreds of sockets may have been read in between.
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
