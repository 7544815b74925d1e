import { z } from "zod";

const chunk = z.looseObject({
  choices: z.array(z.looseObject({ delta: z.looseObject({ content: z.string().nullish() }) })),
});

/** An answer of server-sent events, kept as it comes. It is read until its end whether or not anybody looks. */
export class EventStream {
  readonly response: Response;
  /** The `data` of each event so far. */
  readonly events: string[] = [];
  /** The comments so far, each with its colon. */
  readonly comments: string[] = [];
  /** Resolves when the stream is over and says whether it was closed or broke off. */
  readonly over: Promise<"closed" | "broken">;

  constructor(response: Response) {
    this.response = response;
    this.over = this.#read().then(
      () => "closed",
      () => "broken",
    );
  }

  /** Whether it ended as a success does. */
  get done(): boolean {
    return this.events.at(-1) === "[DONE]";
  }

  /** The text of the answer so far. */
  get text(): string {
    return this.events.map(textIn).join("");
  }

  async #read(): Promise<void> {
    if (this.response.body === null) return;
    let rest = "";
    for await (const text of this.response.body.pipeThrough(new TextDecoderStream())) {
      const parts = (rest + text).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        if (part.startsWith("data: ")) this.events.push(part.slice("data: ".length));
        if (part.startsWith(":")) this.comments.push(part);
      }
    }
  }
}

function textIn(event: string): string {
  if (!event.startsWith("{")) return "";
  const read = chunk.safeParse(JSON.parse(event));
  return read.success ? read.data.choices.map(({ delta }) => delta.content ?? "").join("") : "";
}
