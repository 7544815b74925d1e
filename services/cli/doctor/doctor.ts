import { existsSync } from "node:fs";
import { join } from "node:path";
import { Argument, type Command } from "commander";
import { stateFileName } from "#shared/store/state-database.ts";
import type { Environment } from "#shared/process/config.ts";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { pairingFile, readPairing } from "#shared/site/pairing-file.ts";
import packageJson from "../../../package.json" with { type: "json" };
import { commandIn, here, type JsonOption, type Output, type CliContext, widthOf } from "../terminal/command-line.ts";
import { notedUrl } from "../site/find-gateway.ts";
import { clearLine } from "../terminal/show-progress.ts";
import { type TextColumn, cutText, tableOf } from "../terminal/table-text.ts";
import type { Check, CheckOutcome, CheckResult } from "./run-checks.ts";

const sides = ["machine", "site"] as const;
type Side = (typeof sides)[number];

export function doctorCommand(context: CliContext): Command {
  return commandIn("doctor", context)
    .addArgument(new Argument("[side]", "what to look at; found out by itself where it is not said").choices(sides))
    .more(`
It looks at the site that runs here, and otherwise at the machine that is paired here, by the files in TRUNKLINE_STATE_DIR
and those of an installed agent. On a machine it looks at its pairing, its service, the way to the site (name, certificate, clocks, WebSocket, proxies that
hold streams back) and the model servers. On a site: at the store, the broker, the port, the public URL as machines meet it,
and the paired machines. It changes nothing, and takes no place of an agent or gateway that runs. Run it as the user whose
service it is, with the same settings. The exit code is 1 when a check failed.

Examples:
  trunkline doctor
  trunkline doctor site --json
  sudo trunkline doctor machine                         # for a service of the system`)
    .does(here, async ({ stderr }, given: Side | undefined, { json }: JsonOption) => {
      await using prepared = await prepare(given, context);
      const { side, checks } = prepared;
      const { runChecks } = await import("./run-checks.ts");
      const progress = showProgress(json ? undefined : stderr, checks);
      const results = await runChecks(checks, { clock: context.clock, onDone: progress.done });
      progress.end();
      const isOk = results.every(({ outcome }) => outcome !== "failed");
      return {
        answer: { side, ok: isOk, checks: results },
        text: resultTable(results, context),
        failure: isOk ? undefined : new StartFailure(exitCodes.failed, countedText(results)),
      };
    });
}

interface Prepared extends AsyncDisposable {
  readonly side: Side;
  readonly checks: readonly Check[];
}

async function prepare(given: Side | undefined, { environment, clock }: CliContext): Promise<Prepared> {
  const version = packageJson.version;
  const { serviceManager, thisHost } = await import("../service/service-host.ts");
  const { settingsIn, trustAuthorities } = await import("../service/service-settings.ts");
  const { tryTo } = await import("./run-checks.ts");
  const host = await thisHost(environment);
  const manager = tryTo(() => serviceManager(host.facts));
  const hasService = manager !== undefined && existsSync(manager.places.definition);
  const { settingsFile = "" } = manager?.places ?? {};
  const ofService = hasService && existsSync(settingsFile) ? settingsIn(settingsFile) : {};
  const agent = { ...ofService, ...environment };
  const side = given ?? sideOf(environment, agent);
  trustAuthorities(ofService);
  if (side === "site") {
    const { siteChecks } = await import("./site-checks.ts");
    const paired = tryTo(() => readPairing(stateDirOf(agent)));
    return { side, ...(await siteChecks({ environment, clock, version, paired })) };
  }
  const { machineChecks } = await import("./machine-checks.ts");
  const checks = machineChecks({ environment: agent, clock, version, host, manager });
  return { side, checks, [Symbol.asyncDispose]: async () => undefined };
}

/** Judges by a site that runs, then by a pairing of this host, then by the settings and a site that does not run. */
export function sideOf(environment: Environment, agent: Environment): Side {
  const folder = stateDirOf(environment);
  if (notedUrl(folder, "baseUrl") !== undefined) return "site";
  if ([folder, stateDirOf(agent)].some((each) => existsSync(pairingFile(each)))) return "machine";
  const { TRUNKLINE_REDIS_URL: redisUrl, TRUNKLINE_PUBLIC_URL: publicUrl } = environment;
  return existsSync(join(folder, stateFileName)) || redisUrl || publicUrl ? "site" : "machine";
}

function stateDirOf({ TRUNKLINE_STATE_DIR: folder }: Environment): string {
  return folder || ".trunkline";
}

/** Shows on a terminal which checks are still under way. */
function showProgress(stderr: Output | undefined, checks: readonly Check[]) {
  const waiting = new Set(checks.map(({ name }) => name));
  const draw = (): void => {
    if (!stderr?.isTTY || waiting.size === 0) return;
    const done = `${checks.length - waiting.size} of ${checks.length} done; `;
    stderr.write(`${clearLine}${cutText(`${done}under way: ${[...waiting].join(", ")}`, (stderr.columns ?? 80) - 1)}`);
  };
  draw();
  return {
    done: ({ name }: CheckResult): void => {
      waiting.delete(name);
      draw();
    },
    end: () => void (stderr?.isTTY && stderr.write(clearLine)),
  };
}

const colours: Readonly<Record<CheckOutcome, string>> = {
  ok: "\u001b[32m",
  skipped: "\u001b[2m",
  warning: "\u001b[33m",
  failed: "\u001b[31m",
};
const plain = "\u001b[0m";

const columns: readonly TextColumn<CheckResult>[] = [
  ["check", ({ name }) => name],
  ["outcome", ({ outcome }) => outcome],
  ["finding", ({ finding }) => finding, "wrap"],
  ["remedy", ({ remedy }) => remedy ?? "", "wrap"],
];

function resultTable(results: readonly CheckResult[], { stdout, environment }: CliContext): string {
  const isColoured = stdout.isTTY && !environment["NO_COLOR"];
  return tableOf(columns, results, {
    widthMax: widthOf(stdout),
    paint: (text, { heading, row }) => {
      const outcome = results[row]?.outcome;
      if (!isColoured || heading !== "outcome" || outcome === undefined) return text;
      return `${colours[outcome]}${text}${plain}`;
    },
  });
}

function countedText(results: readonly CheckResult[]): string {
  const count = (wanted: CheckOutcome): number => results.filter(({ outcome }) => outcome === wanted).length;
  const warnings = count("warning");
  const others = warnings === 0 ? "" : `, with ${warnings} ${warnings === 1 ? "warning" : "warnings"} beside`;
  return `${count("failed")} of ${results.length} checks failed${others}: follow the remedies above.`;
}
