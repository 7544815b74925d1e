/** The conversation of the playground. It outlives a look at another page, and no reload. */
import { signal } from "@preact/signals";
import type { OwnRequest } from "#shared/admin/member-operations.ts";
import { type ApiFault, changes, faultOf } from "./admin-api.ts";
import { type Answer, noAnswer } from "./chat-answer.ts";
import { type Message, streamChat } from "./chat-stream.ts";

/** The words of the viewer, and the answer of a model. */
export interface Turn {
  readonly asked: Message;
  readonly model: string;
  /** The body of the request, as a client sends it. */
  readonly request: object;
  readonly answer: Answer;
  readonly state: "streaming" | "ended" | "stopped";
  readonly fault?: ApiFault | undefined;
  /** The record of the request, once it was written. */
  readonly record?: OwnRequest | undefined;
}

/** The way of a chat through the gateway. */
export interface ChatWay {
  /** The id of the member's own key that the chat counts for; absent where the session itself may chat. */
  readonly key?: string;
  /** Reads the record of a request. */
  readonly recordOf: (id: string) => Promise<OwnRequest>;
}

export const turns = signal<readonly Turn[]>([]);
/** The next message while it is written. */
export const noDraft: { readonly text: string; readonly images: readonly string[] } = { text: "", images: [] };
export const draft = signal(noDraft);
let running: AbortController | undefined;

export function beginChat(): void {
  stopAnswer();
  turns.value = [];
  draft.value = noDraft;
}

/** Stops the answer that is streaming. The machine stops with it. */
export function stopAnswer(): void {
  running?.abort();
}

/** Asks a model, with all turns before that have an answer. */
export async function ask(
  asked: Message,
  { model, system, parameters }: { readonly model: string; readonly system: string; readonly parameters: object },
  { key, recordOf }: ChatWay,
): Promise<void> {
  const answered = turns.value.filter(({ answer }) => answer.text !== "");
  const before = answered.flatMap(({ asked: one, answer }): Message[] => [
    one,
    { role: "assistant", content: answer.text },
  ]);
  const own = new AbortController();
  running = own;
  const place = turns.value.length;
  const put = (change: Partial<Turn>): void => {
    const turn = turns.value[place];
    // A new chat may have begun meanwhile.
    if (turn?.asked === asked) turns.value = turns.value.with(place, { ...turn, ...change });
  };
  const messages: Message[] = [
    ...(system === "" ? [] : [{ role: "system", content: system } as const]),
    ...before,
    asked,
  ];
  const request = { model, messages, ...parameters };
  turns.value = [...turns.value, { asked, model, request, answer: noAnswer, state: "streaming" }];
  try {
    const id = await streamChat(request, { key, signal: own.signal, onAnswer: (answer) => put({ answer }) });
    put({ state: "ended" });
    put({ record: await recordWhenWritten(id, recordOf) });
  } catch (error) {
    put(own.signal.aborted ? { state: "stopped" } : { state: "ended", fault: faultOf(error) });
    // The key or the session has ended. Lists that are read anew tell which.
    if (faultOf(error).code.startsWith("key_")) changes.value += 1;
  }
}

const recordWaitsMs = [100, 300, 600, 1_000];

/** Reads the record of a request, which is written just after its answer has ended. */
async function recordWhenWritten(id: string, recordOf: ChatWay["recordOf"]): Promise<OwnRequest | undefined> {
  for (const waitMs of recordWaitsMs) {
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    try {
      return await recordOf(id);
    } catch {
      // It is not there yet, or records are turned off.
    }
  }
  return undefined;
}
