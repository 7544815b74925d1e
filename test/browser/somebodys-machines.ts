import { setTimeout as sleep } from "node:timers/promises";
import type { AnswerEvent } from "#shared/protocol/answer-events.ts";
import type { OfferedModel } from "#shared/protocol/model.ts";
import type { MemoryFacts, Presence } from "#shared/protocol/presence.ts";
import { payloadOf } from "../harness/answer-payload.ts";
import { HandMadeAgent, handMadeModel, type HandMadeJob } from "../harness/hand-made-agent.ts";

/** A machine of the site: its model server, its slots, its memory and free disk in GB, and the tokens of an answer a second. */
export interface SomebodysMachine {
  readonly name: string;
  readonly runtime: string;
  readonly slots: number;
  readonly memoryGb: number;
  readonly diskGb: number;
  readonly speed: number;
  readonly models: readonly string[];
  readonly loaded: readonly string[];
}

/** A model with a `*` is in memory. */
const machineRows = `
studio-4090 ollama 4 24 412 74 qwen3-coder:30b* gpt-oss:20b gemma3:27b llama3.2 nomic-embed-text*
rack-h100 vllm 32 80 1840 118 openai/gpt-oss-120b*
rack-l40s vllm 16 48 930 52 Qwen/Qwen2.5-VL-32B-Instruct-AWQ* BAAI/bge-reranker-v2-m3*
attic llama-server 2 48 96 21 llama3.3:70b* qwen3-coder:30b
mac-studio mlx-lm 2 192 2210 61 mlx-community/Qwen3-Next-80B-A3B-Instruct-4bit* deepseek-r1:32b
mira-macbook lm-studio 1 64 188 38 gpt-oss:20b* mistral-small3.2:24b`;

/** The size of a model in GB, its window in thousands of tokens, and its abilities. */
const modelRows = `
qwen3-coder:30b 19 256 tools
gpt-oss:20b 14 128 tools thinking
openai/gpt-oss-120b 65 128 tools thinking
llama3.3:70b 43 128 tools
gemma3:27b 17 128 vision
mistral-small3.2:24b 15 128 vision tools
deepseek-r1:32b 20 128 thinking
Qwen/Qwen2.5-VL-32B-Instruct-AWQ 22 64 vision tools
mlx-community/Qwen3-Next-80B-A3B-Instruct-4bit 45 256 tools
llama3.2 2 128 tools
nomic-embed-text 0.3 8 embedding
BAAI/bge-reranker-v2-m3 1.1 8 rerank`;

const wordsIn = (rows: string): string[][] =>
  rows
    .trim()
    .split("\n")
    .map((row) => row.split(" "));

export const somebodysMachines: readonly SomebodysMachine[] = wordsIn(machineRows).map(([name, runtime, ...rest]) => {
  const [slots = 1, memoryGb = 8, diskGb = 0, speed = 1] = rest.slice(0, 4).map(Number);
  const models = rest.slice(4).map((id) => id.replace("*", ""));
  const loaded = models.filter((id) => rest.includes(`${id}*`));
  return { name: name ?? "", runtime: runtime ?? "", slots, memoryGb, diskGb, speed, models, loaded };
});

const knownModels = new Map(wordsIn(modelRows).map(([id = "", gb, window, ...able]) => [id, { gb, window, able }]));

function offered(id: string, { runtime, loaded }: SomebodysMachine): OfferedModel {
  const { gb, window, able = [] } = knownModels.get(id) ?? {};
  const can = (ability: string): boolean => able.includes(ability);
  return {
    ...handMadeModel,
    id,
    owned_by: runtime,
    context_window: Number(window) * 1_024,
    size_mb: Math.round(Number(gb) * 1_000),
    ...(runtime === "mlx-lm" && { runtime_profile: "apple-mlx", apple_mlx: true as const }),
    capabilities: {
      completion: !can("embedding") && !can("rerank"),
      vision: can("vision"),
      embedding: can("embedding"),
      tools: can("tools"),
      thinking: can("thinking"),
    },
    ...(can("rerank") && { x_capabilities: ["rerank"] }),
    runtime,
    loaded: loaded.includes(id),
    memory_mb: Math.round(Number(gb) * 1_070),
    load_ms: Math.round(Number(gb) * 450),
  };
}

/** Starts a machine of the site: its presence over NATS, with answers that stream at its speed and no model behind. */
export function startMachine(natsUrl: string, machine: SomebodysMachine): Promise<HandMadeAgent> {
  const models = machine.models.map((id) => offered(id, machine));
  const running = new Map<string, string>();
  const startedAt = Date.now();
  const onJob = async (job: HandMadeJob): Promise<void> => {
    const { id, kind, model = "" } = job.head;
    running.set(id, model);
    await (kind === "chat" ? answerChat(job, { machine, isWanted: () => running.has(id) }) : refuse(job));
    running.delete(id);
  };
  return HandMadeAgent.start({
    natsUrl,
    machine: machine.name,
    model: models,
    startedAt: startedAt - 3 * 86_400_000,
    slots: machine.slots,
    onJob: (job) => void onJob(job),
    onControl: (told) => void (told.kind === "cancel" && running.delete(told.job)),
    presence: (): Partial<Presence> => {
      const loaded = models.filter((each) => each.loaded);
      const residents = loaded.map(({ id, memory_mb: memoryMb = 0, load_ms: returnMs = 0 }) => {
        return { model: id, memoryMb, returnMs, ...([...running.values()].includes(id) && { inUse: true as const }) };
      });
      return {
        runtime: machine.runtime,
        queueMax: machine.slots * 4,
        running: Math.min(running.size, machine.slots),
        queued: Math.max(0, running.size - machine.slots),
        tunnelled: true,
        version: "0.3.0",
        memory: memoryOf(machine, { residents, sinceMs: Date.now() - startedAt }),
      };
    },
  });
}

/** The model that the machine with Ollama keeps, and the one that it pulls. */
const [kept, pulled] = ["qwen3-coder:30b", "mistral-small3.2:24b"] as const;

function memoryOf(
  { memoryGb, diskGb, runtime }: SomebodysMachine,
  { residents, sinceMs }: { readonly residents: MemoryFacts["residents"]; readonly sinceMs: number },
): MemoryFacts {
  const used = residents.reduce((sum, { memoryMb }) => sum + memoryMb, 900);
  const totalMb = memoryGb * 1_000;
  const percent = Math.min(99, 37 + Math.floor(sinceMs / 4_000));
  return {
    totalMb,
    freeMb: Math.max(0, totalMb - used),
    diskFreeMb: diskGb * 1_000,
    residents,
    ...(runtime === "ollama" && {
      isPlaced: true,
      canPull: true,
      keeps: [{ model: kept, state: "loaded" }],
      pulls: [{ model: pulled, state: "pulling", status: "pulling 6a0746a1ec1a", percent, totalMb: 15_000 }],
    }),
  };
}

const answerText = `The median splits a sorted list in half. Sort a copy, then take the middle:

\`\`\`python
def median(values):
    ordered = sorted(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return (ordered[middle - 1] + ordered[middle]) / 2
\`\`\`

An even number of values has two in the middle: their mean is returned.`;

async function answerChat(
  { say, body }: HandMadeJob,
  { machine, isWanted }: { readonly machine: SomebodysMachine; readonly isWanted: () => boolean },
): Promise<void> {
  const words = answerText.match(/\S+\s*/g) ?? [];
  // A page that is open all day has long answers too: a prompt may ask for more of the same.
  const times = Number(/repeat (\d+)/.exec(Buffer.from(body).toString())?.[1] ?? 1);
  const begun = performance.now();
  let sequence = 0;
  // Each word is told as a token.
  const tell = (event: AnswerEvent): void => {
    sequence += 1;
    say("data", payloadOf(event), sequence, sequence);
  };
  await sleep(180);
  for (let time = 0; time < times; time += 1) {
    for (const text of words) {
      if (!isWanted()) return;
      tell({ kind: "text", text });
      await sleep(1_000 / machine.speed);
    }
  }
  tell({ kind: "finish", reason: "stop" });
  say(
    "end",
    {
      finishReason: "stop",
      usage: { promptTokens: 214, completionTokens: words.length * times, cachedTokens: 128 },
      timings: { queuedMs: 0, firstTokenMs: 180, totalMs: Math.round(performance.now() - begun) },
    },
    sequence + 1,
  );
}

async function refuse({ say }: HandMadeJob): Promise<void> {
  say("fault", { code: "upstream_error", message: "This machine answers chats alone." }, 1);
}
