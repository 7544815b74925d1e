import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pass } from "node:timers/promises";
import type { FoundServers } from "../../harness/found-servers.ts";
import { BalancedFleet } from "../../harness/load/balanced-fleet.ts";
import { startNatsServer } from "../../harness/nats-server.ts";
import { startRedisServer } from "../../harness/redis-server.ts";
import { TcpProxy } from "../../harness/tcp-proxy.ts";
import type { TrunklineProcess } from "../../harness/trunkline-process.ts";
import type { RandomFault } from "./random-fault.ts";

const gatewayCount = 2;
export const gateways = ["gateway-0", "gateway-1"] as const;
export const machines = ["attic", "cellar", "desk", "loft"] as const;
const offered = Object.fromEntries(machines.map((machine) => [machine, ["scripted", "scripted:plain"]]));

interface Halted {
  kill(): Promise<void>;
  freeze(): Promise<void>;
  thaw(): Promise<void>;
}

/** A fleet whose every process and line can be made to fail, and heals again when that is over. */
export class SoakedFleet implements AsyncDisposable {
  readonly fleet: BalancedFleet;
  readonly #lines: ReadonlyMap<string, TcpProxy>;
  readonly #parts: AsyncDisposableStack;

  private constructor(fleet: BalancedFleet, lines: ReadonlyMap<string, TcpProxy>, parts: AsyncDisposableStack) {
    this.fleet = fleet;
    this.#lines = lines;
    this.#parts = parts;
  }

  static async start(found?: FoundServers): Promise<SoakedFleet> {
    const parts = new AsyncDisposableStack();
    try {
      const nats = parts.use(await startNatsServer({ ...(found && { found: found.nats }) }));
      // One that lost its keys with a kill would refuse everybody for good, as it must.
      const redis = parts.use(await startRedisServer({ persistent: true, ...(found && { found: found.redis }) }));
      const lines = new Map<string, TcpProxy>();
      for (const name of [...gateways, ...machines]) lines.set(name, parts.use(await TcpProxy.before(nats.url)));
      const natsUrl = ({ name }: { readonly name: string }): string => `nats://127.0.0.1:${lines.get(name)?.port}`;
      // A machine that is killed keeps its proofs, since it is never idle again in which to prove them anew.
      const stateDir = await mkdtemp(join(tmpdir(), "trunkline-soak-"));
      parts.defer(() => rm(stateDir, { recursive: true }));
      const servers = { nats, redis, natsUrl, ...(found && { found }) };
      const wish = { ...servers, stateDir, gateways: gatewayCount, machines: offered };
      const fleet = parts.use(await BalancedFleet.start(wish));
      await fleet.untilProved();
      return new SoakedFleet(fleet, lines, parts);
    } catch (error) {
      await parts.disposeAsync();
      throw error;
    }
  }

  /** Resolves when it is over, and what was killed is back. */
  async suffer(fault: RandomFault): Promise<void> {
    switch (fault.kind) {
      case "kill":
        await this.#halted(fault.whom).kill();
        await pass(fault.forMs);
        await this.#startAgain(fault.whom);
        break;
      case "freeze": {
        const halted = this.#halted(fault.whom);
        await halted.freeze();
        await pass(fault.forMs);
        await halted.thaw();
        break;
      }
      case "cut":
        this.#line(fault.whom).cut();
        break;
      case "hold":
        this.#line(fault.whom).hold(fault.direction);
        await pass(fault.forMs);
        this.#line(fault.whom).release();
        break;
      case "delay":
        this.#line(fault.whom).latencyMs = fault.latencyMs;
        await pass(fault.forMs);
        this.#line(fault.whom).latencyMs = 0;
    }
  }

  /** Starts again whatever has ended without being told to, and names it: nothing may. */
  async reviveFallen(): Promise<string[]> {
    const isFallen = (name: string): boolean => this.#process(name).ended;
    const fallen = [...gateways, ...machines].filter(isFallen);
    for (const name of fallen) await this.#startAgain(name);
    return fallen;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.disposeAsync();
  }

  #line(name: string): TcpProxy {
    const line = this.#lines.get(name);
    if (line === undefined) throw new Error(`there is no line of ${name}`);
    return line;
  }

  #halted(name: string): Halted {
    const { nats, redis } = this.fleet;
    if (name === "nats") return nats;
    return name === "redis" ? redis : this.#process(name);
  }

  #process(name: string): TrunklineProcess {
    const index = gateways.findIndex((gateway) => gateway === name);
    return this.fleet.gateways[index] ?? this.fleet.agent(name);
  }

  async #startAgain(name: string): Promise<void> {
    const { nats, redis } = this.fleet;
    const index = gateways.findIndex((gateway) => gateway === name);
    if (name === "nats") await nats.restart();
    else if (name === "redis") await redis.restart();
    else if (index >= 0) await this.fleet.startGateway(index);
    else await this.fleet.startAgent(name);
  }
}
