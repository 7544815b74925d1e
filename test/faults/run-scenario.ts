import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { promisify } from "node:util";
import { expect } from "vitest";
import { limits } from "#shared/protocol/limits.ts";
import type { FakeVllm } from "../harness/fake-vllm.ts";
import { startFleet, type Fleet, type FleetWish, type Way } from "../harness/start-fleet.ts";
import { SeededRandom } from "../harness/seeded-random.ts";
import type { TcpProxy } from "../harness/tcp-proxy.ts";
import { until } from "../harness/until.ts";
import { LeftBehind } from "./left-behind.ts";
import { complaintsAbout } from "./oracle.ts";
import { startRuntime, type RuntimeWish } from "./runtime-of-mishaps.ts";
import type { Ask, Part, Phase, Scenario, LookResult, Step } from "./scenario.ts";
import { ScriptedRequest, type Script } from "./scripted-request.ts";

/** What a busy host adds to any time, however the wire's own times are scaled. */
const hostAddsMs = 750;
/** For a request to come to a phase: no promise, but the end of a test's patience. */
const patienceMs = 10_000;
const nothingLeftWithinMs = 10_000;
const healsWithinMs = 5_000;
/** What a busy host adds to a time that is promised as a real one: to most of many, and to the slowest of them. */
const noiseMs = 200;
/** Both ends of a tunnel take the other for lost so much later, as a time of the wire. */
const tunnelAddsMs = 1_300;
const slowestMs = 1_000;
/** For all that clients leave unread, and what the process itself comes to need. */
const memoryBytesMax = 128 * 1024 * 1024;
const failuresUntilLeftAlone = 5;

export interface Measured {
  /** From the first thing that befell until the last request was over. */
  readonly tookMs: number;
  readonly outcomes: readonly string[];
}

/** Plays one scenario on a fleet of its own and holds what comes of it against what must. */
export async function runScenario(scenario: Scenario, world: { seed: number; scale: number }): Promise<Measured> {
  const { rows, fleet: wish = {}, asks = [], steps = [] } = scenario;
  await using runtimes = await Runtimes.start(scenario.runtimes ?? {});
  await using fleet = await startFleet({
    ...wish,
    machines: runtimes.frontedBy(
      wish.machines ?? { attic: { models: ["scripted"] }, cellar: { models: ["scripted"] } },
    ),
    proxied: ["machines", ...(wish.proxied ?? [])],
    env: { TRUNKLINE_TIME_SCALE: String(world.scale), TRUNKLINE_LOG_LEVEL: "debug", ...wish.env },
    // The rows are about faults that no other machine makes good. Rows 88 to 91 are about those that one does.
    gatewayEnv: { TRUNKLINE_CONTINUE: "off", ...wish.gatewayEnv },
    redisKeeps: true,
  });
  await using left = await LeftBehind.of(fleet);
  await using play = new Play({ fleet, runtimes }, { ...world, name: `r${rows.join("-")}s${world.seed}` });
  await play.warmUp(scenario);
  await left.takeBaseline();

  await play.ask(asks);
  const begunMs = performance.now();
  for (const step of steps) await play.step(step);
  play.releaseAll();
  const outcomes = await play.outcomes(patienceMs + (scenario.endsWithinMs ?? 0));
  const tookMs = Math.max(begunMs, ...play.requests.map(({ endedAtMs = begunMs }) => endedAtMs)) - begunMs;

  for (const [name, outcome] of outcomes) {
    const allowed = scenario.outcomes?.[groupOf(name)] ?? ["answered"];
    expect([name, outcome], `the outcome of ${name}: one of ${allowed.join(", ")}`).toEqual([
      name,
      expect.toSatisfy((told: string) => allowed.some((each) => each === told)),
    ]);
  }
  if (scenario.endsWithinMs !== undefined) {
    const withinMs = scenario.endsWithinMs + (wish.tunnels === true ? tunnelAddsMs : 0);
    expect(tookMs, "the time until the last request was over").toBeLessThan(play.boundMs(withinMs));
  }
  if (scenario.endsWithinRealMs !== undefined) {
    expect(tookMs, "the time until the last request was over").toBeLessThan(scenario.endsWithinRealMs + hostAddsMs);
  }
  play.expectTimesAndHeaders(scenario);
  for (const { wish: asked, longestPauseMs } of play.requests) {
    if (scenario.pauseMsMax === undefined) continue;
    expect(longestPauseMs, `the longest pause of ${asked.nonce}`).toBeLessThan(play.boundMs(scenario.pauseMsMax));
  }
  for (const step of scenario.afterwards ?? []) await play.step(step);
  if (scenario.heals !== false) await play.untilHealed();
  await left.untilNothing(play.boundMs(nothingLeftWithinMs));
  expect(await play.complaints()).toEqual([]);
  return { tookMs, outcomes: [...new Set(outcomes.values())] };
}

/** A scenario under way: the one that knows which process, proxy and request its words mean. */
class Play implements AsyncDisposable {
  readonly requests: ScriptedRequest[] = [];
  readonly #fleet: Fleet;
  readonly #runtimes: Runtimes;
  readonly #name: string;
  readonly #scale: number;
  readonly #random: SeededRandom;
  readonly #named = new Map<string, ScriptedRequest>();
  readonly #asks = new Map<string, Ask>();
  #meant: string | undefined;
  #crowd: Socket[] = [];
  #memoryBytes = 0;
  #healings = 0;

  constructor(
    parts: { readonly fleet: Fleet; readonly runtimes: Runtimes },
    world: { readonly seed: number; readonly scale: number; readonly name: string },
  ) {
    this.#fleet = parts.fleet;
    this.#runtimes = parts.runtimes;
    this.#name = world.name;
    this.#scale = world.scale;
    this.#random = new SeededRandom(world.seed);
  }

  boundMs(wireMs: number): number {
    return wireMs * this.#scale + hostAddsMs;
  }

  /** Each machine through each gateway, so that what is made once is there before anything is counted. */
  async warmUp({ runtimes = {}, asks = [] }: Pick<Scenario, "runtimes" | "asks">): Promise<void> {
    // A thread is started for the first large body.
    const padding = Math.max(...asks.map((ask) => ask.padding ?? 0), 0);
    if (Object.values(runtimes).every(({ mishap }) => mishap === "well")) {
      await this.untilHealed(padding);
      // Requests at one time go to different machines, so that each machine starts its thread.
      if (padding > 0) await Promise.all(this.#fleet.machines.map(() => this.#short(0, padding)));
    } else await this.#see("the model is offered", patienceMs);
    this.#memoryBytes = await this.#memoryOfGateway();
  }

  expectTimesAndHeaders({ headers = {} }: Pick<Scenario, "headers">): void {
    for (const [name, request] of this.#named) {
      const firstMs = (request.firstTextAtMs ?? Number.NaN) - request.sentAtMs;
      const { tellsWithinMs, firstTextWithinMs } = this.#asks.get(name) ?? {};
      if (tellsWithinMs !== undefined) {
        expect(request.tookMs, `${name} is told at last`).toBeLessThan(tellsWithinMs + slowestMs);
        const usual = medianOf(this.#group(groupOf(name)).map(({ tookMs }) => tookMs));
        expect(usual, `the half of ${groupOf(name)} is told in time`).toBeLessThan(tellsWithinMs + noiseMs);
      }
      if (firstTextWithinMs !== undefined) {
        expect(firstMs, `${name} has its first text in time`).toBeLessThan(firstTextWithinMs + slowestMs);
      }
      for (const [header, value] of Object.entries(headers[groupOf(name)] ?? {})) {
        const told = String(request.headers[header]);
        if (value instanceof RegExp) expect(told, `${header} of ${name}`).toMatch(value);
        else expect(told, `${header} of ${name}`).toBe(value);
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#disperse();
    for (const request of this.requests) if (request.outcome === undefined) request.leave("reset");
  }

  async ask(asks: readonly Ask[]): Promise<void> {
    const reached = asks.map(async (ask, place) => {
      const name = ask.as ?? (this.#named.has("it") ? `ask ${place}` : "it");
      const times = ask.times ?? 1;
      const sending: Promise<unknown>[] = [];
      for (let time = 0; time < times; time += 1) {
        const sent = this.#send(ask, times === 1 ? name : `${name}#${time}`);
        if (ask.inTurn === true) await (await sent).over;
        else sending.push(sent);
      }
      await Promise.all(sending);
    });
    await Promise.all(reached);
  }

  async step(step: Step): Promise<void> {
    if ("ask" in step) await this.ask(step.ask);
    else if ("sendBody" in step) for (const request of this.#group(step.sendBody)) request.sendBody();
    else if ("kill" in step) await this.#kill(step.kill);
    else if ("freeze" in step) await this.#process(step.freeze).freeze();
    else if ("thaw" in step) await this.#process(step.thaw).thaw();
    else if ("stop" in step) this.#stop(step.stop);
    else if ("restart" in step) await this.#restart(step.restart);
    else if ("lastMs" in step) await this.#pass(step.lastMs * this.#scale);
    else if ("lastRealMs" in step) await this.#pass(step.lastRealMs);
    else if ("cut" in step) for (const proxy of this.#ways(step.cut, step.of)) proxy.cut();
    else if ("reset" in step) for (const proxy of this.#ways(step.reset, step.of)) proxy.reset();
    else if ("hold" in step) this.#hold(step);
    else if ("release" in step) for (const proxy of this.#ways(step.release, step.of)) proxy.release();
    else if ("slow" in step) this.#slow(step);
    else if ("leave" in step) for (const request of this.#group(step.leave)) request.leave(step.how);
    else if ("stopReading" in step) for (const request of this.#group(step.stopReading)) request.stopReading();
    else if ("readOn" in step) for (const request of this.#group(step.readOn)) request.readOn();
    else if ("limitFiles" in step) await this.#limitFiles(step.limitFiles === "to those open");
    else if ("crowd" in step) await this.#gather(step.crowd);
    else if ("disperse" in step) this.#disperse();
    else if ("see" in step) await this.#see(step.see, this.boundMs(step.withinMs));
    else await this.#see(step.seeReal, step.withinMs + hostAddsMs);
  }

  /** Whatever was held to hit a request at its place. */
  releaseAll(): void {
    for (const machine of this.#fleet.machines) this.#fleet.wayOf("machines", machine).release();
  }

  async outcomes(withinMs: number): Promise<ReadonlyMap<string, string>> {
    const all = (): boolean => [...this.#named.values()].every(({ outcome }) => outcome !== undefined);
    await until(all, { what: "every request to come to an end", timeoutMs: withinMs }).catch(() => undefined);
    return new Map([...this.#named].map(([name, { outcome = "no end" }]) => [name, outcome]));
  }

  async untilHealed(padding = 0): Promise<void> {
    const gateways = this.#fleet.gateways.flatMap(({ ended }, place) => (ended ? [] : [place]));
    for (const place of gateways) {
      const options = { what: `gateway ${place} to serve`, timeoutMs: this.boundMs(healsWithinMs), intervalMs: 50 };
      await until(async () => (await this.#short(place, padding)).outcome === "answered", options);
    }
  }

  async complaints(): Promise<string[]> {
    const all = [...this.#fleet.gateways, ...this.#fleet.formerGateways];
    const lines = async () => (await Promise.all(all.map((gateway) => gateway.logLines()))).flat();
    const judge = async (): Promise<string[]> =>
      complaintsAbout({ clients: this.requests, gateways: await lines(), machines: this.#fleet.wire.jobs });
    // The last lines of a log may be on their way.
    const none = async (): Promise<boolean> => (await judge()).length === 0;
    await until(none, { what: "the ledgers to agree", timeoutMs: 1_000, intervalMs: 50 }).catch(() => undefined);
    return judge();
  }

  async #send(ask: Ask, name: string): Promise<ScriptedRequest> {
    const { phase, at = 0 } = ask;
    const nonce = `${this.#name}-${name.replaceAll(/[^\w-]/g, "-")}`;
    const endpoint = this.#fleet.endpoints[at];
    if (endpoint === undefined) throw new Error(`there is no gateway ${at}`);
    const sent = (ask.padding ?? 0) > limits.partBytes ? "part" : "job";
    const held = phase === "P2" ? sent : phase === "P5" ? "terminal" : undefined;
    const nth = 1 + Math.floor(this.#random.next() * ((ask.padding ?? 0) / limits.partBytes));
    const sprung = held === undefined ? undefined : this.#fleet.wire.next(held, { nonce, holds: true, nth });
    const accepted = phase === "P3" ? this.#fleet.wire.next("accept", { nonce }) : undefined;
    const request = new ScriptedRequest(endpoint, {
      nonce,
      model: "scripted",
      stream: ask.whole !== true,
      withholdsBody: phase === "P1",
      script: { ...this.#scriptFor(phase), ...ask.script },
      ...(ask.padding === undefined ? {} : { padding: ask.padding }),
    });
    this.requests.push(request);
    this.#named.set(name, request);
    this.#asks.set(name, ask);
    await this.#reached(phase, { request, seen: sprung ?? accepted, nonce });
    return request;
  }

  #scriptFor(phase: Phase | undefined): Script {
    switch (phase) {
      case "P3":
        return { tokens: 20, firstMs: 1_500, delayMs: 5 };
      case "P4":
        return { tokens: 200, delayMs: 20 };
      default:
        return { tokens: 20, delayMs: 5 };
    }
  }

  async #reached(
    phase: Phase | undefined,
    on: { readonly request: ScriptedRequest; readonly seen: Promise<unknown> | undefined; readonly nonce: string },
  ): Promise<void> {
    const { request, seen, nonce } = on;
    const options = { what: `${nonce} to be at ${phase}`, timeoutMs: patienceMs };
    if (phase === "P1") await until(() => request.askedForBodyAtMs !== undefined, options);
    if (phase === "P2" || phase === "P3" || phase === "P5") {
      let isThere = false;
      void seen?.then(() => (isThere = true));
      await until(() => isThere || endedTooSoon(request), options);
    }
    const all = request.wish.stream ? request.wish.script.tokens - this.#fleet.tokensHeldWithTheEnd : 0;
    if (phase === "P5") await until(() => request.tokens >= all || endedTooSoon(request), options);
    if (phase !== "P4") return;
    const some = 3 + Math.floor(this.#random.next() * 20);
    const underWay = (): boolean =>
      request.wish.stream
        ? request.tokens >= some
        : this.#fleet.wire.jobsOf(nonce).some(({ progress }) => progress > 0);
    await until(() => underWay() || endedTooSoon(request), options);
  }

  /** The requests of this name, or all of those that were asked at once under it. */
  #group(name: string): ScriptedRequest[] {
    const group = [...this.#named].flatMap(([each, request]) => (groupOf(each) === name ? [request] : []));
    if (group.length === 0) throw new Error(`no request is called ${name}`);
    return group;
  }

  /** The machine that has the request, as far as one has it when this is first asked; it stays the one that is meant. */
  #machine(): string {
    this.#meant ??= this.#fleet.wire.jobsOf(this.#firstNonce).at(0)?.machine ?? this.#fleet.machines[0];
    if (this.#meant === undefined) throw new Error("the fleet has no machine");
    return this.#meant;
  }

  get #firstNonce(): string {
    const [first] = this.#named.values();
    return (this.#named.get("it") ?? first)?.wish.nonce ?? "";
  }

  #process(part: Part) {
    switch (part) {
      case "machine":
        return this.#fleet.agent(this.#machine());
      case "nats":
      case "redis":
        return this.#fleet[part];
      case "gateway":
        return this.#gateway;
      default:
        throw new Error(`${part} is no process of this fleet`);
    }
  }

  get #gateway() {
    const [gateway] = this.#fleet.gateways;
    if (gateway === undefined) throw new Error("there is no gateway in this fleet");
    return gateway;
  }

  /** What a machine had not yet brought over its line dies with it, also what a proxy held back. */
  async #kill(part: Part): Promise<void> {
    if (part === "runtime") return this.#runtimes.kill(this.#machine());
    await this.#process(part).kill();
    if (part === "machine") for (const proxy of this.#ways("machines", part)) proxy.cut();
  }

  #stop(part: Part): void {
    const process = this.#process(part);
    if (!("askToStop" in process)) throw new Error(`${part} cannot be asked to stop`);
    process.askToStop();
  }

  async #restart(part: Part): Promise<void> {
    if (part === "nats" || part === "redis") return this.#fleet[part].restart();
    if (part !== "gateway") throw new Error(`no scenario starts a ${part} anew`);
    await this.#kill(part);
    await this.#fleet.restartGateway(0);
  }

  #ways(way: Way, of: Part | undefined): TcpProxy[] {
    const { machines, gateways } = this.#fleet;
    if (way === "redis") return [this.#fleet.wayOf(way)];
    const named = of === "machine" ? [this.#machine()] : of === "gateway" ? [0] : undefined;
    return (named ?? (way === "machines" ? machines : [...gateways.keys()])).map((each) =>
      this.#fleet.wayOf(way, each),
    );
  }

  #hold(step: Extract<Step, { hold: Way }>): void {
    for (const proxy of this.#ways(step.hold, step.of)) {
      if (step.direction !== "back") proxy.hold("there");
      if (step.direction !== "there") proxy.hold("back");
    }
  }

  #slow(step: Extract<Step, { slow: Way }>): void {
    for (const proxy of this.#ways(step.slow, undefined)) {
      proxy.seed(Math.floor(this.#random.next() * 2 ** 32));
      proxy.latencyMs = step.latencyMs ?? 0;
      proxy.jitterMs = step.jitterMs ?? 0;
      proxy.sliceBytesMax = step.sliceBytesMax ?? Number.POSITIVE_INFINITY;
      proxy.bytesPerSecond.there = proxy.bytesPerSecond.back = step.bytesPerSecond ?? Number.POSITIVE_INFINITY;
    }
  }

  async #pass(durationMs: number): Promise<void> {
    const sinceMs = performance.now();
    const passed = (): boolean => performance.now() - sinceMs >= durationMs;
    await until(passed, { what: "the fault to have lasted", timeoutMs: durationMs + 1_000 });
  }

  async #see(sight: LookResult, withinMs: number): Promise<void> {
    await until(() => this.#looks(sight), { what: sight, timeoutMs: withinMs, intervalMs: 20 });
  }

  async #looks(sight: LookResult): Promise<boolean> {
    const offered = async (): Promise<boolean> => (await this.#fleet.endpoint.models()).ids.includes("scripted");
    switch (sight) {
      case "the model is withdrawn":
        return !(await offered());
      case "the model is offered":
        return offered();
      case "both machines serve":
        return this.#bothServe();
      case "readyz is 503 and healthz 200":
        return (await this.#health("readyz")) === 503 && (await this.#health("healthz")) === 200;
      case "readyz is 200":
        return (await this.#health("readyz")) === 200;
      case "the machine has ended":
        return this.#fleet.agent(this.#machine()).ended;
      case "the gateway has ended":
        return this.#gateway.ended;
      case "no machine works for the first":
        return this.#nobodyWorksFor(this.#firstNonce);
      case "the first is settled as left": {
        const lines = await this.#gateway.logLines();
        return lines.some(({ msg, outcome }) => msg === "request" && outcome === "client_closed");
      }
      case "the gateway holds little memory":
        return (await this.#memoryOfGateway()) - this.#memoryBytes < memoryBytesMax;
      case "the crowd is turned away":
        return this.#crowdTurnedAway;
      case "the bad runtime is left alone":
        return this.#runtimes.asked("attic") <= failuresUntilLeftAlone;
      case "two runtimes were asked":
        return this.#runtimes.askedInAll === 2;
      case "new requests are refused":
        return (await this.#short(0)).outcome?.startsWith("503 ") === true;
      case "new requests are answered":
        return (await this.#short(0)).outcome === "answered";
    }
  }

  /** Every job that was made of it has ended on its machine, as that machine logs it. */
  async #nobodyWorksFor(nonce: string): Promise<boolean> {
    const jobs = this.#fleet.wire.jobsOf(nonce).filter(({ machine }) => !this.#fleet.agent(machine).ended);
    const ended = jobs.map(async ({ job, machine, frames }) => {
      if (frames.some(({ kind }) => kind === "end" || kind === "fault" || kind === "reject")) return true;
      const lines = await this.#fleet.agent(machine).logLines();
      return lines.some(({ msg, job: told }) => told === job && /^job (done|failed|refused|cancelled)/.test(msg));
    });
    return (await Promise.all(ended)).every(Boolean);
  }

  async #memoryOfGateway(): Promise<number> {
    const status = await readFile(`/proc/${this.#gateway.processId}/status`, "utf8").catch(() => "");
    return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1] ?? 0) * 1_024;
  }

  /** The soft limit alone, which whoever set it may raise again. */
  async #limitFiles(toThoseOpen: boolean): Promise<void> {
    const { processId } = this.#gateway;
    const open = (await readdir(`/proc/${processId}/fd`)).length;
    const limit = toThoseOpen ? open : 1_024;
    await promisify(execFile)("prlimit", ["--pid", String(processId), `--nofile=${limit}:`]);
  }

  async #gather(connections: number): Promise<void> {
    const { hostname, port } = new URL(this.#gateway.baseUrl);
    this.#crowd = Array.from({ length: connections }, () => connect({ host: hostname, port: Number(port) }));
    for (const socket of this.#crowd) socket.on("error", () => undefined);
    const there = (): boolean => this.#crowd.every(({ connecting }) => !connecting);
    await until(there, { what: "the crowd to be there" });
  }

  get #crowdTurnedAway(): boolean {
    return this.#crowd.filter(({ closed }) => closed).length > this.#crowd.length / 2;
  }

  #disperse(): void {
    for (const socket of this.#crowd) socket.destroy();
    this.#crowd = [];
  }

  async #bothServe(): Promise<boolean> {
    const { outcome } = await this.#short(0);
    const served = new Set(this.#fleet.wire.jobs.slice(-20).map(({ machine }) => machine));
    return outcome === "answered" && this.#fleet.machines.every((machine) => served.has(machine));
  }

  async #health(check: string): Promise<number> {
    const [gateway] = this.#fleet.gateways;
    const response = await fetch(`${gateway?.operationsUrl}/${check}`, { headers: { connection: "close" } });
    await response.arrayBuffer();
    return response.status;
  }

  /** One short request that is to show whether a gateway serves; what it is told is judged like any other's. */
  async #short(place: number, padding = 0): Promise<ScriptedRequest> {
    const endpoint = this.#fleet.endpoints[place];
    if (endpoint === undefined) throw new Error(`there is no gateway ${place}`);
    this.#healings += 1;
    const wish = { nonce: `${this.#name}-short-${this.#healings}`, model: "scripted", script: { tokens: 3 }, padding };
    const request = new ScriptedRequest(endpoint, { ...wish, stream: true });
    await request.over;
    this.requests.push(request);
    return request;
  }
}

/** The servers that machines front in a scenario where it is not the demonstration. */
class Runtimes implements AsyncDisposable {
  readonly #running = new Map<string, FakeVllm>();

  static async start(wishes: Readonly<Record<string, RuntimeWish>>): Promise<Runtimes> {
    const runtimes = new Runtimes();
    for (const [machine, wish] of Object.entries(wishes)) runtimes.#running.set(machine, await startRuntime(wish));
    return runtimes;
  }

  frontedBy(machines: FleetWish["machines"]): FleetWish["machines"] {
    const fronting = Object.entries(machines).map(([machine, as]) => {
      const runtime = this.#running.get(machine);
      if (runtime === undefined) return [machine, as] as const;
      const env = { TRUNKLINE_RUNTIME: "vllm", TRUNKLINE_RUNTIME_URL: runtime.url, ...as.env };
      return [machine, { env }] as const;
    });
    return Object.fromEntries(fronting);
  }

  /** How many chats came to one of them. */
  asked(machine: string): number {
    return this.#running.get(machine)?.chats.length ?? 0;
  }

  get askedInAll(): number {
    return [...this.#running.keys()].reduce((sum, machine) => sum + this.asked(machine), 0);
  }

  async kill(machine: string): Promise<void> {
    const runtime = this.#running.get(machine);
    if (runtime === undefined) throw new Error(`${machine} fronts no server of this scenario`);
    this.#running.delete(machine);
    await runtime.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running.values()].map((runtime) => runtime.stop()));
  }
}

function medianOf(times: readonly number[]): number {
  return times.toSorted((one, other) => one - other)[Math.floor(times.length / 2)] ?? 0;
}

function groupOf(name: string): string {
  return name.replace(/#\d+$/, "");
}

/** A request that is over comes to no phase any more: that is for its outcome to tell. */
function endedTooSoon({ outcome }: ScriptedRequest): boolean {
  return outcome !== undefined;
}
