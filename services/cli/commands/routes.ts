import { routeName } from "#shared/protocol/identifiers.ts";
import { Argument, type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { commaList } from "#shared/process/config.ts";
import { openKnownModels } from "#shared/store/known-models.ts";
import { StartFailure } from "#shared/process/lifecycle.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { routeOperations } from "#shared/admin/route-operations.ts";
import { targetText } from "#shared/records/route-record.ts";
import {
  routeTarget,
  type RouteTarget,
  type ShownModelRoute,
  targetsPerRouteMax,
} from "#shared/records/route-record.ts";
import { type CliCommand, commandIn, readBy, type CliContext } from "../terminal/command-line.ts";
import { utcTime } from "../terminal/quantity-text.ts";
import { type TextColumn, type Field, fieldLines, listed } from "../terminal/table-text.ts";
import { unknownTargets } from "../site/unknown-targets.ts";
import { onStore, whichStoreHelp } from "../site/with-key-store.ts";

const { listRoutes, removeRoute, setRoute, showRoute } = routeOperations;

export function routesCommand(context: CliContext): Command {
  const routes = commandIn("routes", context).more(`
All gateways follow a change within a second. "trunkline route <name>" shows which machines would get a request.

Examples:
  trunkline routes set claude-sonnet-4 qwen3-coder:30b --then gpt-oss:20b
  trunkline routes set 'claude-*' qwen3-coder:30b
  trunkline routes list
  trunkline routes remove 'claude-*'
${whichStoreHelp}`);
  addSet(routes);
  routes
    .command("list", { isDefault: true })
    .description("show every route")
    .more("\nExamples:\n  trunkline routes list\n  trunkline routes list --json")
    .does(onStore, async (store) => {
      const { data, unread } = await runOn(store, listRoutes, {});
      return {
        answer: data,
        unread,
        ...listed(columns, data, "There is no route yet; `trunkline routes set` makes one."),
      };
    });
  routes
    .sub("show", "show what answers for a name", routeArgument())
    .more("\nExample:\n  trunkline routes show claude-sonnet-4")
    .does(onStore, async (store, route: string) => {
      const answer = await runOn(store, showRoute, { params: { route } });
      const text = fieldLines([
        ["name", route],
        ...answer.targets.map((target, index): Field => [index === 0 ? "target" : "then", targetText(target)]),
        ["created", utcTime(answer.created_at)],
        ["changed", utcTime(answer.changed_at)],
      ]);
      return { answer, text };
    });
  routes
    .sub("remove", "remove a route; its name then means the model of that name again", routeArgument())
    .more("\nExample:\n  trunkline routes remove claude-sonnet-4")
    .does(onStore, async (store, route: string) => {
      const { replicated } = await runOn(store, removeRoute, { params: { route } });
      return { answer: { route, outcome: "removed", replicated }, text: `${route} is no route any more` };
    });
  return routes;
}

/** Reads a target: the id of a model, and perhaps the machines or the label, and `external`. */
const givenTarget = z
  .string()
  .transform((text, context): unknown => {
    const [model, ...words] = text.trim().split(/\s+/);
    const where = words.at(-1) === "external" ? { external: words.pop() !== undefined } : {};
    const [on, ...machines] = words;
    if (on === undefined) return { model, ...where };
    if (on === "on" && machines.length > 0) return { model, machines: commaList.parse(machines.join("")), ...where };
    if (on === "with" && machines.length === 1) return { model, label: machines[0], ...where };
    const message = "must be a model, 'model on machine,machine', 'model with label' or 'model external'";
    context.issues.push({ code: "custom", input: text, message });
    return z.NEVER;
  })
  .pipe(routeTarget);
const readTarget = readBy<RouteTarget>(givenTarget);

function readThen(text: string, before: readonly RouteTarget[] = []): readonly RouteTarget[] {
  if (before.length + 1 < targetsPerRouteMax) return [...before, readTarget(text)];
  throw new InvalidArgumentError(`There must be at most ${targetsPerRouteMax} targets.`);
}

function routeArgument(): Argument {
  return new Argument("<name>", "the name that clients ask for, or a pattern with *").argParser(readBy(routeName));
}

interface Options {
  readonly then?: readonly RouteTarget[];
  readonly strict?: true;
}

/** The exit code of `--strict` for a target that no machine has offered. */
const strictCode = 2;

function addSet(routes: CliCommand): void {
  routes
    .sub("set", "set what answers for a name, in place of what did before", routeArgument())
    .argument("<target>", "the model that answers", readTarget)
    .option("--then <target>", "what answers if nothing before it can; may be given again", readThen)
    .option(
      "--strict",
      "set nothing and exit with 2 if no machine has offered a target lately; otherwise it is a warning",
    )
    .more(`
A target is a model, a model on named machines, 'gpt-oss:20b on attic,loft', or on machines with a label, 'gpt-oss:20b with
fast' ("trunkline machines labels"). The next target answers while no machine can take a request for the one before, or when its machines fail before the first piece of the answer. A key needs
both the name and the target in its scopes; it never gets a target outside them.
Machines whose models run elsewhere ("trunkline machines external") answer for targets alone that say so, 'gpt-5 external',
and for keys alone that were issued with --external.
The name may be that of a model, which clients then no longer reach by it. A name comes before a pattern, and a longer
pattern before a shorter one. A target is always a model, never another route. Quote patterns, or the shell takes the *.

Examples:
  trunkline routes set claude-sonnet-4 qwen3-coder:30b
  trunkline routes set claude-sonnet-4 qwen3-coder:30b --then 'gpt-oss:20b on attic' --then llama3.2
  trunkline routes set claude-opus-4 qwen3-coder:480b --then 'claude-opus-4 external'
  trunkline routes set 'claude-*' qwen3-coder:30b --strict --json`)
    .does(onStore, async (store, route: string, first: RouteTarget, { then = [], strict }: Options) => {
      const targets = [first, ...then];
      const sightings = await openKnownModels(store.state).list(store.clock.wall());
      const unknown = unknownTargets(targets, { sightings, machines: await store.machines.list() });
      if (strict && unknown.length > 0) throw new StartFailure(strictCode, `Nothing was set. ${unknown.join(" ")}`);
      for (const warning of unknown) routes.context.stderr.write(`Warning: ${warning}\n`);
      const answer = await runOn(store, setRoute, { params: { route }, body: { targets } });
      const said = answer.outcome === "unchanged" ? "stood for that before:" : "stands for";
      return { answer, text: `${route} ${said} ${targetsText(answer)}` };
    });
}

/** Formats the targets of a route in their order. */
function targetsText({ targets }: Pick<ShownModelRoute, "targets">): string {
  return targets.map(targetText).join(", then ");
}

const columns: readonly TextColumn<ShownModelRoute>[] = [
  ["name", ({ route }) => route, "wrap"],
  ["targets", targetsText, "wrap"],
  ["changed", ({ changed_at: at }) => utcTime(at)],
];
