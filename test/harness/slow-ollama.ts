import { FakeOllama, type FakeOllamaModel } from "./fake-ollama.ts";

const mb = 1_000_000;

/** An Ollama whose loads end when the test says so. */
export class SlowOllama implements AsyncDisposable {
  readonly #loads: PromiseWithResolvers<void>[] = [];
  fake: FakeOllama;

  private constructor(fake: FakeOllama) {
    this.fake = fake;
    fake.onLoad = () => {
      const load = Promise.withResolvers<void>();
      this.#loads.push(load);
      return load.promise;
    };
  }

  static async start(names: readonly string[], fields: Partial<FakeOllamaModel> = {}): Promise<SlowOllama> {
    const models = names.map((name) => ({ name, sizeBytes: 100 * mb, memoryBytes: 120 * mb, ...fields }));
    return new SlowOllama(await FakeOllama.start({ models }));
  }

  /** The loads so far, ended or not. */
  get begun(): number {
    return this.#loads.length;
  }

  end(problem?: string): void {
    const load = this.#loads.at(-1);
    if (problem === undefined) load?.resolve();
    else load?.reject(new Error(problem));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const load of this.#loads) load.resolve();
    await this.fake.stop();
  }
}
