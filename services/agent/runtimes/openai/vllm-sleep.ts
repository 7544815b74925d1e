import { z } from "zod";
import type { ManageRun } from "../runtime.ts";
import type { RuntimeConnection } from "../runtime-connection.ts";
import { PathUnknown } from "./openai-fault.ts";
import type { OpenAiServer } from "./openai-profile.ts";

const sleeping = z.object({ is_sleeping: z.boolean() });
const serverInfo = z.object({
  vllm_config: z.object({ model_config: z.object({ enable_sleep_mode: z.boolean() }) }),
});

/**
 * The sleep mode of one vLLM: asleep it has its weights in the memory of the host, and wakes in a second or less. With
 * `VLLM_SERVER_DEV_MODE=1` alone it has these paths too: told to sleep it answers nobody, and frees no memory. Only
 * `--enable-sleep-mode` makes it free memory.
 */
export class VllmSleep {
  readonly #connection: RuntimeConnection;
  /** Undefined while it is not known if the server has a sleep mode. */
  #isThere: boolean | undefined;
  #freesMemory = false;
  isSleeping = false;

  constructor(connection: RuntimeConnection) {
    this.#connection = connection;
  }

  /** The server puts all of its models to sleep together, so this takes the place of loads only where it has one. */
  manages(models: number): NonNullable<OpenAiServer["manages"]> {
    if (this.#isThere !== true || !this.#freesMemory || models !== 1) return {};
    return {
      load: (run) => this.#ask(run, { path: "/wake_up", status: "waking" }),
      unload: (run) => this.#ask(run, { path: "/sleep?level=1", status: "going to sleep" }),
    };
  }

  async look(signal: AbortSignal): Promise<void> {
    if (this.#isThere === false) return;
    try {
      this.isSleeping = (await this.#connection.ask(sleeping, { path: "/is_sleeping", signal })).is_sleeping;
      if (this.#isThere === undefined) this.#freesMemory = await this.#isEnabled(signal);
      this.#isThere = true;
    } catch (error) {
      signal.throwIfAborted();
      this.forget();
      if (error instanceof PathUnknown) this.#isThere = false;
    }
  }

  /** Called when the server did not answer, since it may be started anew in another way. */
  forget(): void {
    this.#isThere = undefined;
    this.isSleeping = false;
  }

  /** A version that does not tell its configuration in JSON is believed to have the mode whose paths it has. */
  async #isEnabled(signal: AbortSignal): Promise<boolean> {
    try {
      const info = await this.#connection.ask(serverInfo, { path: "/server_info?config_format=json", signal });
      return info.vllm_config.model_config.enable_sleep_mode;
    } catch {
      signal.throwIfAborted();
      return true;
    }
  }

  async #ask({ signal, onProgress }: ManageRun, { path, status }: { path: string; status: string }): Promise<void> {
    onProgress({ status });
    await this.#connection.text({ path, body: {}, signal });
    onProgress({ status: "done" });
  }
}
