import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { findBinary } from "../find-binary.ts";
import { freePort } from "../free-port.ts";
import { OwnedChild } from "../owned-child.ts";
import { until } from "../until.ts";
import { infraFolder } from "./compose-file.ts";

const run = promisify(execFile);
/** `health_fails`, and statuses after `handle_errors`, are not known to earlier ones such as Debian 12's. */
const caddyNeeded = { major: 2, minor: 8 };
const startsWithinMs = 10_000;

/** The Caddy on the PATH, or why it cannot run the file of infra/. */
export async function findCaddy(): Promise<{ readonly binary: string } | { readonly reason: string }> {
  const binary = await findBinary("caddy");
  if (binary === undefined) return { reason: "there is no caddy on the PATH" };
  const { stdout: told } = await run(binary, ["version"]);
  const [, major, minor] = /^v?(\d+)\.(\d+)/.exec(told) ?? [];
  const isNewEnough =
    Number(major) > caddyNeeded.major || (Number(major) === caddyNeeded.major && Number(minor) >= caddyNeeded.minor);
  // A build that does not tell its version is tried.
  if (major === undefined || isNewEnough) return { binary };
  return {
    reason: `it needs Caddy ${caddyNeeded.major}.${caddyNeeded.minor} or newer, and the one on the PATH is ${told.trim()}`,
  };
}

/** The proxy of infra/ with its configuration as it is. */
export interface Proxy extends AsyncDisposable {
  readonly url: string;
  /** Has it read its configuration anew, as an operator does after a change. */
  reload(): Promise<void>;
}

/** Starts the proxy in front of these gateways, and comes back when it answers. */
export async function startProxy(binary: string, gateways: readonly { readonly baseUrl: string }[]): Promise<Proxy> {
  const url = `http://127.0.0.1:${await freePort()}`;
  const addresses = gateways.map(({ baseUrl }) => new URL(baseUrl).host);
  const admin = `127.0.0.1:${await freePort()}`;
  const environment = { SITE_ADDRESS: url, GATEWAYS: addresses.join(" "), CADDY_ADMIN: admin, HOME: "." };
  const config = ["--adapter", "caddyfile", "--config", join(infraFolder, "proxy/Caddyfile")];
  const child = await OwnedChild.start({ binary, args: ["run", ...config], environment });
  const answers = async (): Promise<boolean> => (await fetch(`${url}/healthz`)).status === 200;
  try {
    await until(answers, { what: "the proxy to answer", timeoutMs: startsWithinMs });
  } catch (error) {
    const said = await child.stderr();
    await child[Symbol.asyncDispose]();
    throw new Error(`${String(error)}; it said:\n${said}`, { cause: error });
  }
  return {
    url,
    reload: async () => {
      await run(binary, ["reload", "--force", "--address", admin, ...config], { env: environment, cwd: child.folder });
    },
    [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
  };
}
