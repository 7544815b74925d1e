import type { ServerResponse } from "node:http";
import { FakeOpenAiServer, sendJson, type Exchange } from "../harness/fake-openai-server.ts";

/** How a server meets one request. `begins` says the half of its answer and then nothing more. */
export type Turn = "answers" | "breaks" | "holds" | "begins";

/** The turns of the next requests, whichever server gets them; each further request is answered. */
export interface Plan {
  readonly turns: Turn[];
}

const chunk = (choice: object): string => `data: ${JSON.stringify({ id: "1", model: "m", choices: [choice] })}\n\n`;
const usage = { prompt_tokens: 4, completion_tokens: 2, total_tokens: 6 };
const end = [`data: ${JSON.stringify({ id: "1", model: "m", choices: [], usage })}\n\n`, "data: [DONE]\n\n"];
const events = "text/event-stream";
const json = (value: object) => ({ type: "application/json", pieces: JSON.stringify(value).split(/(?<=[,:])/) });
const image = { created: 1, data: [{ b64_json: "aGVsbG8=" }] };

const answers: Readonly<Record<string, { readonly type: string; readonly pieces: readonly string[] }>> = {
  "/v1/chat/completions": {
    type: events,
    pieces: [
      chunk({ index: 0, delta: { role: "assistant", content: "blue " }, finish_reason: null }),
      chunk({ index: 0, delta: { content: "sky" }, finish_reason: null }),
      chunk({ index: 0, delta: {}, finish_reason: "stop" }),
      ...end,
    ],
  },
  "/v1/completions": {
    type: events,
    pieces: [
      chunk({ index: 0, text: "blue ", finish_reason: null }),
      chunk({ index: 0, text: "sky", finish_reason: null }),
      chunk({ index: 0, text: "", finish_reason: "stop" }),
      ...end,
    ],
  },
  "/v1/embeddings": json({ data: [{ index: 0, embedding: [0.6, 0.8] }], usage: { prompt_tokens: 2, total_tokens: 2 } }),
  "/v1/rerank": json({ results: [{ index: 0, relevance_score: 0.5 }], usage: { total_tokens: 4 } }),
  "/v1/audio/transcriptions": {
    type: events,
    pieces: [
      ...["blue ", "sky"].map((delta) => `data: ${JSON.stringify({ type: "transcript.text.delta", delta })}\n\n`),
      `data: ${JSON.stringify({ type: "transcript.text.done", text: "blue sky" })}\n\n`,
    ],
  },
  "/v1/audio/translations": json({ text: "blue sky" }),
  "/v1/audio/speech": { type: "audio/mpeg", pieces: ["blue ", "sky"] },
  "/v1/images/generations": json(image),
  "/v1/images/edits": json(image),
  "/v1/moderations": json({ results: [{ flagged: false }] }),
  "/tokenize": json({ count: 2, max_model_len: 100, tokens: [1, 2] }),
  "/detokenize": json({ prompt: "blue sky" }),
};

/** A server of one model, `m`, that has every path which a machine may ask for. */
export class ServerOfEveryPath extends FakeOpenAiServer {
  readonly #plan: Plan;

  private constructor(plan: Plan) {
    super();
    this.#plan = plan;
  }

  static start(plan: Plan): Promise<ServerOfEveryPath> {
    return new ServerOfEveryPath(plan).listen();
  }

  protected override answer({ request, response }: Exchange): void {
    if (request.method === "GET") return sendJson(response, 200, { data: [{ id: "m", owned_by: "someone" }] });
    const turn = this.#plan.turns.shift() ?? "answers";
    if (turn === "breaks") response.destroy();
    const answer = answers[request.path];
    if (turn === "breaks" || turn === "holds" || answer === undefined) return;
    response.writeHead(200, { "content-type": answer.type });
    if (turn === "begins") write(response, answer.pieces.slice(0, 1));
    else write(response, answer.pieces).end();
  }
}

function write(response: ServerResponse, pieces: readonly string[]): ServerResponse {
  for (const piece of pieces) response.write(piece);
  return response;
}
