import { Engine, type EngineRequest, type EngineSpec, type Progress } from "./engine.ts";

/** Runs a simulated engine in real time and adds up what its cache saved. */
export class LiveEngine {
  readonly engine: Engine;
  promptTokens = 0;
  cachedTokens = 0;
  /** Requests that got their first token, and the sum of the times that they waited for it here. */
  begun = 0;
  firstMs = 0;
  readonly #listeners = new Map<number, (progress: Progress) => void>();
  readonly #cameAtMs = new Map<number, number>();
  #isBusy = false;

  constructor(spec: EngineSpec) {
    this.engine = new Engine(spec);
  }

  submit(request: EngineRequest, listener: (progress: Progress) => void): void {
    this.#listeners.set(request.id, listener);
    this.#cameAtMs.set(request.id, performance.now());
    this.engine.submit(request);
    if (!this.#isBusy) this.#iterate(performance.now());
  }

  cancel(id: number): void {
    this.#listeners.delete(id);
    this.#cameAtMs.delete(id);
    this.engine.cancel(id);
  }

  /** An iteration begins when the one before should have ended, so that late timers do not make an engine slower. */
  #iterate(fromMs: number): void {
    const durationMs = this.engine.begin();
    this.#isBusy = durationMs !== undefined;
    if (durationMs === undefined) return;
    const endMs = fromMs + durationMs;
    setTimeout(() => this.#end(endMs), Math.max(0, endMs - performance.now()));
  }

  #end(endMs: number): void {
    for (const progress of this.engine.end()) {
      const { request, tokens, cachedTokens } = progress;
      if (tokens === 1) {
        this.promptTokens += request.promptTokens;
        this.cachedTokens += cachedTokens;
        const nowMs = performance.now();
        this.begun += 1;
        this.firstMs += nowMs - (this.#cameAtMs.get(request.id) ?? nowMs);
        this.#cameAtMs.delete(request.id);
      }
      const listener = this.#listeners.get(request.id);
      if (tokens >= request.answerTokens) this.#listeners.delete(request.id);
      listener?.(progress);
    }
    this.#iterate(endMs);
  }
}
