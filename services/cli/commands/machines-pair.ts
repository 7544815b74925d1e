import { once } from "node:events";
import { isIP } from "node:net";
import { connect } from "node:tls";
import { Option } from "commander";
import { z } from "zod";
import { unknownAuthority } from "#shared/broker/nats-security.ts";
import { replicatedIn } from "#shared/records/change-key.ts";
import { machineNameUsed } from "#shared/records/change-machine.ts";
import { joinCommand, joinTtlMsMax, machineCommand, makeJoin } from "#shared/records/join-machine.ts";
import { formatDuration, fromNow } from "#shared/process/quantities.ts";
import { duration } from "#shared/records/shown-key.ts";
import { readConfig } from "#shared/process/config.ts";
import { onOlderNode } from "#shared/protocol/older-node.ts";
import { isLoopback, type JoinLine, joinLineText, publicOrigin } from "#shared/protocol/pairing.ts";
import { packagePath } from "#shared/protocol/site-package.ts";
import { type CliCommand, type JsonOption, readBy, type CliContext } from "../terminal/command-line.ts";
import { machineArgument, modelsOption, patternsHelp } from "./machines-change.ts";
import { utcTime } from "../terminal/quantity-text.ts";
import { replicationLine, withKeyStore } from "../site/with-key-store.ts";

interface Options extends JsonOption {
  readonly models?: readonly string[];
  readonly external?: true;
  readonly ttl: number;
}

const ttlText = formatDuration(joinTtlMsMax);
const joinTtl = duration.refine((ms) => ms <= joinTtlMsMax, `must be at most ${ttlText}`);
const siteSettings = z.object({ publicUrl: publicOrigin.optional() });

export interface PairContext extends CliContext {
  /** Returns true if no authority that Node knows signed the certificate of a site. */
  readonly isPrivatelySigned?: (origin: string) => Promise<boolean>;
}

export function addPair(machines: CliCommand, context: PairContext): void {
  const { stdout, stderr, environment, isPrivatelySigned = hasUnknownAuthority } = context;
  const ttl = new Option("--ttl <duration>", `how long the line is good, at most ${ttlText}`);
  machines
    .sub("pair", "print the line to paste on a machine that is to join this site", machineArgument())
    .addOption(modelsOption())
    .option("--external", "its models run elsewhere: only routes that say so lead there")
    .addOption(ttl.argParser(readBy(joinTtl)).default(joinTtlMsMax, ttlText))
    .json()
    .more(`
The line is good once, and a secret until it was used; a new one takes the place of one that was not used. The machine
needs no open port and no password. The site's URL is TRUNKLINE_PUBLIC_URL, or the one that its gateways were started
with (--public).
${patternsHelp}

Examples:
  trunkline machines pair attic
  trunkline machines pair attic --models 'llama*,qwen*' --ttl 5m
  trunkline machines pair cloud --external
  trunkline machines pair attic --json`)
    .action(async (name: string, { models, external, ttl: ttlMs, json }: Options) => {
      const { publicUrl } = readConfig(siteSettings, environment);
      await withKeyStore(context, { json }, async (store) => {
        if (await store.isNameUsed(name)) throw machineNameUsed(name);
        const { line, expiresAt, changed } = await makeJoin({ name, ttlMs, publicUrl, models, external }, store);
        const command = joinCommand(line);
        const told = { join: joinLineText(line), name, expires_at: new Date(expiresAt).toISOString(), command };
        stdout.write(`${json ? JSON.stringify(told) : command}\n`);
        stderr.write(replicationLine(replicatedIn(changed)));
        if (json) return;
        const until = `${utcTime(expiresAt)}, ${fromNow(expiresAt, store.clock.wall())}`;
        stderr.write(`\nPaste this line on the machine. It pairs ${name}, once, until ${until}.\n${remark(line)}`);
        const isPinned = line.certificateSha256 !== undefined;
        if (!isPinned && (await isPrivatelySigned(line.origin))) stderr.write(privatelySigned);
        const install = `${machineCommand(line)} agent install`;
        stderr.write(`Then make its agent a service that survives reboots: ${install}
Where the machine's Node is older than 22.19, these lines take their places. They fetch Node 24 too:
  ${onOlderNode(command)}
  ${onOlderNode(install)}
`);
      });
    });
}

const privatelySigned = `A private authority signed the site's certificate, and npx waits for minutes before it says so. First copy that authority's
certificate to the machine (Caddy's \`tls internal\` keeps it in pki/authorities/local/root.crt), and name it there:
  export NODE_EXTRA_CA_CERTS=$PWD/root.crt
`;

const lookWaitMs = 2_000;

/** Looks at the certificate of a site. Returns false where it cannot be seen from here. */
async function hasUnknownAuthority(origin: string): Promise<boolean> {
  const { protocol, hostname, port } = new URL(origin);
  if (protocol !== "https:") return false;
  const host = hostname.replace(/^\[|\]$/g, "");
  const name = isIP(host) === 0 ? { servername: host } : {};
  const socket = connect({ host, port: Number(port || 443), ...name, rejectUnauthorized: false });
  try {
    await once(socket, "secureConnect", { signal: AbortSignal.timeout(lookWaitMs) });
    return unknownAuthority.has(String(socket.authorizationError));
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Says what is special about the way to the site. */
function remark({ origin, certificateSha256 }: JoinLine): string {
  if (certificateSha256 !== undefined) {
    return (
      "No public authority signed the site's certificate, so npm could not verify a download from here. Fetch the package on\n" +
      `the site's own host, and copy it to the machine: curl --insecure --output agent.tgz ${origin}${packagePath}\n` +
      "The line names the certificate, and the agent trusts that one alone.\n"
    );
  }
  if (!isLoopback(new URL(origin).hostname)) return "";
  return `${origin} is this host only, for trying: start the site with --public https://… to pair other machines.\n`;
}
