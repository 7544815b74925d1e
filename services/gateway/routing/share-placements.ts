import type { Broker, BrokerMessage, Subscription } from "#shared/broker/broker.ts";
import type { Peppers } from "#shared/keys/pepper.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import { LogThrottle, type Log } from "#shared/process/log.ts";
import { parsePlacedSubject, placedPattern, placedSubject } from "#shared/protocol/subjects.ts";
import type { Timing } from "#shared/protocol/timing.ts";
import type { PlacementMemory, Placements } from "./placement-memory.ts";
import { cutPlacements, openPlacements, type PlacementsPart, sealPlacements } from "./seal-placements.ts";

/** The placements that a gateway knows: its own, and those that the other gateways told. */
export type PlacementBook = Pick<PlacementMemory, "loads" | "takePrompts" | "told" | "gone">;

interface Dependencies {
  readonly broker: Pick<Broker, "connected" | "connectedSinceMs" | "flush" | "publish" | "subscribe"> &
    Pick<Broker, "onChange" | "onDenied">;
  /** The name of this boot of the gateway. */
  readonly gateway: string;
  readonly book: PlacementBook;
  readonly peppers: Pick<Peppers, "placementsKeys">;
  /** The site, with the number of its gateways as their store counts them. */
  readonly site: { readonly gateways: number };
  readonly timing: Timing;
  /** The clock of the key store, which is the same at all gateways. */
  readonly clock: Clock;
  readonly log: Pick<Log, "info" | "warn">;
}

/** A message that is older or newer by this much is dropped: somebody may have kept it and repeat it. */
const clocksDifferMsMax = 60_000;
/** A gateway is remembered for this long, so that no message of it is taken twice. */
const rememberedMs = 2 * clocksDifferMsMax;
/** The most boots of gateways that are remembered. */
const gatewaysMax = 1_000;
/** A grant that NATS denies is tried again at this interval: operators can add grants to a running NATS. */
const grantTriedMs = 60_000;

interface OtherGateway {
  heardAtMs: number;
  /** The time of its latest message on the site's clock. */
  sentAtMs: number;
  hasLoads: boolean;
  /** News of which not all messages have come. */
  begun: Placements & { readonly parts: number };
}

const nothing = { parts: 0, loads: [], prompts: [] };

/**
 * Tells the other gateways what this gateway has placed, and its book what they have placed. A loss costs little: loads
 * are absolute and repeated each second, and without the news of a prompt another machine may compute it again.
 */
export class PlacementSharing {
  readonly #parts: Dependencies;
  /** The other gateways that were heard lately. */
  readonly others = new Map<string, OtherGateway>();
  readonly #throttle: LogThrottle;
  readonly #ends: Subscription[];
  readonly #looking: Timer;
  /** Denied grants in words, each with the time of the latest denial. */
  readonly #denied = new Map<string, number>();
  #hearing: Subscription;
  #telling: Timer | undefined;
  #triedAtMs: number;
  #lookedAtMs: number;
  #sentAtMs = 0;
  #toldAtMs = -Infinity;
  #toldLoads = false;

  constructor(parts: Dependencies) {
    const { broker, timing, clock } = parts;
    this.#parts = parts;
    this.#throttle = new LogThrottle(clock);
    this.#triedAtMs = this.#lookedAtMs = clock.now();
    this.#ends = [
      broker.onDenied(placedPattern, (reason) => this.#noteDenial(reason)),
      broker.onChange((connected) => {
        if (connected) void this.#begin();
      }),
    ];
    this.#hearing = this.#subscribe();
    this.#looking = clock.every(timing.placementsRepeatMs, () => this.#look());
    // A table without a load tries the grant at the start, rather than with the first job.
    this.#send({ loads: [], prompts: [] });
  }

  /** Explains to people why gateways do not know each other's placements. Undefined when they do. */
  get remark(): string | undefined {
    const [denied] = this.#denied.keys();
    return denied === undefined ? undefined : inWords(denied);
  }

  /** Notes that the book has news. They are told at once, and those within `placementsToldMs` of others together. */
  changed(): void {
    const { clock, timing } = this.#parts;
    const restMs = this.#toldAtMs + timing.placementsToldMs - clock.now();
    this.#telling ??= clock.after(Math.max(0, restMs), () => this.#tell());
  }

  /** Tells the others that this gateway has no job any more. */
  stop(): void {
    this.#telling?.cancel();
    this.#looking.cancel();
    this.#hearing.end();
    for (const each of this.#ends) each.end();
    if (this.#denied.size === 0) this.#send({ loads: [], prompts: [] });
  }

  #tell(): void {
    const { book, broker, site, clock } = this.#parts;
    this.#telling?.cancel();
    this.#telling = undefined;
    // Taken in any case: prompts that cannot be told now would be old news later.
    const prompts = book.takePrompts();
    if (!broker.connected || this.#denied.size > 0 || (site.gateways === 1 && this.others.size === 0)) return;
    this.#toldAtMs = clock.now();
    const loads = book.loads();
    if (loads.length > 0 || prompts.length > 0 || this.#toldLoads) this.#send({ loads, prompts });
  }

  #send(news: Placements): void {
    const { broker, gateway, peppers, clock, log } = this.#parts;
    const { parts, dropped } = cutPlacements(news);
    if (dropped > 0 && this.#throttle.isDue("dropped")) {
      log.warn({ dropped }, "the placements of a moment are too many to be told to the other gateways in full");
    }
    for (const [part, { loads, prompts }] of parts.entries()) {
      this.#sentAtMs = Math.max(this.#sentAtMs + 1, clock.wall());
      const isLast = part === parts.length - 1;
      const sealed = sealPlacements({ sentAtMs: this.#sentAtMs, part, isLast, loads, prompts }, { gateway, peppers });
      broker.publish(placedSubject(gateway), sealed);
    }
    this.#toldLoads = news.loads.length > 0;
  }

  #subscribe(): Subscription {
    return this.#parts.broker.subscribe(placedPattern, (message) => this.#hear(message));
  }

  #hear({ subject, data }: Pick<BrokerMessage, "subject" | "data">): void {
    const { book, gateway: own, peppers } = this.#parts;
    const gateway = parsePlacedSubject(subject);
    // `trunkline doctor` tries the grant with an empty message.
    if (gateway === undefined || gateway === own || data.byteLength === 0) return;
    const opened = openPlacements(data, { gateway, peppers });
    if (opened.outcome !== "opened") return this.#drop(gateway, whyDropped[opened.outcome]);
    const { part, isCurrent } = opened;
    const other = this.#believed(gateway, part);
    if (other === undefined) return;
    const news = joined(other.begun, part);
    other.begun = news === undefined || part.isLast ? nothing : news;
    if (news === undefined || !part.isLast) return;
    const { loads } = news;
    // Another pepper makes other hashes of the same prompts.
    const prompts = isCurrent ? news.prompts : [];
    const hadLoads = other.hasLoads;
    other.hasLoads = loads.length > 0;
    if (other.hasLoads || prompts.length > 0) book.told(gateway, { loads, prompts });
    else if (hadLoads) book.gone(gateway);
  }

  /** Returns the gateway of a message that is new, and undefined for one that was sent before. */
  #believed(gateway: string, { sentAtMs }: PlacementsPart): OtherGateway | undefined {
    const { clock } = this.#parts;
    const heardAtMs = clock.now();
    if (Math.abs(sentAtMs - clock.wall()) > clocksDifferMsMax) {
      this.#drop(gateway, `their time is more than ${clocksDifferMsMax / 1_000} s off: set the clocks by NTP`);
      return undefined;
    }
    const known = this.others.get(gateway);
    if (known === undefined && this.others.size >= gatewaysMax) {
      this.#drop(gateway, `more than ${gatewaysMax} gateways tell of some (gatewaysMax)`);
      return undefined;
    }
    if (known !== undefined && sentAtMs <= known.sentAtMs) {
      this.#drop(gateway, "they were sent before: somebody with a gateway's credential of NATS repeats messages");
      return undefined;
    }
    const other = known ?? { heardAtMs, sentAtMs, hasLoads: false, begun: nothing };
    other.heardAtMs = heardAtMs;
    other.sentAtMs = sentAtMs;
    this.others.set(gateway, other);
    return other;
  }

  #drop(gateway: string, why: string): void {
    if (this.#throttle.isDue(`${gateway} ${why}`)) {
      this.#parts.log.warn({ gateway }, `placements of another gateway are dropped: ${why}`);
    }
  }

  #look(): void {
    const { book, broker, timing, clock } = this.#parts;
    const nowMs = clock.now();
    const stoodStill = nowMs - this.#lookedAtMs > 2 * timing.placementsRepeatMs;
    this.#lookedAtMs = nowMs;
    for (const [gateway, other] of this.others) {
      // Messages that came meanwhile lie unread in the socket.
      if (stoodStill) other.heardAtMs = nowMs;
      const silentMs = nowMs - Math.max(other.heardAtMs, broker.connectedSinceMs);
      if (other.hasLoads && broker.connected && silentMs >= timing.placementsSilentMs) {
        other.hasLoads = false;
        book.gone(gateway);
      }
      if (!other.hasLoads && nowMs - other.heardAtMs > rememberedMs) this.others.delete(gateway);
    }
    if (this.#denied.size > 0 && nowMs - this.#triedAtMs >= grantTriedMs) void this.#begin();
    this.#tell();
  }

  /** Begins on a connection that is back, or with grants that may have been given meanwhile. */
  async #begin(): Promise<void> {
    const { broker, book, clock, log } = this.#parts;
    if (this.#denied.size === 0) return this.#tell();
    const triedAtMs = (this.#triedAtMs = clock.now());
    this.#hearing.end();
    this.#hearing = this.#subscribe();
    this.#send({ loads: book.loads(), prompts: [] });
    const isTold = await broker.flush().then(
      () => true,
      () => false,
    );
    if (!isTold) return;
    for (const [reason, atMs] of this.#denied) if (atMs < triedAtMs) this.#denied.delete(reason);
    if (this.#denied.size === 0) log.info("gateways know each other's placements again");
  }

  #noteDenial(reason: string): void {
    const { clock, log } = this.#parts;
    const isNew = !this.#denied.has(reason);
    this.#denied.set(reason, clock.now());
    if (!isNew) return;
    log.warn(`${inWords(reason)}: give the gateways' user that grant (infra/nats.conf shows all)`);
  }
}

function inWords(denied: string): string {
  return `${denied}, so gateways choose machines without each other's jobs`;
}

const whyDropped = {
  "other-version": "its version is another",
  "other-pepper": "they are sealed with a pepper that this gateway does not have (TRUNKLINE_KEY_PEPPER)",
  malformed: "they are not what a gateway of this version sends",
} as const;

/** Adds a message to the news of which it is a part. Returns undefined when a message before it is missing. */
function joined(begun: OtherGateway["begun"], { part, loads, prompts }: PlacementsPart) {
  if (part === 0) return { parts: 1, loads, prompts };
  if (part !== begun.parts) return undefined;
  return { parts: part + 1, loads: [...begun.loads, ...loads], prompts: [...begun.prompts, ...prompts] };
}
