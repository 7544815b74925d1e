import { type Command, Option } from "commander";
import { routeOperations } from "#shared/admin/route-operations.ts";
import type { ShownRoute, ShownRouteMachine } from "#shared/fleet/shown-fleet.ts";
import { furtherAbilities, modelId } from "#shared/protocol/model.ts";
import { wholeNumber } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { commandIn, readBy, type CliContext } from "../terminal/command-line.ts";
import { atGateway } from "../site/operations-port.ts";
import { grouped } from "../terminal/quantity-text.ts";
import { type TextColumn, tableOf } from "../terminal/table-text.ts";

interface Options {
  readonly kind: "chat" | "complete" | "embed" | (typeof furtherAbilities)[number];
  readonly tools?: boolean;
  readonly vision?: boolean;
  readonly promptTokens?: number;
}

const promptLength = wholeNumber(0, 999_999_999);

export function routeCommand(context: CliContext): Command {
  const kind = new Option("--kind <kind>", "what it is asked to do");
  return commandIn("route", context)
    .description(
      "show which machines a request for a model would be offered to, in which order, and why the others not",
    )
    .argument("<model>", "the model, as clients name it", readBy(modelId))
    .addOption(kind.choices(["chat", "complete", "embed", ...furtherAbilities]).default("chat"))
    .option("--tools", "for a request with tools")
    .option("--vision", "for a request with images")
    .option("--prompt-tokens <count>", "for a prompt of this length, none of it cached", readBy(promptLength))
    .more(`
"free" are the free slots and all, "queued" the jobs that wait for one. "cost" is the expected time that a request takes
there and takes from others; the machine with the least is asked first. "first token" is the part until its first token,
"tokens/s" the speed of an answer that runs alone. The gateway that is asked measured the speeds on its own requests.
A machine with a part of the prompt cached comes first while it costs at most 200 ms more, and at most four times what
the cache saves there.
The exit code is 1 when no machine would take a request.

Examples:
  trunkline route llama3.2
  trunkline route qwen3 --tools --prompt-tokens 20000
  trunkline route llama3.2 --json`)
    .does(
      atGateway,
      async (port, model: string, { kind: asked, tools = false, vision = false, promptTokens }: Options) => {
        const query = { model, kind: asked, tools: String(tools), vision: String(vision), prompt_tokens: promptTokens };
        const route = await port.ask(routeOperations.explainRoute, { query });
        const why = whyNobody(route);
        return {
          answer: route,
          text: (widthMax) => routeTable(route.machines, widthMax),
          remark: route.targets ? `${model} stands for ${route.targets.join(", then ")}.` : "",
          failure: why === undefined ? undefined : new StartFailure(exitCodes.failed, why),
        };
      },
    );
}

function whyNobody({ refusal, machines }: ShownRoute): string | undefined {
  if (refusal !== null) return `No machine would take it. A client reads: ${refusal.message} (${refusal.code})`;
  const asked = machines.filter(({ rank }) => rank !== null);
  const hasRoom = asked.some(({ has_room: each }) => each);
  return hasRoom ? undefined : "No machine would take it just now: all their queues are full.";
}

const columns: readonly TextColumn<ShownRouteMachine>[] = [
  ["rank", ({ rank }) => textOf(rank, String), "right"],
  ["machine", ({ machine }) => machine, "wrap"],
  ["model", ({ model }) => model ?? "-", "wrap"],
  ["free", ({ free_slots: free, slots }) => `${free}/${slots}`, "right"],
  ["queued", ({ queued }) => String(queued), "right"],
  ["window", (machine) => textOf(machine.context_window, (tokens) => grouped.format(tokens)), "right"],
  ["cost", ({ cost_ms: cost }) => textOf(cost?.total, msText), "right"],
  ["first token", (machine) => textOf(machine.first_token_ms, msText), "right"],
  ["tokens/s", (machine) => textOf(machine.tokens_per_second, (speed) => speed.toFixed(1)), "right"],
  ["why", ({ why }) => why ?? "-", "wrap"],
];

function textOf(figure: number | null | undefined, text: (figure: number) => string): string {
  return figure === null || figure === undefined ? "-" : text(figure);
}

function msText(ms: number): string {
  return `${grouped.format(ms)} ms`;
}

/** Formats the machines in the order in which they get the job's offer, then those that get none. */
export function routeTable(machines: readonly ShownRouteMachine[], widthMax?: number): string {
  const isRouted = machines.some(({ model }) => typeof model === "string");
  const shown = columns.filter(([heading]) => isRouted || heading !== "model");
  return tableOf(shown, machines, { widthMax });
}
