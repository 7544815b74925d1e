import type { Mishap, RuntimeWish } from "./runtime-of-mishaps.ts";
import type { Ask, Scenario } from "./scenario.ts";

const well: RuntimeWish = { mishap: "well" };
const oneMachine = (wish: RuntimeWish) => ({ runtimes: { attic: wish }, fleet: { machines: { attic: {} } } });
/** Its model server is as bad for whoever asks next. */
const badMachine = (wish: RuntimeWish) => ({ ...oneMachine(wish), heals: false });
const streamAndWhole: readonly Ask[] = [{}, { as: "whole", whole: true }];
const failed = ["502 upstream_error"] as const;
const failedInStream = ["event upstream_error"] as const;
/** What is said in a mishap comes behind this many tokens. */
const some = 5;

/** Each in a stream with status 200. */
const badAnswers: readonly (readonly [row: number, Mishap])[] = [
  ...(["HTML", "no JSON", "wrong types", "bytes"] as const).map((mishap) => [16, mishap] as const),
  ...(["an error as vLLM tells it", "an error as OpenAI tells it"] as const).map((mishap) => [19, mishap] as const),
];

export const runtimeRows: readonly Scenario[] = [
  {
    rows: [10],
    guarantee: "a runtime that is killed before its first token costs the client nothing but time",
    fast: true,
    runtimes: { attic: well, cellar: well },
    asks: [{ phase: "P3" }],
    steps: [{ kill: "runtime" }],
    endsWithinRealMs: 3_000,
  },
  {
    rows: [10],
    guarantee: "the only runtime that is killed is told, and its model withdrawn",
    ...badMachine({ mishap: "silent" }),
    asks: [{ phase: "P3" }],
    steps: [{ kill: "runtime" }],
    outcomes: { it: [...failed, "503 runtime_offline"] },
    endsWithinMs: 1_000,
    afterwards: [{ seeReal: "the model is withdrawn", withinMs: 3_000 }],
  },
  {
    rows: [11],
    guarantee: "a runtime that is killed in a stream is an error in it at once",
    fast: true,
    runtimes: { attic: well, cellar: well },
    asks: [{ phase: "P4" }],
    steps: [{ kill: "runtime" }],
    outcomes: { it: failedInStream },
    endsWithinMs: 1_000,
  },
  {
    rows: [12],
    guarantee: "a runtime that accepts and never answers is a timeout that is not to be repeated",
    ...badMachine({ mishap: "silent" }),
    fleet: { machines: { attic: { env: { TRUNKLINE_FIRST_TOKEN_MS: "2000" } } } },
    asks: streamAndWhole,
    outcomes: { it: ["504 upstream_timeout"], whole: ["504 upstream_timeout"] },
    headers: { it: { "x-should-retry": "false" }, whole: { "x-should-retry": "false" } },
    endsWithinRealMs: 3_000,
  },
  {
    rows: [13],
    guarantee: "a runtime that says a token now and then is ended by the total deadline",
    ...oneMachine({ mishap: "slow" }),
    fleet: { machines: { attic: {} }, env: { TRUNKLINE_JOB_TOTAL_MS: "3000" } },
    asks: [{ script: { tokens: 100, delayMs: 400 } }],
    outcomes: { it: ["event upstream_timeout"] },
    endsWithinRealMs: 4_000,
  },
  ...(["500", "out of memory"] as const).map((mishap): Scenario => ({
    rows: [14],
    guarantee: `a runtime that fails (${mishap}) costs clients nothing, and is left alone after some failures`,
    fast: mishap === "500",
    runtimes: { attic: { mishap }, cellar: well },
    asks: [{ as: "first", times: 10, inTurn: true }],
    steps: [{ see: "the bad runtime is left alone", withinMs: 0 }],
    endsWithinMs: 5_000,
  })),
  {
    rows: [14],
    guarantee: "a runtime that fails, with no other, is told as such",
    ...badMachine({ mishap: "500" }),
    asks: streamAndWhole,
    outcomes: { it: failed, whole: failed },
    endsWithinMs: 1_000,
  },
  {
    rows: [15],
    guarantee: "a runtime that is busy is told as overload with a time to come back, and is not blamed",
    ...badMachine({ mishap: "busy" }),
    asks: [{ as: "it", times: 8, inTurn: true }],
    outcomes: { it: ["503 server_is_overloaded"] },
    headers: { it: { "retry-after": /^\d+$/ } },
  },
  ...badAnswers.flatMap(([row, mishap]): Scenario[] => [
    {
      rows: [row],
      guarantee: `a runtime that says ${mishap} has none of it reach a client, but a status`,
      ...badMachine({ mishap }),
      asks: streamAndWhole,
      outcomes: { it: failed, whole: failed },
      endsWithinMs: 1_000,
    },
    {
      rows: [row],
      guarantee: `a runtime that says ${mishap} amid its answer is an error there`,
      ...badMachine({ mishap, after: some }),
      asks: [{}],
      outcomes: { it: failedInStream },
      endsWithinMs: 1_000,
    },
  ]),
  ...(["closes", "cuts"] as const).map((mishap): Scenario => ({
    rows: [18],
    guarantee: `a runtime that ${mishap} without an end has not succeeded`,
    ...badMachine({ mishap, after: some }),
    asks: streamAndWhole,
    outcomes: { it: failedInStream, whole: [...failed, "503 runtime_offline"] },
    endsWithinMs: 1_000,
  })),
  {
    rows: [73],
    guarantee: "a request that kills runtimes is given to a second one and to no third",
    fast: true,
    runtimes: { attic: { mishap: "dies" }, cellar: { mishap: "dies" }, loft: { mishap: "dies" } },
    fleet: { machines: { attic: {}, cellar: {}, loft: {} } },
    asks: [{}],
    outcomes: { it: ["502 poison_request"] },
    headers: { it: { "x-should-retry": "false" } },
    afterwards: [{ see: "two runtimes were asked", withinMs: 0 }],
    heals: false,
  },
  {
    rows: [20],
    guarantee: "a runtime that claims another id and model, and adds fields, is written as ours",
    fast: true,
    ...oneMachine({ mishap: "somebody else" }),
    asks: streamAndWhole,
  },
];
