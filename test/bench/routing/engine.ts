import { PrefixCache } from "./prefix-cache.ts";

/** A simulated model server, in the terms of vLLM. */
export interface EngineSpec {
  /** Requests that run at once (`max_num_seqs`). The others wait in the order of their arrival. */
  readonly slots: number;
  /** Tokens of prompts and answers that stay in the prefix cache. */
  readonly cacheTokens: number;
  readonly prefillTokensPerSecond: number;
  /** Time of one token for each running answer: a fixed part, and a part for each answer of the batch. */
  readonly stepMs: number;
  readonly stepMsPerAnswer: number;
}

export interface EngineRequest {
  readonly id: number;
  readonly promptTokens: number;
  readonly answerTokens: number;
  readonly promptBlocks: readonly number[];
  /** The blocks of the prompt and the answer. */
  readonly allBlocks: readonly number[];
}

/** Progress of a request by the end of an iteration. */
export interface Progress {
  readonly request: EngineRequest;
  /** Tokens of its answer so far. */
  readonly tokens: number;
  readonly cachedTokens: number;
}

interface Sequence {
  readonly request: EngineRequest;
  cachedTokens: number;
  /** Tokens of the prompt that are not computed yet. */
  prefillLeft: number;
  tokens: number;
  /** Tokens of the prompt that the present iteration computes. */
  share: number;
}

/** Tokens of prompts that one iteration computes at most, so that long prompts do not stop the answers. */
const prefillTokensMax = 512;

/**
 * A model server in iterations, as vLLM with chunked prefill: each iteration gives every running answer one token and
 * computes a part of the waiting prompts. It knows no clock: `begin` returns how long the iteration takes, and the
 * caller calls `end` after that time.
 */
export class Engine {
  readonly spec: EngineSpec;
  readonly cache: PrefixCache;
  #waiting: EngineRequest[] = [];
  #running: Sequence[] = [];

  constructor(spec: EngineSpec) {
    this.spec = spec;
    this.cache = new PrefixCache(spec.cacheTokens);
  }

  get waiting(): readonly EngineRequest[] {
    return this.#waiting;
  }

  get running(): readonly Readonly<Sequence>[] {
    return this.#running;
  }

  submit(request: EngineRequest): void {
    this.#waiting.push(request);
  }

  cancel(id: number): void {
    this.#waiting = this.#waiting.filter((request) => request.id !== id);
    this.#running = this.#running.filter(({ request }) => request.id !== id);
  }

  /** Begins an iteration and returns its duration. Undefined when there is nothing to do. */
  begin(): number | undefined {
    while (this.#running.length < this.spec.slots) {
      const request = this.#waiting.shift();
      if (request === undefined) break;
      this.#running.push({ request, cachedTokens: -1, prefillLeft: request.promptTokens, tokens: 0, share: 0 });
    }
    if (this.#running.length === 0) return undefined;
    let room = prefillTokensMax;
    let answers = 0;
    for (const sequence of this.#running) {
      if (sequence.prefillLeft === 0) answers += 1;
      else if (room > 0) {
        if (sequence.cachedTokens < 0) this.#look(sequence);
        sequence.share = Math.min(room, sequence.prefillLeft);
        room -= sequence.share;
      }
    }
    return stepMs(this.spec, answers) + prefillMs(this.spec, prefillTokensMax - room);
  }

  /** Ends the iteration and returns the requests that got a token. One with all of its tokens has left its slot. */
  end(): readonly Progress[] {
    const progress: Progress[] = [];
    for (const sequence of this.#running) {
      const { request, share } = sequence;
      sequence.share = 0;
      if (sequence.prefillLeft > 0) {
        sequence.prefillLeft -= share;
        if (sequence.prefillLeft > 0 || share === 0) continue;
        this.cache.keep(request.promptBlocks);
      }
      sequence.tokens += 1;
      progress.push({ request, tokens: sequence.tokens, cachedTokens: sequence.cachedTokens });
      if (sequence.tokens >= request.answerTokens) this.cache.keep(request.allBlocks);
    }
    this.#running = this.#running.filter(({ request, tokens }) => tokens < request.answerTokens);
    return progress;
  }

  /** Looks up the cache when the prompt's turn comes. The last token is always computed. */
  #look(sequence: Sequence): void {
    const { promptBlocks, promptTokens } = sequence.request;
    sequence.cachedTokens = Math.min(this.cache.cachedTokens(promptBlocks), promptTokens - 1);
    sequence.prefillLeft = promptTokens - sequence.cachedTokens;
  }
}

/** Returns the time in which each of so many answers gets one token. */
export function stepMs({ stepMs: fixed, stepMsPerAnswer }: EngineSpec, answers: number): number {
  return answers === 0 ? 0 : fixed + stepMsPerAnswer * answers;
}

export function prefillMs({ prefillTokensPerSecond }: EngineSpec, tokens: number): number {
  return (tokens / prefillTokensPerSecond) * 1_000;
}
