import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MachineMinter } from "#shared/broker/nats-credentials.ts";
import { makeNatsSite, type NatsSite, type NatsSiteFile } from "#shared/broker/nats-site.ts";
import { systemClock } from "#shared/process/clock.ts";
import { foundServers } from "../found-servers.ts";
import type { NatsServerOptions } from "../nats-server.ts";
import { makeNatsCertificates } from "../self-signed.ts";
import type { Settings } from "../trunkline-command.ts";
import { startNatsAsConfigured, type ConfiguredNats } from "./configured-servers.ts";

export interface OperatorNats extends ConfiguredNats {
  /** The settings by which a gateway connects itself and the machines of its tunnels. */
  readonly gatewaySettings: Settings & { readonly TRUNKLINE_NATS_URL: string };
  /** The options by which a test connects as a gateway does. */
  readonly connection: {
    readonly url: string;
    readonly credentialsFile: string;
    readonly security: { readonly caFile: string };
  };
  readonly site: NatsSite;
  /** Makes users for machines, as a gateway with `machines.seed` does. */
  readonly minter: MachineMinter;
  /** The folder of the site's files. */
  readonly folder: string;
  /** The path of a file of the site. */
  file(name: NatsSiteFile): string;
}

/** NATS with the configuration of `trunkline nats init` word for word, and the certificate of this host. */
export async function startOperatorNats({
  extraConfig = "",
  found = foundServers().nats,
}: Pick<NatsServerOptions, "extraConfig" | "found"> = {}): Promise<OperatorNats> {
  const folder = await mkdtemp(join(tmpdir(), "trunkline-operator-"));
  const site = makeNatsSite(systemClock);
  const file = (name: NatsSiteFile): string => join(folder, name);
  for (const [name, text] of Object.entries(site.files)) await writeFile(join(folder, name), text);
  const certificates = await makeNatsCertificates();
  const variables = {
    NATS_TLS_CERT: certificates.certificateFile,
    NATS_TLS_KEY: certificates.keyFile,
    NATS_JWT_DIR: found.by === "docker" ? "/tmp/jwt" : join(folder, "jwt"),
  };
  const config = `${site.files["nats.conf"]}\n${extraConfig}\n`;
  const server = await startNatsAsConfigured({ config, variables, certificates, found });
  const minter = new MachineMinter({
    signingKey: site.files["machines.seed"].trim(),
    credentialsFile: file("gateway.creds"),
    clock: systemClock,
  });
  const connection = {
    url: server.url.replace("nats:", "tls:"),
    credentialsFile: file("gateway.creds"),
    security: { caFile: certificates.caFile },
  };
  const gatewaySettings = {
    TRUNKLINE_NATS_URL: connection.url,
    TRUNKLINE_NATS_CA: certificates.caFile,
    TRUNKLINE_NATS_CREDS: connection.credentialsFile,
    TRUNKLINE_NATS_SIGNING_KEY_FILE: file("machines.seed"),
  };
  const stop = async (): Promise<void> => {
    await server.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return { ...server, site, minter, folder, file, connection, gatewaySettings, stop, [Symbol.asyncDispose]: stop };
}
