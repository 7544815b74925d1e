import { z } from "zod";
import { machineStates } from "../records/shown-machine.ts";
import { machineName } from "../protocol/identifiers.ts";
import { memoryFacts, presence } from "../protocol/presence.ts";
import { modelId } from "../protocol/model.ts";

const count = z.int().nonnegative();
const { state, runtime, epoch } = presence.shape;

/** A machine in the format for operators: in the admin API and on the command line. */
export const shownFleetMachine = z.object({
  machine: machineName,
  epoch: epoch
    .nullable()
    .describe(
      "Which boot of its agent this is: when it started, in milliseconds since 1970, and a tail; null when this gateway " +
        "has not heard it.",
    ),
  status: z
    .enum(["present", "suspect", "offline", "left_out", "unknown"])
    .describe(
      "How this gateway sees it: there, silent for a while, away, there and left out, or unknown without a broker.",
    ),
  state: state.describe("What its agent said of itself last; gone is its goodbye."),
  pairing: z
    .enum(machineStates)
    .nullish()
    .describe("The state of its record; null for a machine that this site has no record of."),
  connection: z
    .enum(["tunnel", "direct"])
    .nullish()
    .describe("How it is connected: over the site's own port, or to the broker; null when it is away."),
  runtime: runtime.describe("The model servers that answer there; null when none does."),
  slots: count.describe("How many jobs it runs at once."),
  running: count,
  queued: count,
  queue_max: count.describe("How many jobs it lets wait."),
  strays: count.nullable().describe("Requests that its model servers go on with although they were cancelled."),
  version: z.string().nullish().describe("The version of its agent; null where it does not tell."),
  heard_ms_ago: count
    .nullable()
    .describe("How long ago this gateway heard it last, or any gateway as far as that was noted; null when none did."),
  state_ms_ago: count
    .nullish()
    .describe("For how long this gateway has heard it in this state; null where it hears none."),
  memory: z
    .object({
      total_mb: count,
      free_mb: count,
      disk_free_mb: count.nullable().describe("Free where its models lie; null where its agent cannot see that disk."),
      models: z
        .array(z.object({ id: modelId, memory_mb: count, in_use: z.boolean() }))
        .describe("The models in it, 32 at most. in_use: requests for it run or wait there."),
      loading: z
        .object({ id: modelId, percent: count, seconds_left: count })
        .nullable()
        .describe("The model that is being loaded now."),
      keeps: z
        .array(memoryFacts.shape.keeps.unwrap().element)
        .describe("The models that it was told to keep in memory, and how each is."),
      pulls: z
        .array(memoryFacts.shape.pulls.unwrap().element)
        .describe("Pulls under way, and those that ended in the last 10 minutes, the latest first."),
      can_pull: z.boolean().describe("True if its owner lets models be pulled, and a model server there can."),
    })
    .nullish()
    .describe("The memory for models: of its graphics cards, or of the machine; null where its agent does not tell."),
  models: count.describe("How many models this gateway knows it to offer."),
  open_jobs: count.describe("Jobs of this gateway that are under way there."),
  takes_work: z.boolean().describe("Whether it is asked to do anything at all."),
  last_fault: z
    .object({ code: z.string(), model: z.string(), reason: z.string().nullable(), ms_ago: count })
    .nullish()
    .describe("How a job of this gateway last failed there; null when none did."),
  why: z.string().nullable().describe("Why it gets no work, or less than others; null when it gets its share."),
});
export type ShownFleetMachine = z.infer<typeof shownFleetMachine>;
export type ShownPull = NonNullable<ShownFleetMachine["memory"]>["pulls"][number];

export const fleetListing = z.object({
  object: z.literal("list"),
  data: z.array(shownFleetMachine).describe("By name; a name that two agents use stands there twice."),
  problem: z
    .string()
    .nullable()
    .describe("Why this gateway cannot use its broker, or not for all that it needs; null when all is well."),
  remark: z
    .string()
    .nullish()
    .describe("A grant of the broker that this gateway lacks and can do without; null when it has all."),
});
export type FleetListing = z.infer<typeof fleetListing>;

export const rankReasons = [
  "breaker",
  "contradicts",
  "suspect",
  "small_window",
  "full",
  "busy",
  "slower",
  "warm",
  "drawn",
] as const;
export type RankReason = (typeof rankReasons)[number];

export const leftOutReasons = [
  "broker_away",
  "offline",
  "draining",
  "cordoned",
  "revoked",
  "denied",
  "external",
  "no_runtime",
  "no_model",
  "not_permitted",
  "unable",
  "tried",
] as const;
export type LeftOutReason = (typeof leftOutReasons)[number];

/** The ranking of one machine for a request of a model, in the format for operators. */
export const shownRouteMachine = z.object({
  machine: machineName,
  model: modelId.nullish().describe("The target of the route that this is about; null without a route."),
  rank: z.int().positive().nullable().describe("In which place it is asked; null when it is not asked."),
  reason: z
    .enum([...rankReasons, ...leftOutReasons])
    .nullable()
    .describe("Null when nothing is against it."),
  why: z.string().nullable().describe("The same in words."),
  slots: count,
  free_slots: count,
  queued: count,
  has_room: z.boolean().describe("Whether it has a slot, or a place in its queue, for one more."),
  context_window: count.nullable().describe("Of the model there; null where it is not offered."),
  prompt_tokens_per_second: z
    .number()
    .nonnegative()
    .nullish()
    .describe("How fast it computes prompts, as this gateway measured lately; null until it has."),
  tokens_per_second: z.number().nonnegative().nullable().describe("How fast an answer is that runs alone."),
  first_token_ms: count
    .nullable()
    .describe("The expected time to the first token of this request; null until an answer was measured here."),
  cost_ms: z
    .object({
      load: count.nullish().describe("Until the model is in memory."),
      slot: count.describe("Until a slot is free."),
      backlog: count.describe("For the prompts that were placed there before."),
      prompt: count.describe("For the way to the machine, and the part of the prompt that it has not cached."),
      answer: count.describe("For the answer, after its first token."),
      delay: count.describe("By which other answers there are halted and slowed."),
      total: count.describe("The cost by which machines are compared. Time after the first token counts a tenth."),
    })
    .nullish()
    .describe("What the request is expected to cost there; null until an answer was measured here."),
});
export type ShownRouteMachine = z.infer<typeof shownRouteMachine>;

export const shownRoute = z.object({
  object: z.literal("route"),
  model: modelId,
  targets: z
    .array(z.string())
    .nullish()
    .describe("What the name stands for, in order, if it is that of a route; null otherwise."),
  refusal: z
    .object({ code: z.string(), message: z.string() })
    .nullable()
    .describe("What a request would end in at once; null when there is a machine to ask."),
  machines: z.array(shownRouteMachine).describe("Those that are asked in their order, and then the others."),
});
export type ShownRoute = z.infer<typeof shownRoute>;
