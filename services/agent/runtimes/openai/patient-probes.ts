import { sleep, type Clock } from "#shared/process/clock.ts";

/** How long a list waits for what a probe finds out. A busy server takes longer, and then a later list knows. */
export const probePatienceMs = 400;

/**
 * What was found out by asking a server for something small, once for each question. A probe outlives the list that
 * asked first, so that a busy server gets it once and not with every list; one that fails is repeated by a later list.
 */
export class PatientProbes<Finding extends object> {
  readonly #clock: Clock;
  readonly #closed = new AbortController();
  #findings = new Map<string, Finding>();
  #underWay = new Map<string, Promise<Partial<Finding>>>();

  constructor(options: { readonly clock: Clock }) {
    this.#clock = options.clock;
  }

  /** The finding, or as much as nothing while it is not known. */
  async find(
    question: string,
    ask: (signal: AbortSignal) => Promise<Finding>,
    signal: AbortSignal,
  ): Promise<Partial<Finding>> {
    const known = this.#findings.get(question);
    if (known !== undefined) return known;
    const probe = this.#underWay.get(question) ?? this.#start(question, ask);
    return Promise.race([probe, sleep(this.#clock, probePatienceMs, signal).then(() => ({}))]);
  }

  /** Forgets everything, since it may be another server that answers from now on. */
  forget(): void {
    this.#findings = new Map();
    this.#underWay = new Map();
  }

  close(): void {
    this.#closed.abort(new Error("the runtime is let go of"));
  }

  async #start(question: string, ask: (signal: AbortSignal) => Promise<Finding>): Promise<Partial<Finding>> {
    const findings = this.#findings;
    const underWay = this.#underWay;
    const probe = ask(this.#closed.signal).then(
      (finding) => {
        findings.set(question, finding);
        return finding;
      },
      (): Partial<Finding> => ({}),
    );
    underWay.set(question, probe);
    try {
      return await probe;
    } finally {
      underWay.delete(question);
    }
  }
}
