import { sleep, type Clock } from "#shared/process/clock.ts";

/**
 * The longest wait of a catalogue for the result of a probe. A busy server takes longer, and a later catalogue then has
 * the result.
 */
export const probePatienceMs = 400;

/**
 * The results of small requests to a server, one for each question. A probe outlives the catalogue that started it. A
 * busy server therefore gets one probe, and not one for every catalogue. A later catalogue repeats a failed probe.
 */
export class PatientProbes<Finding extends object> {
  readonly #clock: Clock;
  readonly #closed = new AbortController();
  #findings = new Map<string, Finding>();
  #underWay = new Map<string, Promise<Partial<Finding>>>();

  constructor(options: { readonly clock: Clock }) {
    this.#clock = options.clock;
  }

  /** Returns the finding, or an empty object while it is unknown. */
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

  /** Forgets all findings, because another server may answer from now on. */
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
