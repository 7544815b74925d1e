import { z } from "zod";
import type { AgentContext } from "../context.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { Fault, faultEntry } from "#shared/fault/fault.ts";
import { abortAfter, sleep } from "#shared/process/clock.ts";
import type { ChatBody } from "#shared/protocol/job-bodies.ts";
import { type OfferedModel, type Seam, seams } from "#shared/protocol/model.ts";
import type { Runtime } from "../runtimes/runtime.ts";
import type { ModelNotes } from "./model-notes.ts";
import type { ServedModel } from "./model-set.ts";
import { chatOf, cutsOf, differenceOf, Heard, seamOf, textTokens, trialsOf, type Trial } from "./seam-trials.ts";

/** The outcome of a proof. `differs` says for each other kind how a continuation differed. */
export const proof = z.object({
  model: z.string(),
  continues: z.array(z.enum(seams)),
  differs: z.partialRecord(z.enum(seams), z.string()),
});
export type Proof = z.infer<typeof proof>;

export interface ProverOptions extends AgentContext {
  /** Proofs that outlast the agent. Without them nothing is proved. */
  readonly proofs?: ModelNotes<Proof> | undefined;
  /** Returns the models on offer. */
  readonly served: () => readonly ServedModel[];
  /** True if no job runs or waits. */
  readonly isIdle: () => boolean;
  /** Called after proofs, to offer the models anew. */
  readonly onProved: () => void;
}

/** The wait after a proof that its runtime did not answer. */
const againMs = 600_000;

/** Ends a request whose answer is long enough. */
const enough = new Error("the proof has heard enough");
const interrupted = new Error("the agent has other work than the proof");

/**
 * Proves which answers each model goes on with after another machine began them. It asks a model that is in memory for
 * an answer, and then for the rest of the same answer from three places of it. It does so while the agent is idle.
 */
export class SeamProver {
  readonly #options: ProverOptions;
  /** Proofs of models whose runtime tells no version, as long as they are in memory. */
  #passing = new Map<string, Proof>();
  readonly #againAtMs = new Map<string, number>();
  #proving: { readonly abort: AbortController; readonly over: Promise<void> } | undefined;
  /** The runtime that a proof runs on, which works on one request more than on those of jobs. */
  at: Runtime | undefined;
  #isOver = false;

  constructor(options: ProverOptions) {
    this.#options = options;
  }

  /** Returns what gateways are told of a model with its catalogue. */
  proved(runtime: Runtime, model: OfferedModel): Pick<OfferedModel, "continues"> {
    const known = this.#known(runtime, model);
    return known === undefined ? {} : { continues: known.continues };
  }

  /**
   * Ends the proof, since the agent has other work. It begins anew when the agent is idle. Resolves when it has ended, or
   * when its runtime does not heed that.
   */
  async interrupt(): Promise<void> {
    const { clock, timing } = this.#options;
    if (this.#proving === undefined) return;
    const { abort, over } = this.#proving;
    abort.abort(interrupted);
    await Promise.race([over, sleep(clock, timing.runtimeAnswerMs)]);
  }

  stop(): Promise<void> {
    this.#isOver = true;
    return this.interrupt();
  }

  /** Begins to prove all that is not proved yet, if the agent is idle. The caller calls it with each look at the runtimes. */
  look(): void {
    const { proofs, onProved } = this.#options;
    if (proofs === undefined || this.#isOver || this.#proving !== undefined) return;
    const here = new Set(this.#provable().map(({ runtime, model }) => keyOf(runtime, model)));
    this.#passing = new Map([...this.#passing].filter(([key]) => here.has(key)));
    if (this.#next() === undefined) return;
    const abort = new AbortController();
    const over = this.#proveAll(abort.signal).finally(() => {
      this.#proving = undefined;
      onProved();
    });
    this.#proving = { abort, over };
  }

  /** The models that answer, are in memory and are known by a digest. */
  #provable(): ServedModel[] {
    const isProvable = ({ digest, loaded, capabilities }: OfferedModel): boolean =>
      digest !== undefined && loaded !== false && capabilities.completion;
    return this.#options.served().filter(({ model }) => isProvable(model));
  }

  #next(): ServedModel | undefined {
    if (!this.#options.isIdle()) return undefined;
    const nowMs = this.#options.clock.now();
    return this.#provable().find(({ runtime, model }) => {
      const againAtMs = this.#againAtMs.get(keyOf(runtime, model)) ?? -Infinity;
      return nowMs >= againAtMs && this.#known(runtime, model) === undefined;
    });
  }

  async #proveAll(signal: AbortSignal): Promise<void> {
    for (let next = this.#next(); next !== undefined; next = signal.aborted ? undefined : this.#next()) {
      this.at = next.runtime;
      await this.#prove(next, signal);
    }
    this.at = undefined;
  }

  #known(runtime: Runtime, model: OfferedModel): Proof | undefined {
    return this.#notesOn(runtime)?.get(keyOf(runtime, model));
  }

  #notesOn({ version }: Runtime): Pick<ModelNotes<Proof>, "get" | "set"> | undefined {
    return version === undefined ? this.#passing : this.#options.proofs;
  }

  async #prove(served: ServedModel, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const { runtime, model } = served;
    const key = keyOf(runtime, model);
    const verdicts = new Map<Seam, string | undefined>();
    try {
      for (const trial of trialsOf(model.capabilities, runtime.proofQuestions)) {
        const tried = await this.#try(trial, served, signal);
        if (tried !== undefined) verdicts.set(tried.seam, verdicts.get(tried.seam) ?? tried.difference);
      }
    } catch (error) {
      if (signal.aborted) return;
      this.#againAtMs.set(key, clock.now() + againMs);
      log.debug({ model: model.id, reason: Fault.from(error).reason }, "a model could not be tried for continuing");
      return;
    }
    const continues = seams.filter((seam) => verdicts.has(seam) && verdicts.get(seam) === undefined);
    const differs = Object.fromEntries([...verdicts].filter(([, difference]) => difference !== undefined));
    const proved = { model: model.id, continues, differs };
    const fields = { ...proved, runtime: runtime.name };
    if (Object.keys(differs).length === 0) log.debug(fields, "a model goes on with answers that were begun");
    else log.info(fields, "a model does not go on with answers of some kinds");
    this.#notesOn(runtime)?.set(key, proved);
  }

  /** Returns the kind of a trial's answer, and how continuing it failed; undefined if the answer proves nothing. */
  async #try(trial: Trial, served: ServedModel, signal: AbortSignal) {
    const isLong = ({ pieces }: Heard): boolean => pieces.length >= textTokens;
    const whole = await this.#hear(chatOf(trial), served, { signal, isEnough: isLong });
    const seam = whole && seamOf(trial, whole);
    if (whole === undefined || seam === undefined) return undefined;
    for (const cut of cutsOf(whole.pieces)) {
      const pieces = whole.pieces.slice(0, cut);
      const wanted = whole.isWhole ? Infinity : whole.text.length - pieces.join("").length;
      const isEnough = ({ text, thought }: Heard): boolean => thought !== "" || text.length >= wanted;
      const heard = await this.#hear(chatOf(trial, { pieces, thought: whole.thought }), served, { signal, isEnough });
      const difference = heard === undefined ? "it refuses" : differenceOf(whole, cut, heard);
      if (difference !== undefined)
        return { seam, difference: `${difference}, after ${cut} of ${whole.pieces.length} tokens` };
    }
    return { seam, difference: undefined };
  }

  /** Returns the answer to a chat as far as it is needed; undefined if the runtime refuses the chat. */
  async #hear(
    body: ChatBody,
    { runtime, ownId, model }: ServedModel,
    { signal, isEnough }: { readonly signal: AbortSignal; readonly isEnough: (heard: Heard) => boolean },
  ): Promise<Heard | undefined> {
    const { clock, timing } = this.#options;
    const heard = new Heard();
    using late = abortAfter(clock, timing.firstTokenMs, () => new Error("the runtime answers too slowly"));
    signal.throwIfAborted();
    const run = {
      model: ownId,
      capabilities: model.capabilities,
      contextWindow: model.context_window,
      body,
      signal: AbortSignal.any([signal, late.signal]),
      onProgress: () => undefined,
    };
    try {
      await runtime.chat(run, (events) => {
        heard.take(events);
        if (isEnough(heard)) throw enough;
        return undefined;
      });
    } catch (error) {
      if (error === enough) return heard;
      if (error instanceof Fault && faultEntry(error.code).status < 500) return undefined;
      throw error;
    }
    return heard;
  }
}

/** Names a model with all that its proof depends on. Adapters change with Trunkline's own version. */
function keyOf({ name, version }: Runtime, { digest, capabilities: { tools, thinking } }: OfferedModel): string {
  return JSON.stringify([packageJson.version, name, version, digest, { tools, thinking }]);
}
