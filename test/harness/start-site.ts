import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { z } from "zod";
import type { Endpoint } from "./endpoint.ts";
import { freePort } from "./free-port.ts";
import { anywhere, demonstration, startUp, type UpProcess } from "./start-trunkline.ts";
import { TcpProxy } from "./tcp-proxy.ts";
import { trunkline, type Settings } from "./trunkline-command.ts";
import { TrunklineProcess } from "./trunkline-process.ts";

const printedLine = z.looseObject({ join: z.string() });

/**
 * A site of one process without NATS and Redis, `trunkline up --public`, and machines that joined it, each a process with
 * a state folder of its own. All of them reach the site through one stretch of network, which can be made bad; clients
 * are on the site's own host.
 */
export class Site implements AsyncDisposable {
  readonly proxy: TcpProxy;
  readonly stateDir: string;
  up: UpProcess;
  readonly #settings: Settings;
  readonly #machines: TrunklineProcess[] = [];

  private constructor(parts: { proxy: TcpProxy; stateDir: string; up: UpProcess; settings: Settings }) {
    this.proxy = parts.proxy;
    this.stateDir = parts.stateDir;
    this.up = parts.up;
    this.#settings = parts.settings;
  }

  static async start(env: Settings = {}): Promise<Site> {
    const stateDir = await mkdtemp(join(tmpdir(), "trunkline-site-"));
    const port = await freePort();
    const proxy = await TcpProxy.before(`http://127.0.0.1:${port}`);
    const settings = {
      TRUNKLINE_PORT: String(port),
      TRUNKLINE_PUBLIC_URL: `${env["TRUNKLINE_TLS_CERT"] === undefined ? "http" : "https"}://127.0.0.1:${proxy.port}`,
      TRUNKLINE_STATE_DIR: stateDir,
      TRUNKLINE_MACHINE: "server",
      TRUNKLINE_SCRIPTED_MODELS: "scripted:plain",
      ...env,
    };
    return new Site({ proxy, stateDir, up: await startUp(settings), settings });
  }

  get endpoint(): Endpoint {
    return this.up.endpoint;
  }

  /** Makes the line that pairs a machine, as its operator does on the site's host. */
  async joinLine(machine: string): Promise<string> {
    const here = { TRUNKLINE_STATE_DIR: this.stateDir, TRUNKLINE_OPERATIONS_URL: this.up.operationsUrl };
    const { exitCode, stdout, stderr } = await trunkline(["machines", "pair", machine, "--json"], here);
    if (exitCode !== 0) throw new Error(`machines pair ended with ${exitCode}: ${stderr}`);
    return printedLine.parse(JSON.parse(stdout)).join;
  }

  /** Starts an agent, with the line that it joins by if there is one. */
  async startAgent(args: readonly string[], env: Settings): Promise<TrunklineProcess> {
    const settings = { ...anywhere, ...demonstration, ...env };
    const agent = await TrunklineProcess.start({ args: ["agent", ...args], settings });
    this.#machines.push(agent);
    return agent;
  }

  /** Starts the site again after its process has ended, on the same port and with the same state. */
  async restart(): Promise<void> {
    await this.up[Symbol.asyncDispose]();
    this.up = await startUp(this.#settings);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const machine of this.#machines) await machine[Symbol.asyncDispose]();
    await this.up[Symbol.asyncDispose]();
    await this.proxy[Symbol.asyncDispose]();
    await rm(this.stateDir, { recursive: true });
  }
}
