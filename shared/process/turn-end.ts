export interface DueAtTurnEnd {
  atTurnEnd(): void;
}

let due: DueAtTurnEnd[] = [];
let isAsked = false;

/**
 * Calls these when this turn of the event loop is over, in the order in which they asked. One that asks while others are
 * called still belongs to this turn, and so does one that asks in a promise that they settle: what jobs hand to the broker
 * at its end leaves with it, and not a turn later, when hundreds of sockets may have been read in between.
 */
export function atTurnEnd(one: DueAtTurnEnd): void {
  due.push(one);
  ask();
}

function ask(): void {
  if (isAsked) return;
  isAsked = true;
  setImmediate(callAll);
  // Between the two, promises go on that were settled in the first.
  setImmediate(callLast);
}

function callAll(): void {
  let called = 0;
  try {
    while (called < due.length) due[called++]?.atTurnEnd();
  } finally {
    if (called > 0) due = due.slice(called);
  }
}

function callLast(): void {
  try {
    callAll();
  } finally {
    isAsked = false;
    if (due.length > 0) ask();
  }
}
