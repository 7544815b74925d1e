interface Welcome {
  /** Where the endpoints are, `/v1` included. */
  readonly baseUrl: string;
  readonly key: string;
  readonly runtime: string | null;
  readonly machine: string;
  readonly models: readonly string[];
}

/** What a person sees when `trunkline up` is ready: where it is, with which key, and a line to paste. */
export function welcome({ baseUrl, key, runtime, machine, models }: Welcome): string {
  const [model = "the-model"] = models;
  return `
Trunkline is ready.

  Base URL  ${baseUrl}
  API key   ${key}
  Machine   ${machine}
  Runtime   ${runtimeLine(runtime)}
  Models    ${models.length === 0 ? "none yet" : listed(models)}

A first chat, to paste into another terminal:

  curl -N ${baseUrl}/chat/completions \\
    -H "Authorization: Bearer ${key}" \\
    -H "Content-Type: application/json" \\
    -d '{"model":"${model}","stream":true,"messages":[{"role":"user","content":"Hello!"}]}'

Ctrl-C stops it.
`;
}

function runtimeLine(runtime: string | null): string {
  if (runtime === "scripted")
    return "scripted: a demonstration without a model. Start Ollama, then this again, for real ones";
  return runtime ?? "none answers yet; models appear as soon as one does";
}

function listed(models: readonly string[]): string {
  const shown = models.slice(0, 8).join(", ");
  return models.length > 8 ? `${shown} and ${models.length - 8} more` : shown;
}
