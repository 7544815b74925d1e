/** One chat with a model by the public API, as it streams. */
import { ApiFault, type Asking, linesOf, send } from "./admin-api.ts";
import { type Answer, type Chunk, grow, noAnswer } from "./chat-answer.ts";

/** A piece of a message as OpenAI's API has it. */
export type Part =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

export interface Message {
  readonly role: "system" | "user" | "assistant";
  readonly content: string | readonly Part[];
}

const dataLine = "data: ";

/** Sends a chat, and tells the answer as it grows. Resolves with the id of the request. Throws an `ApiFault`. */
export async function streamChat(
  body: object,
  { onAnswer, ...asking }: Pick<Asking, "key" | "signal"> & { readonly onAnswer: (answer: Answer) => void },
): Promise<string> {
  const asked = { ...body, stream: true };
  const response = await send("/console/v1/chat/completions", { method: "POST", body: asked, ...asking });
  let answer = noAnswer;
  for await (const line of linesOf(response)) {
    if (!line.startsWith(dataLine) || line === "data: [DONE]") continue;
    const chunk = JSON.parse(line.slice(dataLine.length)) as Chunk;
    if (chunk.error !== undefined) throw new ApiFault(response.status, chunk.error);
    answer = grow(answer, chunk);
    onAnswer(answer);
  }
  return response.headers.get("x-request-id") ?? "";
}
