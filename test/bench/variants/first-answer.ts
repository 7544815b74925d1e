import { z } from "zod";
import { until } from "../../harness/until.ts";

const completion = z.looseObject({ choices: z.array(z.looseObject({ message: z.looseObject({}) })).min(1) });

/** What a variant that has just started is asked for: the far end lists it beside what scenarios ask for. */
export const firstModel = "m-1-0";

const firstAnswerMs = 20_000;
const attemptMs = 5_000;

interface Question {
  readonly port: number;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Waits until a whole answer and a streamed one have come through, as one who is not ready answers nothing, or with an
 * error. `ended` says what a process left behind that is gone: nobody waits for it.
 */
export async function untilAnswers(question: Question, ended: () => Promise<string | undefined>): Promise<void> {
  const look = async (): Promise<string> => {
    const said = await ended();
    if (said !== undefined) return `it ended: ${said}`;
    completion.parse(JSON.parse(await ask(question, { stream: false })));
    const stream = await ask(question, { stream: true });
    if (!stream.includes("data: [DONE]")) throw new Error(`a stream without its end: ${stream.slice(-500)}`);
    return "answers";
  };
  const what = `a first answer on port ${question.port}`;
  const seen = await until(look, { what, timeoutMs: firstAnswerMs, intervalMs: 20 });
  if (seen !== "answers") throw new Error(`Nothing answers on port ${question.port}; ${seen}`);
}

async function ask({ port, headers }: Question, { stream }: { stream: boolean }): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ model: firstModel, stream, messages: [{ role: "user", content: "Are you there?" }] }),
    signal: AbortSignal.timeout(attemptMs),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${response.status}: ${text.slice(0, 500)}`);
  return text;
}
