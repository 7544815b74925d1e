import type { Clock } from "#shared/process/clock.ts";
import { ollamaRuntime, ollamaUrlDefault, type OllamaOptions } from "./ollama.ts";
import type { Runtime } from "./runtime.ts";
import { scriptedRuntime } from "./scripted.ts";

export const runtimeKinds = ["auto", "ollama", "scripted"] as const;
export type RuntimeKind = (typeof runtimeKinds)[number];

/** How long something may take to say that it is an Ollama. */
export const detectMs = 500;

export type Detection =
  | { readonly kind: "found"; readonly runtime: Runtime }
  /** Nothing answers. The reason is for the operator. */
  | { readonly kind: "none"; readonly reason: string };

/**
 * Finds the runtime that an agent is to front, by one look: an agent that waits for a runtime looks again. Only a
 * caller that says so gets the demonstration unasked, and only when nothing real was asked for by name.
 */
export async function findRuntime(options: {
  wanted: RuntimeKind;
  /** Where to look instead of Ollama's usual address. */
  url?: string | undefined;
  scriptedModels?: readonly string[] | undefined;
  fallbackToScripted: boolean;
  slots?: number | undefined;
  host?: OllamaOptions["host"];
  /** Ends the process when a script asks for it; see `scriptedRuntime`. */
  exit?: ((code: number) => void) | undefined;
  clock: Clock;
  signal?: AbortSignal | undefined;
}): Promise<Detection> {
  const { wanted, clock, slots } = options;
  const scripted = (): Detection => ({
    kind: "found",
    runtime: scriptedRuntime({ clock, slots, models: options.scriptedModels, exit: options.exit }),
  });
  if (wanted === "scripted") return scripted();

  const url = options.url ?? ollamaUrlDefault;
  const ollama = ollamaRuntime({ url, slots, host: options.host });
  const deadline = new AbortController();
  const timer = clock.after(detectMs, () => deadline.abort(new Error(`no answer within ${detectMs} ms`)));
  try {
    await ollama.version(AbortSignal.any([deadline.signal, ...(options.signal ? [options.signal] : [])]));
    return { kind: "found", runtime: ollama };
  } catch {
    await ollama.close();
    options.signal?.throwIfAborted();
    if (wanted === "auto" && options.fallbackToScripted && options.url === undefined) return scripted();
    return { kind: "none", reason: `no Ollama answers at ${new URL(url).origin}` };
  } finally {
    timer.cancel();
  }
}
