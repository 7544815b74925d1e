/** The site and its troubles, in words. Pure. */
import type { SiteStatus } from "#shared/admin/site-operations.ts";
import type { machineTones } from "#shared/fleet/fleet-words.ts";
import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import { findTroubles as machineTroubles } from "./machine-words.ts";
import { sizeText, spanText } from "./quantity.ts";

/** A trouble, as a sentence that begins with its subject. The subject leads to a page. */
export interface SiteTrouble {
  readonly tone: (typeof machineTones)[keyof typeof machineTones];
  readonly subject: string;
  readonly path: readonly string[];
  readonly query?: Readonly<Record<string, string>>;
  readonly text: string;
}

interface Heard {
  readonly machines: readonly ShownFleetMachine[];
  /** Undefined until the gateway has answered. */
  readonly status: SiteStatus | undefined;
  /** The latest failures. */
  readonly failures: readonly ShownRequest[];
  readonly nowMs: number;
}

const soonMs = 14 * 86_400_000;
const failingForMs = 15 * 60_000;
const failuresMin = 3;
const diskFreeMbMin = 2_000;

export function isEndingSoon(expiresAt: string, nowMs: number): boolean {
  return Date.parse(expiresAt) - nowMs < soonMs;
}

/** Returns what is wrong and was not asked for by an operator, the worst first. */
export function findTroubles({ machines, status, failures, nowMs }: Heard): SiteTrouble[] {
  const { gateways = [], certificates = [], problems = [] } = status ?? {};
  const atSite = { path: ["site"] };
  const versions = [...new Set(gateways.map(({ version }) => version))];
  const troubles: SiteTrouble[] = [
    ...problems.map((text): SiteTrouble => ({
      tone: "bad",
      subject: "This gateway",
      ...atSite,
      text: `reports: ${text}.`,
    })),
    ...machineTroubles(machines).map((each) => ({ ...each, subject: each.machine, path: ["machines", each.machine] })),
    ...machines.flatMap(fullDisk),
    ...failingModels(failures.filter(({ at, total_ms: ms }) => Date.parse(at) + ms > nowMs - failingForMs)),
    ...certificates.flatMap(({ setting, expires_at: at }): SiteTrouble[] => {
      const leftMs = Date.parse(at) - nowMs;
      const ends = leftMs > 0 ? `ends in ${spanText(leftMs)}` : "has expired";
      const text = `${ends}. Renew its file and restart the gateway.`;
      return leftMs < soonMs ? [{ tone: leftMs > 0 ? "warn" : "bad", subject: setting, ...atSite, text }] : [];
    }),
  ];
  if (versions.length > 1) {
    const text = `run different versions (${versions.join(", ")}). Update the older ones.`;
    troubles.push({ tone: "warn", subject: "Gateways", ...atSite, text });
  }
  return troubles.toSorted((one, other) => Number(other.tone === "bad") - Number(one.tone === "bad"));
}

function fullDisk({ machine: subject, memory }: ShownFleetMachine): SiteTrouble[] {
  const diskMb = memory?.disk_free_mb ?? Infinity;
  if (diskMb >= diskFreeMbMin) return [];
  const text = `has ${sizeText(diskMb)} of disk left for models. Remove models that nobody needs.`;
  return [{ tone: "warn", subject, path: ["machines", subject], text }];
}

/** A model fails if several requests for it did, by no doing of their clients. */
function failingModels(failures: readonly ShownRequest[]): SiteTrouble[] {
  const byModel = Map.groupBy(failures, ({ model, status }) => (status >= 500 ? model : null));
  return [...byModel].flatMap(([model, failed]) => {
    if (model === null || failed.length < failuresMin) return [];
    const text = `failed ${failed.length} times in the last 15 minutes, at last with ${failed[0]?.code}.`;
    return [{ tone: "bad", subject: model, path: ["requests"], query: { outcome: "failed", model }, text } as const];
  });
}

/** Returns the site in one line. */
export function siteText({ machines, status, nowMs }: Omit<Heard, "failures">, models: number | undefined): string {
  const { gateways = [], certificates = [] } = status ?? {};
  const working = machines.filter((each) => each.takes_work).length;
  const ends = certificates.map(({ expires_at: at }) => Date.parse(at));
  const versions = [...new Set(gateways.map(({ version }) => version))];
  return [
    gateways.length > 0 && countOf(gateways.length, "gateway"),
    `${countOf(machines.length, "machine")}${working === machines.length ? "" : `, ${working} ready`}`,
    models !== undefined && countOf(models, "model"),
    versions.length === 1 && `version ${versions[0]}`,
    ends.length > 0 && `certificate good for ${spanText(Math.min(...ends) - nowMs)}`,
  ]
    .filter(Boolean)
    .join(" · ");
}

function countOf(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
