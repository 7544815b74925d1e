import type { AnswerEvent } from "#shared/answer/answer-event.ts";
import { sleep, type Clock } from "#shared/process/clock.ts";
import type { LoadWatch } from "./load-watch.ts";
import { handOver, type Answering, type AnswerTaker } from "../answering.ts";
import { ModelLoading } from "./openai-fault.ts";
import type { ServedModel } from "./openai-profile.ts";
import type { ChatRun } from "../runtime.ts";

/** The wait before a request is repeated to a server that is loading a model. */
const askAgainMs = 500;

interface Server {
  readonly model: () => ServedModel;
  readonly loads: LoadWatch;
  readonly clock: Clock;
  readonly ask: () => Answering;
  /** Returns the failure as the client gets it. */
  readonly faultOf: (error: unknown) => unknown;
}

/** Repeats the request until the server has loaded the model, or until no client waits any more. */
export function whenLoaded(run: Pick<ChatRun, "signal" | "onProgress">, server: Server): Answering {
  return new AnswerOfLoaded(run, server);
}

class AnswerOfLoaded implements Answering {
  readonly #run: Pick<ChatRun, "signal" | "onProgress">;
  readonly #server: Server;

  constructor(run: Pick<ChatRun, "signal" | "onProgress">, server: Server) {
    this.#run = run;
    this.#server = server;
  }

  [Symbol.asyncIterator](): AsyncIterator<readonly AnswerEvent[]> {
    return new Asking(this.#run, this.#server);
  }

  async handTo(taker: AnswerTaker): Promise<void> {
    const { model, loads, clock, ask, faultOf } = this.#server;
    const { signal, onProgress } = this.#run;
    const waiting = { model, onProgress };
    try {
      if (model().loaded === false) onProgress("loading");
      loads.begin(waiting);
      for (;;) {
        try {
          await handOver(ask(), taker);
          return;
        } catch (error) {
          if (!(error instanceof ModelLoading)) throw error;
          onProgress("loading");
          await sleep(clock, askAgainMs, signal);
        }
      }
    } catch (failure) {
      throw faultOf(failure);
    } finally {
      loads.end(waiting);
    }
  }
}

/** An iterator without a generator: batches pass unchanged, and a generator would add its own promise turns to each. */
class Asking implements AsyncIterator<readonly AnswerEvent[]> {
  readonly #run: Pick<ChatRun, "signal" | "onProgress">;
  readonly #server: Server;
  readonly #waiting: Parameters<LoadWatch["begin"]>[0];
  #answer: AsyncIterator<readonly AnswerEvent[]> | undefined;

  constructor(run: Pick<ChatRun, "signal" | "onProgress">, server: Server) {
    this.#run = run;
    this.#server = server;
    this.#waiting = { model: server.model, onProgress: run.onProgress };
  }

  next(): Promise<IteratorResult<readonly AnswerEvent[]>> {
    try {
      this.#answer ??= this.#begin();
    } catch (error) {
      return this.#failed(error);
    }
    return this.#answer.next().then(this.#came, this.#failed);
  }

  async return(): Promise<IteratorResult<readonly AnswerEvent[]>> {
    this.#server.loads.end(this.#waiting);
    await this.#answer?.return?.();
    return { done: true, value: undefined };
  }

  #begin(): AsyncIterator<readonly AnswerEvent[]> {
    const { model, loads, ask } = this.#server;
    if (model().loaded === false) this.#run.onProgress("loading");
    loads.begin(this.#waiting);
    return ask()[Symbol.asyncIterator]();
  }

  readonly #came = (result: IteratorResult<readonly AnswerEvent[]>): IteratorResult<readonly AnswerEvent[]> => {
    if (result.done) this.#server.loads.end(this.#waiting);
    return result;
  };

  readonly #failed = async (error: unknown): Promise<IteratorResult<readonly AnswerEvent[]>> => {
    const { clock, loads, ask, faultOf } = this.#server;
    const { signal, onProgress } = this.#run;
    try {
      if (!(error instanceof ModelLoading)) throw error;
      onProgress("loading");
      await sleep(clock, askAgainMs, signal);
      this.#answer = ask()[Symbol.asyncIterator]();
    } catch (failure) {
      loads.end(this.#waiting);
      throw faultOf(failure);
    }
    return this.next();
  };
}
