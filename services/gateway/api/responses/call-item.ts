import { newToken } from "#shared/protocol/identifiers.ts";
import type { FunctionName } from "./inner-tools.ts";
import type { ItemStatus, OutputItem, Tell } from "./output-item.ts";

interface Called extends FunctionName {
  /** The id by which the client sends the function's output back. */
  readonly id: string;
}

/** An output item: a function call by the model. */
export class CallItem implements OutputItem {
  readonly #id = newToken("fc_");
  readonly #index: number;
  readonly #called: Called;
  readonly #tell: Tell;
  #arguments = "";
  #status: ItemStatus = "in_progress";

  constructor(called: Called, index: number, tell: Tell) {
    this.#called = called;
    this.#index = index;
    this.#tell = tell;
    tell("response.output_item.added", { output_index: index, item: this.told() });
  }

  add(delta: string): void {
    this.#arguments += delta;
    this.#tell("response.function_call_arguments.delta", { ...this.#place(), delta });
  }

  end(status: ItemStatus): void {
    this.#status = status;
    const { name } = this.#called;
    this.#tell("response.function_call_arguments.done", { ...this.#place(), name, arguments: this.#arguments });
    this.#tell("response.output_item.done", { output_index: this.#index, item: this.told() });
  }

  told(): object {
    const { id: call_id, name, namespace } = this.#called;
    const standing = { id: this.#id, status: this.#status, type: "function_call", call_id };
    return { ...standing, namespace, name, arguments: this.#arguments };
  }

  #place(): object {
    return { item_id: this.#id, output_index: this.#index };
  }
}
