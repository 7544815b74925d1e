import type { Clock, Timer } from "#shared/process/clock.ts";

interface Waiting<Asked, Answer> {
  readonly asked: Asked;
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: unknown) => void;
}

interface Together<Asked, Answer> {
  /** Answers all questions, in their order, or fails for all. */
  readonly ask: (asked: readonly Asked[]) => Promise<readonly Answer[]>;
  /** The most questions in one call. */
  readonly askedMax: number;
  /** The longest time that a question waits for the call under way. */
  readonly waitMs: number;
  readonly clock: Pick<Clock, "after">;
}

/**
 * Combines the questions of many callers into one call. All questions of one turn of the event loop share a call, and
 * questions that arrive during that call go in the next. A lone question therefore waits for no other, and the cost of
 * each falls as their number grows. Questions are asked in the order of arrival. When a call fails, the questions that
 * waited for it fail too.
 */
export class AskTogether<Asked, Answer> {
  readonly #together: Together<Asked, Answer>;
  #waiting: Waiting<Asked, Answer>[] = [];
  #underWay = 0;
  /** True if all waiting questions go at the end of this turn of the event loop. */
  #goes = false;
  #overdue: Timer | undefined;

  constructor(together: Together<Asked, Answer>) {
    this.#together = together;
  }

  ask(asked: Asked): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked, resolve, reject });
      if (this.#underWay === 0) this.#goSoon();
      else this.#overdue ??= this.#together.clock.after(this.#together.waitMs, () => this.#goSoon());
    });
  }

  #goSoon(): void {
    this.#overdue?.cancel();
    this.#overdue = undefined;
    if (this.#goes || this.#waiting.length === 0) return;
    this.#goes = true;
    setImmediate(() => {
      this.#goes = false;
      this.#go();
    });
  }

  #go(): void {
    const { askedMax } = this.#together;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (let at = 0; at < waiting.length; at += askedMax) void this.#ask(waiting.slice(at, at + askedMax));
  }

  async #ask(going: readonly Waiting<Asked, Answer>[]): Promise<void> {
    this.#underWay += 1;
    try {
      const answers = await this.#together.ask(going.map(({ asked }) => asked));
      going.forEach(({ resolve }, at) => resolve(answers[at] as Answer));
    } catch (error) {
      const waited = this.#waiting;
      this.#waiting = [];
      for (const { reject } of [...going, ...waited]) reject(error);
    }
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#goSoon();
  }
}
