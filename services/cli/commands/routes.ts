import { routeName } from "#shared/protocol/identifiers.ts";
import { Argument, type Command, InvalidArgumentError } from "commander";
import { z } from "zod";
import { commaList } from "#shared/process/config.ts";
import { openKnownModels } from "#shared/store/known-models.ts";
import { StartFailure } from "#shared/process/lifecycle.ts";
import { runOn } from "#shared/admin/run-on.ts";
import { routeOperations } from "#shared/admin/route-operations.ts";
import { targetText } from "#shared/records/change-route.ts";
import { routeTarget, type RouteTarget, targetsPerRouteMax } from "#shared/records/route-record.ts";
import {
  type CliCommand,
  commandIn,
  type JsonOption,
  readBy,
  type CliContext,
  widthOf,
} from "../terminal/command-line.ts";
import { utcTime } from "../terminal/quantity-text.ts";
import { alignedTable, type Field, fieldLines } from "../terminal/table-text.ts";
import { unknownTargets } from "../site/unknown-targets.ts";
import { tellChange, unreadLine, whichStoreHelp, withKeyStore } from "../site/with-key-store.ts";

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
  addSet(routes, context);
  addList(routes, context);
  addShow(routes, context);
  addRemove(routes, context);
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

interface Options extends JsonOption {
  readonly then?: readonly RouteTarget[];
  readonly strict?: true;
}

/** The exit code of `--strict` for a target that no machine has offered. */
const strictCode = 2;

function addSet(routes: CliCommand, context: CliContext): void {
  routes
    .command("set")
    .description("set what answers for a name, in place of what did before")
    .addArgument(routeArgument())
    .argument("<target>", "the model that answers", readTarget)
    .option("--then <target>", "what answers if nothing before it can; may be given again", readThen)
    .option(
      "--strict",
      "set nothing and exit with 2 if no machine has offered a target lately; otherwise it is a warning",
    )
    .json()
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
    .action((route: string, first: RouteTarget, given: Options) =>
      tellChange(context, given, async (store) => {
        const targets = [first, ...(given.then ?? [])];
        const sightings = await openKnownModels(store.state).list(store.clock.wall());
        const unknown = unknownTargets(targets, { sightings, machines: await store.machines.list() });
        if (given.strict && unknown.length > 0)
          throw new StartFailure(strictCode, `Nothing was set. ${unknown.join(" ")}`);
        for (const warning of unknown) context.stderr.write(`Warning: ${warning}\n`);
        const answer = await runOn(store, setRoute, { params: { route }, body: { targets } });
        const texts = targets.map(targetText).join(", then ");
        const said = answer.outcome === "unchanged" ? `stood for that before: ${texts}` : `stands for ${texts}`;
        return [answer, `${route} ${said}`];
      }),
    );
}

function addList(routes: CliCommand, context: CliContext): void {
  const { stdout, stderr } = context;
  routes
    .command("list", { isDefault: true })
    .description("show every route")
    .json()
    .more("\nExamples:\n  trunkline routes list\n  trunkline routes list --json")
    .action(({ json }: JsonOption) =>
      withKeyStore(context, { json }, async (store) => {
        const { data, unread } = await runOn(store, listRoutes, {});
        stderr.write(unreadLine(unread));
        if (json) stdout.write(`${JSON.stringify(data)}\n`);
        else if (data.length === 0) stderr.write("There is no route yet; `trunkline routes set` makes one.\n");
        else {
          const cells = data.map(({ route, targets, changed_at: at }) => [
            route,
            targets.map(targetText).join(", then "),
            utcTime(at),
          ]);
          const layout = { wrap: ["name", "targets"], widthMax: widthOf(stdout) };
          stdout.write(alignedTable(["name", "targets", "changed"], cells, layout));
        }
      }),
    );
}

function addShow(routes: CliCommand, context: CliContext): void {
  const { stdout } = context;
  routes
    .command("show")
    .description("show what answers for a name")
    .addArgument(routeArgument())
    .json()
    .more("\nExample:\n  trunkline routes show claude-sonnet-4")
    .action((route: string, { json }: JsonOption) =>
      withKeyStore(context, { json }, async (store) => {
        const shown = await runOn(store, showRoute, { params: { route } });
        const fields = fieldLines([
          ["name", route],
          ...shown.targets.map((target, place): Field => [place === 0 ? "target" : "then", targetText(target)]),
          ["created", utcTime(shown.created_at)],
          ["changed", utcTime(shown.changed_at)],
        ]);
        stdout.write(json ? `${JSON.stringify(shown)}\n` : fields);
      }),
    );
}

function addRemove(routes: CliCommand, context: CliContext): void {
  routes
    .command("remove")
    .description("remove a route; its name then means the model of that name again")
    .addArgument(routeArgument())
    .json()
    .more("\nExample:\n  trunkline routes remove claude-sonnet-4")
    .action((route: string, given: JsonOption) =>
      tellChange(context, given, async (store) => {
        const { replicated } = await runOn(store, removeRoute, { params: { route } });
        return [{ route, outcome: "removed", replicated }, `${route} is no route any more`];
      }),
    );
}
