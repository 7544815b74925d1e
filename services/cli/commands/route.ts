import { type Command, Option } from "commander";
import { routeOperations } from "#shared/admin/route-operations.ts";
import type { ShownRoute, ShownRouteMachine } from "#shared/fleet/shown-fleet.ts";
import { furtherAbilities, modelId } from "#shared/protocol/model.ts";
import { wholeNumber } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { commandIn, type JsonOption, readBy, type CliContext, widthOf } from "../terminal/command-line.ts";
import { asksGateway, givenOperations, type OperationsOptions } from "../site/operations-port.ts";
import { grouped } from "../terminal/quantity-text.ts";
import { alignedTable } from "../terminal/table-text.ts";

interface Options extends OperationsOptions, JsonOption {
  readonly kind: "chat" | "complete" | "embed" | (typeof furtherAbilities)[number];
  readonly tools?: true;
  readonly vision?: true;
  readonly promptTokens?: number;
}

const promptTokens = wholeNumber(0, 999_999_999);

export function routeCommand(context: CliContext): Command {
  const { stdout, stderr } = context;
  const kind = new Option("--kind <kind>", "what it is asked to do");
  return commandIn("route", context)
    .description(
      "show which machines a request for a model would be offered to, in which order, and why the others not",
    )
    .argument("<model>", "the model, as clients name it", readBy(modelId))
    .addOption(kind.choices(["chat", "complete", "embed", ...furtherAbilities]).default("chat"))
    .option("--tools", "for a request with tools")
    .option("--vision", "for a request with images")
    .option("--prompt-tokens <count>", "for a prompt of this length, none of it cached", readBy(promptTokens))
    .with(
      asksGateway(`
"free" are the free slots and all, "queued" the jobs that wait for one. "cost" is the expected time that a request takes
there and takes from others; the machine with the least is asked first. "first token" is the part until its first token,
"tokens/s" the speed of an answer that runs alone. The gateway that is asked measured the speeds on its own requests.
A machine with a part of the prompt cached comes first while it costs at most 200 ms more, and at most four times what
the cache saves there.
The exit code is 1 when no machine would take a request.

Examples:
  trunkline route llama3.2
  trunkline route qwen3 --tools --prompt-tokens 20000
  trunkline route llama3.2 --json
`),
    )
    .action(async (model: string, { json, ...given }: Options) => {
      const route = await givenOperations(given, context).ask(routeOperations.explainRoute, {
        query: {
          model,
          kind: given.kind,
          tools: String(given.tools ?? false),
          vision: String(given.vision ?? false),
          prompt_tokens: given.promptTokens,
        },
      });
      if (route.targets && !json) stderr.write(`${model} stands for ${route.targets.join(", then ")}.\n`);
      if (json) stdout.write(`${JSON.stringify(route)}\n`);
      else if (route.machines.length > 0) stdout.write(routeTable(route.machines, widthOf(stdout)));
      const why = whyNobody(route);
      if (why !== undefined) throw new StartFailure(exitCodes.failed, why);
    });
}

function whyNobody({ refusal, machines }: ShownRoute): string | undefined {
  if (refusal !== null) return `No machine would take it. A client reads: ${refusal.message} (${refusal.code})`;
  const asked = machines.filter(({ rank }) => rank !== null);
  const hasRoom = asked.some(({ has_room: each }) => each);
  return hasRoom ? undefined : "No machine would take it just now: all their queues are full.";
}

const headings = [
  "rank",
  "machine",
  "model",
  "free",
  "queued",
  "window",
  "cost",
  "first token",
  "tokens/s",
  "why",
] as const;
const right = ["rank", "free", "queued", "window", "cost", "first token", "tokens/s"] as const;

/** Formats the machines in the order in which they get the job's offer, then those that get none. */
export function routeTable(machines: readonly ShownRouteMachine[], widthMax?: number): string {
  const isRouted = machines.some(({ model }) => typeof model === "string");
  const shown = headings.filter((heading) => isRouted || heading !== "model");
  const rows = machines.map((machine) => shown.map((heading) => cellsOf(machine)[heading]));
  return alignedTable(shown, rows, { right, wrap: ["machine", "model", "why"], widthMax });
}

function cellsOf(machine: ShownRouteMachine): Readonly<Record<(typeof headings)[number], string>> {
  const { context_window: window, first_token_ms: firstTokenMs, tokens_per_second: tokensPerSecond } = machine;
  return {
    rank: machine.rank === null ? "-" : String(machine.rank),
    machine: machine.machine,
    model: machine.model ?? "-",
    free: `${machine.free_slots}/${machine.slots}`,
    queued: String(machine.queued),
    window: window === null ? "-" : grouped.format(window),
    cost: machine.cost_ms ? `${grouped.format(machine.cost_ms.total)} ms` : "-",
    "first token": firstTokenMs === null ? "-" : `${grouped.format(firstTokenMs)} ms`,
    "tokens/s": tokensPerSecond === null ? "-" : tokensPerSecond.toFixed(1),
    why: machine.why ?? "-",
  };
}
