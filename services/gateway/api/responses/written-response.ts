import type { AnswerHead } from "../../jobs/render-answer.ts";
import type { ToldOutput } from "./response-output.ts";
import type { ResponseTerms } from "./response-terms.ts";

interface Begun {
  readonly status: "in_progress";
  readonly incomplete_details: null;
  readonly output: readonly [];
  readonly usage: null;
}

/** The fields of a response that has no output yet. */
export const begun: Begun = { status: "in_progress", incomplete_details: null, output: [], usage: null };

/** Returns the response as JSON, with the fields of its answer so far. */
export function writtenResponse(head: AnswerHead, { repeated }: ResponseTerms, answer: ToldOutput | Begun): string {
  const { id, createdSeconds: created_at, model } = head;
  const { output, usage, ...standing } = answer;
  const first = JSON.stringify({ id, object: "response", created_at, model, error: null, ...standing }).slice(0, -1);
  return `${first},${repeated},"output":${JSON.stringify(output)},"usage":${JSON.stringify(usage)}}`;
}
