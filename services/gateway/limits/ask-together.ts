interface Waiting<Asked, Answer> {
  readonly asked: Asked;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

interface Together<Asked, Answer> {
  /** Answers all of them, in their order, or fails for all. */
  readonly ask: (asked: readonly Asked[]) => Promise<readonly Answer[]>;
  /** How many go in one question at most. */
  readonly askedMax: number;
}

/**
 * Questions of many, asked together: those of one turn of the event loop are one, and what comes while that one is
 * under way goes in the next. So who comes alone waits for nobody, and the more there are, the less each costs. When
 * one question fails, so do those that waited for it.
 */
export class AskTogether<Asked, Answer> {
  readonly #together: Together<Asked, Answer>;
  #waiting: Waiting<Asked, Answer>[] = [];
  /** One is under way, or goes at the end of this turn. */
  #busy = false;

  constructor(together: Together<Asked, Answer>) {
    this.#together = together;
  }

  ask(asked: Asked): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, resolve, reject });
      if (this.#busy) return;
      this.#busy = true;
      setImmediate(() => void this.#go());
    });
  }

  async #go(): Promise<void> {
    while (this.#waiting.length > 0) {
      const { ask, askedMax } = this.#together;
      const going = this.#waiting.splice(0, askedMax);
      try {
        const answers = await ask(going.map(({ asked }) => asked));
        going.forEach(({ resolve }, at) => resolve(answers[at] as Answer));
      } catch (error) {
        const waited = this.#waiting;
        this.#waiting = [];
        for (const { reject } of [...going, ...waited]) reject(error);
      }
    }
    this.#busy = false;
  }
}
