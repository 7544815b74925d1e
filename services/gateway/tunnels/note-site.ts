import { createHash } from "node:crypto";
import { once } from "node:events";
import { isIP } from "node:net";
import { checkServerIdentity, connect } from "node:tls";
import type { MachineStore } from "#shared/machines/machine-record.ts";

interface SiteMeans {
  readonly machines: Pick<MachineStore, "noteSite">;
  /** The URL by which machines on other hosts reach the site. */
  readonly publicUrl: string | undefined;
  /** The URL of the public port on this host. */
  readonly here: URL;
  /** True if other gateways share the store. */
  readonly isShared: boolean;
  /** True if proxies stand in front, whose certificate machines see in place of this gateway's. */
  readonly isProxied: boolean;
  /** False if this gateway cannot connect paired machines to the broker. */
  readonly takesMachines: boolean;
}

/**
 * Notes in the store how machines reach the site, for the lines that pair them. A site of one process without a public
 * URL is reached from its own host.
 */
export async function noteSite(means: SiteMeans): Promise<void> {
  const { machines, publicUrl, here, isShared, isProxied, takesMachines } = means;
  if (publicUrl === undefined && isShared) return;
  const url = publicUrl ?? here.origin;
  const isPinned = here.protocol === "https:" && !isProxied;
  const certificateSha256 = isPinned ? await certificatePin(here, new URL(url).hostname) : undefined;
  const pin = certificateSha256 === undefined ? {} : { certificateSha256 };
  await machines.noteSite({ publicUrl: url, ...pin, ...(!takesMachines && { takesMachines }) });
}

/** Returns the SHA-256 of a server's certificate, unless it is good for this name by the authorities that Node knows. */
async function certificatePin({ hostname: host, port }: URL, nameInUrl: string): Promise<string | undefined> {
  const name = nameInUrl.replace(/^\[|\]$/g, "");
  const socket = connect({
    host: host.replace(/^\[|\]$/g, ""),
    port: Number(port || 443),
    ...(isIP(name) === 0 && { servername: name }),
    // The judgement is read from `authorized`.
    rejectUnauthorized: false,
    checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
  });
  try {
    await once(socket, "secureConnect");
    const raw = socket.getPeerX509Certificate()?.raw;
    if (socket.authorized || raw === undefined) return undefined;
    return createHash("sha256").update(raw).digest("base64url");
  } finally {
    socket.destroy();
  }
}
