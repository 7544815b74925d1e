import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { readNatsUrl } from "#shared/broker/nats-security.ts";
import type { SiteStatus } from "#shared/admin/site-operations.ts";
import { isoTime } from "#shared/process/clock.ts";
import type { SessionRole } from "#shared/records/session-record.ts";
import { lastBackup } from "#shared/store/last-backup.ts";
import type { OpenedKeyStore } from "#shared/store/open-key-store.ts";
import type { GatewayConfig } from "../config.ts";
import type { Certificate } from "../http/listen.ts";
import type { PlacementSharing } from "../routing/share-placements.ts";
import type { PlacedLoads } from "../routing/placed-loads.ts";
import type { Readiness } from "./health-and-metrics.ts";

export interface SiteParts {
  readonly config: Pick<GatewayConfig, "natsUrl" | "natsCa" | "natsCert" | "traceUrl" | "shownSettings">;
  readonly store: Pick<OpenedKeyStore, "keys" | "state" | "place">;
  /** The token of this boot of this gateway. */
  readonly gateway: string;
  readonly loads: Pick<PlacedLoads, "jobsOf">;
  readonly sharing: Pick<PlacementSharing, "remark"> | undefined;
  readonly check: () => Promise<Readiness>;
  readonly publicTls: Certificate | undefined;
  readonly tls: Certificate | undefined;
}

/** Shows operators the gateways of the site, and how this one is configured. A viewer sees no settings. */
export async function viewSite(role: SessionRole, parts: SiteParts): Promise<SiteStatus> {
  const { config, store, gateway, loads, sharing, check } = parts;
  const [gateways, backedUpAt, { reasons }] = await Promise.all([
    store.keys.gateways(),
    lastBackup(store.state),
    check(),
  ]);
  const hearsOthers = sharing !== undefined && sharing.remark === undefined;
  return {
    gateways: gateways.map(({ name, version, token, startedAt }) => ({
      name,
      version,
      is_this: token === gateway,
      started_at: startedAt === undefined ? null : isoTime(startedAt),
      running: token === gateway ? loads.jobsOf() : hearsOthers ? loads.jobsOf(token) : null,
    })),
    store: store.place,
    broker: config.natsUrl === undefined ? "in this process" : readNatsUrl(config.natsUrl).servers.join(", "),
    problems: [...reasons],
    certificates: certificatesOf(parts),
    backed_up_at: backedUpAt === undefined ? null : isoTime(backedUpAt),
    trace_url: config.traceUrl ?? null,
    settings: role === "viewer" ? null : [...config.shownSettings],
  };
}

/** Returns the certificates that this gateway has. */
export function certificatesOf({ config, publicTls, tls }: Pick<SiteParts, "config" | "publicTls" | "tls">) {
  return [
    ...certificateOf("TRUNKLINE_TLS_CERT", publicTls?.cert),
    ...certificateOf("TRUNKLINE_OPERATIONS_TLS_CERT", tls?.cert),
    ...certificateOf("TRUNKLINE_NATS_CERT", config.natsCert),
    ...certificateOf("TRUNKLINE_NATS_CA", config.natsCa),
  ];
}

/** Returns the certificate in PEM form, or in a file of this name. Empty for one that cannot be read. */
function certificateOf(setting: string, source: Buffer | string | undefined): SiteStatus["certificates"] {
  if (source === undefined) return [];
  try {
    const pem = typeof source === "string" ? readFileSync(source) : source;
    const { subject, subjectAltName = subject, validTo } = new X509Certificate(pem);
    const names = subjectAltName.replaceAll(/DNS:|IP Address:|CN=/g, "");
    return [{ setting, names, expires_at: new Date(validTo).toISOString() }];
  } catch {
    return [];
  }
}
