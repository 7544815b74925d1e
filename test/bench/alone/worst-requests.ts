import { Fault } from "#shared/fault/fault.ts";
import { readJsonObject } from "../../../services/gateway/intake/read-json.ts";
import { readChatRequest } from "../../../services/gateway/openai/chat-request.ts";
import { readCompletionRequest, readEmbeddingsRequest } from "../../../services/gateway/openai/text-requests.ts";
import { readResponseRequest } from "../../../services/gateway/openai/responses/response-request.ts";
import { ignoredHeader } from "../../../services/gateway/openai/ignored-header.ts";
import { ordinaryBody, worstBodies, type Body, type Endpoint } from "./worst-bodies.ts";

/**
 * How long one request keeps all others waiting while it is read, which happens in one piece: the worst that can be
 * made, beside an ordinary long one. It is the time that the thread was at work, so that what else runs on the machine
 * does not count. Run it with `npm run bench:worst`.
 */
const readers: Readonly<Record<Endpoint, (input: Record<string, unknown>) => { readonly ignored: readonly string[] }>> =
  {
    chat: readChatRequest,
    responses: readResponseRequest,
    embeddings: readEmbeddingsRequest,
    completions: readCompletionRequest,
  };

const rounds = 7;
const ordinaryRounds = 30;

interface Taken {
  readonly body: Body;
  readonly outcome: string;
  /** The first time, and the longest and the median of all times, in milliseconds. */
  readonly first: number;
  readonly longest: number;
  readonly median: number;
}

function measure(body: Body, times: number): Taken {
  const bytes = Buffer.from(body.text);
  let outcome = "";
  const took = Array.from({ length: times }, () => {
    const startedAt = busyMs();
    outcome = outcomeOf(bytes, body.of);
    return busyMs() - startedAt;
  });
  const median = took.toSorted((a, b) => a - b)[Math.floor(times / 2)] ?? Number.NaN;
  return { body, outcome, first: took[0] ?? Number.NaN, longest: Math.max(...took), median };
}

function outcomeOf(bytes: Buffer, of: Endpoint): string {
  try {
    const { ignored } = readers[of](readJsonObject(bytes));
    ignoredHeader(ignored);
    return ignored.length === 0 ? "read" : `read, ${ignored.length} ignored`;
  } catch (thrown) {
    if (!(thrown instanceof Fault)) throw thrown;
    return `${thrown.code} ${thrown.param?.slice(0, 40) ?? ""}`;
  }
}

function busyMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

function lineOf({ body, outcome, first, longest, median }: Taken, ordinary: Taken): string {
  const times = [first, longest, median].map((ms) => ms.toFixed(1).padStart(8)).join("");
  const ratio = `${(median / ordinary.median).toFixed(1)} ×`.padStart(9);
  return `${body.name.padEnd(45)}${times}${ratio}   ${outcome}`;
}

const ordinary = measure(ordinaryBody, ordinaryRounds);
const all = worstBodies.map((body) => measure(body, rounds)).toSorted((a, b) => b.median - a.median);
const head = `${"ms".padEnd(45)}${["first", "longest", "median"].map((name) => name.padStart(8)).join("")}${"ratio".padStart(9)}`;
process.stdout.write(`${[head, ...[ordinary, ...all].map((each) => lineOf(each, ordinary))].join("\n")}\n`);
