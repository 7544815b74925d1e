interface Due {
  atTurnEnd(): void;
}

let due: Due[] = [];

/** Calls these when this turn of the event loop is over: with one immediate, whatever number of jobs have something to send. */
export function atTurnEnd(one: Due): void {
  if (due.push(one) > 1) return;
  setImmediate(() => {
    const all = due;
    due = [];
    for (const each of all) each.atTurnEnd();
  });
}
