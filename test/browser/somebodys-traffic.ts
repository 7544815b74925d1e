import { Sums } from "#shared/history/sums.ts";
import { dayMs, dayOf } from "#shared/process/clock.ts";
import { newToken } from "#shared/protocol/identifiers.ts";
import type { WrittenRecord } from "#shared/requests/request-record.ts";
import { noUsage, type UsageRow } from "#shared/usage/usage.ts";
import type { SeededRandom } from "../harness/seeded-random.ts";
import { type SomebodysMachine, somebodysMachines } from "./somebodys-machines.ts";

interface Period {
  readonly count: number;
  readonly fromMs: number;
  readonly toMs: number;
  /** The ids of the keys that ask. */
  readonly keys: readonly string[];
  readonly random: SeededRandom;
}

const agents = ["OpenAI/Python 2.8.1", "opencode/1.0.85", "claude-cli/2.0.44", "ai-sdk/5.0.93", "OpenWebUI/0.6.36"];
/** How often each comes: the first most of all. */
const asked = ["qwen3-coder:30b", "openai/gpt-oss-120b", "gpt-oss:20b", "gemma3:27b", "llama3.3:70b", "llama3.2"];

/** Makes the records of requests of a period, as the gateway would have written them; some fail, some move to another machine. */
export function requestsOf({ count, fromMs, toMs, keys, random }: Period): WrittenRecord[] {
  const made = Array.from({ length: count }, (_, place) => {
    const at = Math.floor(fromMs + ((place + random.next()) * (toMs - fromMs)) / count);
    const model = asked[Math.floor(random.next() ** 2 * asked.length)] ?? "llama3.2";
    const machines = somebodysMachines.filter(({ models }) => models.includes(model));
    const [machine, other] = random.next() < 0.7 ? machines : machines.toReversed();
    return endOf(usual({ at, model, machine, keyId: pick(keys, random), random }), { other, random });
  });
  return made.toSorted((one, next) => one.at + one.totalMs - next.at - next.totalMs);
}

function usual(one: {
  readonly at: number;
  readonly model: string;
  readonly machine: SomebodysMachine | undefined;
  readonly keyId: string;
  readonly random: SeededRandom;
}): WrittenRecord {
  const { at, model, machine = somebodysMachines[0], keyId, random } = one;
  const promptTokens = Math.round(200 + random.next() ** 3 * 30_000);
  const completionTokens = Math.round(20 + random.next() ** 2 * 900);
  const firstTokenMs = Math.round(90 + promptTokens / 12 + random.next() * 300);
  const cachedTokens = Math.round(promptTokens * random.next() * 0.8);
  const name = machine?.name ?? "";
  const cost = { totalMs: firstTokenMs, promptMs: firstTokenMs - 60, answerMs: 60 };
  return {
    id: newToken("req_"),
    at,
    keyId,
    address: `10.20.${random.between(0, 3)}.${random.between(2, 250)}`,
    agent: pick(agents, random),
    path: random.next() < 0.15 ? "/v1/messages" : "/v1/chat/completions",
    streamed: random.next() < 0.85,
    asked: model,
    tried: [{ machine: name, model, atMs: 3, reason: random.next() < 0.5 ? "warm" : undefined, cost, cachedTokens }],
    machine: name,
    model,
    status: 200,
    code: "ok",
    endedBy: "machine",
    acceptedMs: 5,
    firstTokenMs,
    totalMs: Math.round(firstTokenMs + (completionTokens * 1_000) / (machine?.speed ?? 50)),
    promptTokens,
    cachedTokens,
    completionTokens,
  };
}

const nothingMade = { promptTokens: 0, cachedTokens: undefined, completionTokens: 0, firstTokenMs: undefined };
const refused = { ...nothingMade, tried: [], machine: undefined, model: undefined, totalMs: 4 };

/** Returns the request as it ended: one in sixteen not as its client wished. */
function endOf(
  record: WrittenRecord,
  by: { other: SomebodysMachine | undefined; random: SeededRandom },
): WrittenRecord {
  const { other, random } = by;
  const [first] = record.tried;
  switch (random.between(1, 100)) {
    case 1:
      return { ...record, ...refused, asked: "gpt-4.1", status: 404, code: "model_not_found", endedBy: "client" };
    case 2:
      return { ...record, ...refused, status: 429, code: "rate_limit_requests", endedBy: "key", limit: "rpm" };
    case 3:
      return { ...record, ...nothingMade, status: 502, code: "upstream_error", tried: failed("upstream_error") };
    case 4:
      return { ...record, status: 499, code: "client_closed", endedBy: "client" };
    case 5:
      return { ...record, ...refused, status: 400, code: "context_length_exceeded", endedBy: "client" };
    case 6:
    case 7: {
      if (other === undefined || first === undefined) return record;
      const fromTokens = Math.round(record.completionTokens / 3);
      const tried = [...failed("agent_disconnected"), { ...first, machine: other.name, atMs: 900, fromTokens }];
      return { ...record, machine: other.name, tried };
    }
    default:
      return record;
  }
  function failed(code: string) {
    return record.tried.map((each) => ({ ...each, code }));
  }
}

/** Adds requests up by day, key, machine and model, as the gateway books them. */
export function usageOf(records: readonly WrittenRecord[]): UsageRow[] {
  const rows = new Map<string, UsageRow>();
  for (const record of records) {
    const {
      at,
      keyId,
      machine = null,
      model = null,
      code,
      promptTokens,
      completionTokens,
      firstTokenMs,
      totalMs,
    } = record;
    const name = [dayOf(at), keyId, machine, model].join("\n");
    const row = rows.get(name) ?? { ...noUsage, day: dayOf(at), keyId, machine, model };
    rows.set(name, {
      ...row,
      requests: row.requests + 1,
      failed: row.failed + Number(code !== "ok"),
      promptTokens: row.promptTokens + promptTokens,
      completionTokens: row.completionTokens + completionTokens,
      answered: row.answered + Number(firstTokenMs !== undefined),
      firstTokenMs: row.firstTokenMs + (firstTokenMs ?? 0),
      durationMs: row.durationMs + totalMs,
      // At 0.20 for a million tokens of prompts and 0.60 for one of answers.
      cost: row.cost + (model?.startsWith("llama") ? 0 : Math.ceil(promptTokens * 0.2 + completionTokens * 0.6)),
    });
  }
  return [...rows.values()];
}

const minuteMs = 60_000;

/** Adds requests up by the minute in which they ended; those of earlier days by the hour, since their minutes are gone. */
export function sumsOf(records: readonly WrittenRecord[]): ReadonlyMap<number, Sums> {
  const minutes = new Map<number, Sums>();
  for (const record of records) {
    const endedAt = record.at + record.totalMs;
    const stepMs = Date.now() - endedAt > dayMs ? 60 * minuteMs : minuteMs;
    const sums = minutes.getOrInsertComputed(Math.floor(endedAt / stepMs) * stepMs, () => new Sums());
    const { machine, cachedTokens, code } = record;
    for (const row of usageOf([record])) sums.add(row, { machine, cachedTokens, code });
  }
  return minutes;
}

function pick<T>(choices: readonly T[], random: SeededRandom): T {
  const [first, ...others] = choices;
  if (first === undefined) throw new Error("there is nothing to choose from");
  return random.oneOf([first, ...others]);
}
