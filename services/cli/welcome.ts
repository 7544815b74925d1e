import type { Model } from "#shared/model/model.ts";
import { onOneLine } from "./text/on-one-line.ts";

interface Welcome {
  /** The base URL of the endpoints, including `/v1`. */
  readonly baseUrl: string;
  readonly key: string;
  /** Shown in place of the key where other people can read the output. */
  readonly keyFile?: string | undefined;
  readonly runtime: string | null;
  readonly machine: string;
  readonly models: readonly Model[];
}

/** Returns the message that `trunkline up` prints when it is ready: the URL, the key, and a command to paste. */
export function welcome({ baseUrl, key, keyFile, runtime, machine, models }: Welcome): string {
  const chats = models.find(({ capabilities }) => capabilities.completion);
  return `
Trunkline is ready.

  Base URL  ${baseUrl}
  API key   ${keyFile === undefined ? key : `in the file ${keyFile}`}
  Machine   ${machine}
  Runtime   ${runtimeLine(runtime)}
  Models    ${models.length === 0 ? "none yet" : listed(models.map(({ id }) => id))}
  API page  ${new URL("/docs", baseUrl).href}

${chats === undefined ? noModelYet : firstChat({ baseUrl, key: keyFile === undefined ? key : `$(cat ${inShell(keyFile)})`, model: chats.id })}

Ctrl-C stops it.
`;
}

const noModelYet = `There is no model to chat with yet: \`ollama pull llama3.2\` gets one, and it is served within seconds.`;

function firstChat({ baseUrl, key, model }: { baseUrl: string; key: string; model: string }): string {
  return `A first chat, to paste into another terminal:

  curl -N ${baseUrl}/chat/completions \\
    -H "Authorization: Bearer ${key}" \\
    -H "Content-Type: application/json" \\
    -d ${inShell(JSON.stringify({ model, stream: true, messages: [{ role: "user", content: "Hello!" }] }))}`;
}

/**
 * Quotes a text for a shell. A runtime chooses the names of its models: a name must neither run as a command nor
 * control the terminal that shows it.
 */
function inShell(text: string): string {
  return `'${onOneLine(text).replaceAll("'", String.raw`'\''`)}'`;
}

function runtimeLine(runtime: string | null): string {
  if (runtime === "scripted")
    return "scripted: a demonstration without a model; it gives way to an Ollama as soon as one answers";
  return runtime === null ? "none answers yet; models appear as soon as one does" : onOneLine(runtime);
}

function listed(models: readonly string[]): string {
  const shown = onOneLine(models.slice(0, 8).join(", "));
  return models.length > 8 ? `${shown} and ${models.length - 8} more` : shown;
}
