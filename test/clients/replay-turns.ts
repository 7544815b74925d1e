import { parseArgs } from "node:util";
import { z } from "zod";
import { codingClients } from "./coding-clients.ts";
import { recordingIn } from "./recordings.ts";
import type { RecordedRequest } from "../harness/recording.ts";

/**
 * Replays the recorded conversations of coding agents at a running Trunkline, by hand: `node test/clients/replay-turns.ts
 * --url http://127.0.0.1:8484 --key … --model …`. Prints, for each turn, the share of the turn before that the runtime
 * found in its cache. The measure is what the runtime finds of a turn that is sent once more, byte for byte.
 */
const { values } = parseArgs({
  options: {
    url: { type: "string", default: "http://127.0.0.1:8484" },
    key: { type: "string" },
    model: { type: "string" },
  },
});
const { url, key = "", model } = values;

const cached = z.object({ cached_tokens: z.number().nullish() }).nullish();
const answer = z.object({
  usage: z.object({
    input_tokens: z.number().optional(),
    prompt_tokens: z.number().optional(),
    cache_read_input_tokens: z.number().nullish(),
    prompt_tokens_details: cached,
    input_tokens_details: cached,
  }),
});

/** Sends a turn with a billing line of its own, asks for one token, and returns the tokens that the runtime reported. */
async function ask({ url: recorded, headers, body }: RecordedRequest, nonce: number) {
  const { pathname } = new URL(recorded, url);
  const { output_config: _o, thinking: _t, reasoning: _r, stream_options: _s, ...rest } = Object(body);
  const limit = pathname.endsWith("responses") ? { max_output_tokens: 1 } : { max_tokens: 1 };
  const sent = JSON.stringify({ ...rest, ...limit, max_completion_tokens: undefined, model, stream: false });
  const response = await fetch(new URL(pathname, url), {
    method: "POST",
    headers: { ...headers, authorization: `Bearer ${key}` },
    body: sent.replaceAll("cc_entrypoint=sdk-cli;", `cc_entrypoint=sdk-cli; cch=${nonce};`),
  });
  if (response.status !== 200) throw new Error(await response.text());
  const { usage } = answer.parse(await response.json());
  const details = usage.prompt_tokens_details ?? usage.input_tokens_details;
  const found = usage.cache_read_input_tokens ?? details?.cached_tokens ?? 0;
  const isMessage = pathname.endsWith("messages");
  return { promptTokens: (usage.prompt_tokens ?? usage.input_tokens ?? 0) + (isMessage ? found : 0), found };
}

for (const client of codingClients) {
  const { requests } = recordingIn(client, "story");
  const turns = requests.filter(({ body }) => Object(body).tools !== undefined);
  let again = 0;
  const shares: number[] = [];
  for (const [turn, request] of turns.entries()) {
    const { promptTokens, found } = await ask(request, turn);
    if (again > 0) shares.push(Math.min(1, found / again));
    again = (await ask(request, turns.length + turn)).found;
    console.log(`${client.name}, turn ${turn + 1}: ${promptTokens} tokens, ${found} from the cache`);
  }
  const least = `at least ${(100 * Math.min(...shares)).toFixed(2)} % of the turn before`;
  console.log(`${client.name}: ${shares.length > 0 ? least : "the model server does not report its cache"}\n`);
}
