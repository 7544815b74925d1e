import { Argument, type Command, Option } from "commander";
import { shownRoute, type ShownRoute, type ShownRouteMachine } from "#shared/fleet/shown-fleet.ts";
import { modelId } from "#shared/model/model.ts";
import { wholeNumber } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { commandIn, type GivenJson, jsonOption, readBy, type Surroundings, widthOf } from "./command-line.ts";
import { givenOperations, type GivenOperations, operationsUrlOption, whichGatewayHelp } from "./operations-options.ts";
import { alignedTable, cutText } from "./table-text.ts";

interface Given extends GivenOperations, GivenJson {
  readonly kind: string;
  readonly tools?: true;
  readonly vision?: true;
  readonly promptTokens?: number;
}

const promptTokensMax = 999_999_999;

/** Makes the command `trunkline route <model>`. It reports errors as `trunkline keys` does. */
export function routeCommand(surroundings: Surroundings): Command {
  const { stdout } = surroundings;
  return commandIn("route", surroundings)
    .description(
      "show which machines a request for a model would be offered to, in which order, and why the others not",
    )
    .addArgument(new Argument("<model>", "the model, as clients name it").argParser(readBy(modelId)))
    .addOption(
      new Option("--kind <kind>", "what it is asked to do").choices(["chat", "complete", "embed"]).default("chat"),
    )
    .addOption(new Option("--tools", "for a request with tools"))
    .addOption(new Option("--vision", "for a request with images"))
    .addOption(
      new Option("--prompt-tokens <count>", "for a prompt of this length").argParser(
        readBy(wholeNumber(0, promptTokensMax)),
      ),
    )
    .addOption(operationsUrlOption())
    .addOption(jsonOption())
    .addHelpText(
      "after",
      `
"free" are the free slots and all, "queued" the jobs that wait for one. "first token" and "tokens/s" are what the
gateway that is asked measured lately. Of machines that are as good as each other, requests draw two and ask the less
loaded one first; and a conversation goes back to the machine that knows it, where that is as good as the others.
The exit code is 1 when no machine would take a request.

Examples:
  trunkline route llama3.2
  trunkline route qwen3 --tools --prompt-tokens 20000
  trunkline route llama3.2 --json
${whichGatewayHelp}`,
    )
    .action(async (model: string, { json, ...given }: Given) => {
      const route = await givenOperations(given, surroundings).get(
        `/route?${queryOf(model, given).toString()}`,
        shownRoute,
      );
      if (json) stdout.write(`${JSON.stringify(route)}\n`);
      else if (route.machines.length > 0) {
        stdout.write(routeTable(route.machines, { widthMax: widthOf(stdout) }));
      }
      const why = whyNobody(route);
      if (why !== undefined) throw new StartFailure(exitCodes.failed, why);
    });
}

function queryOf(model: string, { kind, tools, vision, promptTokens }: Given): URLSearchParams {
  return new URLSearchParams({
    model,
    kind,
    ...(tools ? { tools: "true" } : {}),
    ...(vision ? { vision: "true" } : {}),
    ...(promptTokens === undefined ? {} : { prompt_tokens: String(promptTokens) }),
  });
}

function whyNobody({ refusal, machines }: ShownRoute): string | undefined {
  if (refusal !== null) return `No machine would take it. A client reads: ${refusal.message} (${refusal.code})`;
  const asked = machines.filter(({ rank }) => rank !== null);
  const hasRoom = asked.some(({ has_room: each }) => each);
  return hasRoom ? undefined : "No machine would take it just now: all their queues are full.";
}

const headings = ["rank", "machine", "free", "queued", "window", "first token", "tokens/s", "why"] as const;
const right = ["rank", "free", "queued", "window", "first token", "tokens/s"] as const;
const grouped = new Intl.NumberFormat("en-US");

/** Formats the machines in the order in which they get the job's offer, then those that get none. */
export function routeTable(
  machines: readonly ShownRouteMachine[],
  { widthMax = Infinity }: { readonly widthMax?: number | undefined } = {},
): string {
  return alignedTable(headings, machines.map(cellsOf), { right })
    .split("\n")
    .map((line) => cutText(line, widthMax))
    .join("\n");
}

function cellsOf(machine: ShownRouteMachine): readonly string[] {
  const { context_window: window, first_token_ms: firstTokenMs, tokens_per_second: tokensPerSecond } = machine;
  return [
    machine.rank === null ? "-" : String(machine.rank),
    machine.machine,
    `${machine.free_slots}/${machine.slots}`,
    String(machine.queued),
    window === null ? "-" : grouped.format(window),
    firstTokenMs === null ? "-" : `${grouped.format(firstTokenMs)} ms`,
    tokensPerSecond === null ? "-" : tokensPerSecond.toFixed(1),
    machine.why ?? "-",
  ];
}
