import { createPrivateKey, X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { join, resolve } from "node:path";
import { z } from "zod";
import { type OpenedKeyStore, openKeyStore } from "#shared/store/open-key-store.ts";
import { auditEntriesMax } from "#shared/records/audit-entry.ts";
import { readTrail } from "#shared/records/sign-in.ts";
import type { UnreadRecord } from "#shared/records/key-store.ts";
import { stateFileName } from "#shared/store/state-database.ts";
import { machineState } from "#shared/records/shown-machine.ts";
import type { Clock } from "#shared/process/clock.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { jsonIn } from "#shared/protocol/frame-payload.ts";
import { newEpoch, newToken } from "#shared/protocol/identifiers.ts";
import { challengePath } from "#shared/protocol/pairing.ts";
import {
  machineSubject,
  placedPattern,
  placedSubject,
  presencePattern,
  replyPattern,
  rollcallSubject,
} from "#shared/protocol/subjects.ts";
import type { Pairing } from "#shared/site/pairing-file.ts";
import { pinnedCertificate } from "#shared/site/reach-site.ts";
import { type GatewayConfig, gatewayConfig } from "../../gateway/config.ts";
import { codeOf } from "../terminal/command-line.ts";
import { notedUrl } from "../site/find-gateway.ts";
import { patienceMs } from "../site/with-key-store.ts";
import { lookAtPrices } from "./price-check.ts";
import { folderCheck, natsChecks, settingsCheck } from "./host-checks.ts";
import {
  type Check,
  failed,
  type Finding,
  findingOf,
  type DoctorContext,
  ok,
  sentence,
  skipped,
  tryTo,
  warning,
} from "./run-checks.ts";
import { certificateDaysMin, daysUntil, wayChecks } from "./way-checks.ts";

/** The host of a gateway. Where no site here has a public URL, that of its agent's pairing is looked at. */
type SiteContext = DoctorContext & { readonly paired?: Pairing | undefined };

/** Returns the checks of a site on one of its gateway's hosts. They hold its store open. */
export async function siteChecks(
  looker: SiteContext,
): Promise<AsyncDisposable & { readonly checks: readonly Check[] }> {
  const { environment, clock } = looker;
  const settings = settingsCheck(looker, gatewayConfig);
  const config = tryTo(() => gatewayConfig(environment));
  if (config === undefined) return { checks: [settings], [Symbol.asyncDispose]: async () => undefined };
  const store = await openStore(config, clock);
  const isOnRedis = config.redisUrl !== undefined;
  return {
    checks: [
      settings,
      ...(isOnRedis ? [] : [folderCheck(resolve(config.stateDir))]),
      { name: "store", look: () => lookAtStore(store, clock) },
      ...natsChecks({ config, clock, subjects: subjectsOf(clock), dispensable: { [placedPattern]: alone } }),
      { name: "records", needs: ["store"], look: () => lookAtRecords(store) },
      { name: "prices", needs: ["store"], look: () => lookAtPrices(store.opened, clock) },
      { name: "port", look: (signal) => lookAtPort(config, { environment, signal }) },
      { name: "certificate file", look: async () => lookAtCertificate(config, clock) },
      { name: "proxies", look: async () => judgeProxies(config) },
      ...(await publicWay(config, store, looker)),
      { name: "machines", needs: ["store"], look: () => lookAtMachines(store, clock) },
    ],
    [Symbol.asyncDispose]: async () => store.opened?.keys.close(),
  };
}

/** The store as it was opened, or the reason why it was not. */
interface Store {
  readonly opened?: OpenedKeyStore;
  readonly problem?: unknown;
  readonly doubts: readonly string[];
  /** The file of an embedded store that nothing has made yet. */
  readonly missing?: string;
}

async function openStore(config: GatewayConfig, clock: Clock): Promise<Store> {
  const file = join(resolve(config.stateDir), stateFileName);
  if (config.redisUrl === undefined && !existsSync(file)) return { missing: file, doubts: [] };
  const doubts: string[] = [];
  const log = { info: () => undefined, warn: (...said: unknown[]) => void doubts.push(String(said.at(-1))) };
  try {
    return { opened: await openKeyStore(config, { clock, log, patienceMs }), doubts };
  } catch (problem) {
    return { problem, doubts };
  }
}

async function lookAtStore({ opened, problem, doubts, missing }: Store, clock: Clock): Promise<Finding> {
  if (missing !== undefined) return skipped(`There is no store yet (${missing}); the first start makes it.`);
  if (opened === undefined) return findingOf(problem);
  const beganMs = clock.now();
  await opened.keys.ready();
  if (opened.state.kind === "sqlite") opened.state.database.change("try a change", () => undefined);
  const told = `The store in ${opened.place} answers in ${Math.round(clock.now() - beganMs)} ms`;
  const [doubt] = doubts;
  if (doubt !== undefined) {
    const [finding = doubt, remedy = "See infra/redis.conf"] = doubt.split(": ");
    return warning(`${told}; ${finding}.`, sentence(remedy));
  }
  const { fault } = opened.clock;
  if (fault !== undefined) return warning(`${told}; ${fault}.`, "Set the clocks of both hosts by NTP.");
  return ok(`${told}.`);
}

async function lookAtRecords({ opened }: Store): Promise<Finding> {
  if (opened === undefined) return skipped("There is no store.");
  const { keys, sessions, machines, routes, keeps, prices, teams, people } = opened;
  const trail = { list: (unread: UnreadRecord[]) => readTrail(opened, { entriesMax: auditEntriesMax }, unread) };
  const unread: string[] = [];
  const lists = {
    key: keys,
    session: sessions,
    machine: machines,
    route: routes,
    keep: keeps,
    price: prices,
    team: teams,
    person: people,
    trail,
  };
  for (const [noun, store] of Object.entries(lists)) {
    const found: UnreadRecord[] = [];
    await store.list(found);
    unread.push(...found.map(({ name }) => `${noun} ${name}`));
  }
  if (unread.length === 0) return ok("This version reads all records of the store.");
  const named = unread.slice(0, unreadNamedMax).join(", ");
  const more = unread.length > unreadNamedMax ? ` and ${unread.length - unreadNamedMax} more` : "";
  return warning(
    `This version cannot read ${named}${more}, and leaves it out of lists.`,
    "Run the newest version of the site here, or revoke and remove these records with it.",
  );
}

const unreadNamedMax = 20;

function subjectsOf(clock: Clock) {
  const target = { machine: "doctor", epoch: newEpoch(clock.wall()) };
  return {
    subscribe: [presencePattern, replyPattern(newToken()), placedPattern],
    publish: [rollcallSubject, machineSubject(target, "control"), placedSubject(newToken())],
  };
}

/** The lack of a gateway that cannot share placements. */
const alone = "gateways choose machines without each other's jobs";

const readyz = z.object({ ready: z.boolean(), reasons: z.array(z.string()) });

/**
 * Looks at who uses the public port: this site's gateway, another program, or nobody. Without a configured port it is
 * that of the `trunkline up` that runs on the state folder.
 */
async function lookAtPort(
  { host, port, tlsCert, stateDir }: GatewayConfig,
  { environment, signal }: Pick<DoctorContext, "environment"> & { readonly signal: AbortSignal },
): Promise<Finding> {
  const noted = environment["TRUNKLINE_PORT"] ? undefined : notedUrl(stateDir, "baseUrl");
  const reached = host === "0.0.0.0" || host === "::" ? "127.0.0.1" : host.includes(":") ? `[${host}]` : host;
  const url = new URL(noted ?? `${tlsCert === undefined ? "http" : "https"}://${reached}:${port}`);
  const at = noted === undefined ? `${host}:${port}` : url.host;
  try {
    const { server, body } = await getLocal(new URL("/readyz", url), signal);
    const told = readyz.safeParse(jsonIn(body));
    if (!told.success) {
      return failed(
        `Another program uses port ${at}${server === undefined ? "" : ` (${onOneLine(server)})`}.`,
        "Stop it, or set TRUNKLINE_PORT to another port.",
      );
    }
    const reasons = told.data.reasons.map(onOneLine).join("; ");
    if (!told.data.ready) return failed(`The gateway on ${at} is not ready: ${reasons}.`, "Mend what it names.");
    if (reasons !== "")
      return warning(`The gateway on ${at} serves, with a problem: ${reasons}.`, "Mend what it names.");
    return ok(`The gateway on ${at} is ready.`);
  } catch (error) {
    const code = codeOf(error);
    if (code === "ECONNREFUSED") {
      if (noted === undefined) return skipped(`Port ${at} is free: no gateway runs here.`);
      return failed(`Nothing listens at ${at}, where a \`trunkline up\` of this folder was killed.`, "Start it again.");
    }
    return failed(
      `Port ${at} does not answer as a gateway (${code}).`,
      "See what listens there, or set TRUNKLINE_PORT to another port.",
    );
  }
}

const answerBytesMax = 64 * 1024;

/** Asks a port of this host. Its certificate is for other names, and nothing secret is asked. */
function getLocal(
  url: URL,
  signal: AbortSignal,
): Promise<{ readonly server: string | undefined; readonly body: string }> {
  const { request } = url.protocol === "https:" ? https : http;
  return new Promise((answer, reject) => {
    const asking = request(url, { signal, rejectUnauthorized: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (text: string) => (body = (body + text).slice(0, answerBytesMax)));
      response.once("end", () => answer({ server: response.headers["server"]?.toString(), body }));
      response.once("error", reject);
    });
    asking.once("error", reject).end();
  });
}

function lookAtCertificate({ tlsCert, tlsKey, publicUrl }: GatewayConfig, clock: Clock): Finding {
  if (tlsCert === undefined || tlsKey === undefined) {
    return skipped(
      "TRUNKLINE_TLS_CERT is not set: the gateway speaks HTTP, for this host and for a proxy that ends TLS.",
    );
  }
  const certificate = new X509Certificate(readFileSync(tlsCert));
  const days = daysUntil(certificate.validTo, clock);
  const remedy = "Put a new certificate into TRUNKLINE_TLS_CERT and TRUNKLINE_TLS_KEY, and restart the gateway.";
  if (!certificate.checkPrivateKey(createPrivateKey(readFileSync(tlsKey)))) {
    return failed(`${tlsKey} is not the key of ${tlsCert}.`, remedy);
  }
  if (days < 0) return failed(`${tlsCert} expired ${-days} days ago.`, remedy);
  const host = publicUrl === undefined ? undefined : new URL(publicUrl).hostname;
  const isFor = (name: string): boolean =>
    (certificate.checkHost(name) ?? certificate.checkIP(name.replace(/^\[|\]$/g, ""))) !== undefined;
  if (host !== undefined && !isFor(host)) {
    return failed(`${tlsCert} is not for ${host} (${certificate.subjectAltName ?? "no names"}).`, remedy);
  }
  const told = `${tlsCert} is valid for ${days} days.`;
  return days < certificateDaysMin ? warning(told, remedy) : ok(told);
}

/** Judges whether the gateway learns the addresses of clients behind its proxy, and from nobody else. */
export function judgeProxies(config: Pick<GatewayConfig, "publicUrl" | "tlsCert" | "trustedProxies">): Finding {
  const { publicUrl, tlsCert, trustedProxies } = config;
  const wide = trustedProxies.find((network) => network.endsWith("/0"));
  if (wide !== undefined) {
    return failed(
      `TRUNKLINE_TRUSTED_PROXIES trusts everybody (${wide}): each client may claim any address.`,
      "Name the addresses of the proxies alone.",
    );
  }
  if (trustedProxies.length > 0) return ok(`The addresses of clients are believed from ${trustedProxies.join(", ")}.`);
  if (publicUrl?.startsWith("https:") && tlsCert === undefined) {
    return warning(
      `A proxy ends the TLS of ${publicUrl}, and the gateway does not believe it: all clients have one address, so that limits on addresses hit all at once.`,
      "Set TRUNKLINE_TRUSTED_PROXIES to the proxy's address (127.0.0.1 for one on this host).",
    );
  }
  return ok("No proxy is expected in front of the gateway.");
}

/** Returns the checks of the public URL, as machines and clients meet it. */
async function publicWay(config: GatewayConfig, { opened }: Store, looker: SiteContext): Promise<readonly Check[]> {
  const noted = await opened?.machines.site().catch(() => undefined);
  const origin = config.publicUrl ?? noted?.publicUrl;
  if (origin === undefined && looker.paired !== undefined) return wayChecks({ ...looker.paired, ...looker });
  if (origin === undefined) {
    const finding = skipped("The site has no public URL; `trunkline up --public https://…` gives it one.");
    return [{ name: "public url", look: async () => finding }];
  }
  const { environment } = looker;
  const sha256 = noted?.certificateSha256;
  const pin = sha256 === undefined ? undefined : { path: challengePath, sha256 };
  try {
    const certificate = pin && (await pinnedCertificate({ origin, environment }, pin));
    return wayChecks({ origin, certificate, site: noted?.id, ...looker });
  } catch (error) {
    return [{ name: "certificate", look: async () => findingOf(error) }];
  }
}

/** Gateways note every 10 seconds when they heard a machine. */
const awayMs = 30_000;

async function lookAtMachines({ opened }: Store, clock: Clock): Promise<Finding> {
  if (opened === undefined) return skipped("There is no store.");
  const nowMs = clock.wall();
  const [records, lastSeen] = await Promise.all([opened.machines.list(), opened.machines.lastSeen()]);
  const inState = (state: string) => records.filter((record) => machineState(record, nowMs) === state);
  const [paired, cordoned] = [inState("paired"), inState("cordoned")];
  if (paired.length + cordoned.length === 0) {
    return ok("No machine is paired; `trunkline machines pair <name>` prints a line to paste on one.");
  }
  const away = paired.filter(({ publicKey = "" }) => nowMs - (lastSeen.get(publicKey)?.atMs ?? 0) > awayMs);
  const counted = `${paired.length} ${paired.length === 1 ? "machine is" : "machines are"} paired`;
  if (away.length > 0) {
    return warning(
      `${counted}; away for more than ${awayMs / 1_000} s: ${away.map(({ name }) => name).join(", ")}.`,
      "Run `trunkline doctor` on each of them, or `trunkline machines remove` those that are gone. If no gateway runs, start one.",
    );
  }
  if (cordoned.length > 0) {
    const reasons = cordoned.map(({ name, cordon }) => `${name} (${onOneLine(cordon?.reason ?? "")})`).join(", ");
    return warning(`${counted}; cordoned: ${reasons}.`, "`trunkline machines uncordon <name>` gives it jobs again.");
  }
  return ok(`${counted}, and each was heard within the last ${awayMs / 1_000} s.`);
}
