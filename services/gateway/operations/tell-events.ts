import type { ServerResponse } from "node:http";
import type { ShownNow } from "#shared/admin/event-operation.ts";
import { Fault } from "#shared/fault/fault.ts";
import type { FleetListing } from "#shared/fleet/shown-fleet.ts";
import type { KeyStore, UnreadRecord } from "#shared/records/key-store.ts";
import type { RequestRecord } from "#shared/requests/request-record.ts";
import type { RequestRecords } from "#shared/requests/request-records.ts";
import { showRequest } from "#shared/requests/shown-request.ts";
import type { Clock, Timer } from "#shared/process/clock.ts";
import type { Log } from "#shared/process/log.ts";
import type { FleetView } from "./fleet-view.ts";

const lookEveryMs = 500;
/** A fleet that does not change is told again after this time, since its ages grow. */
const fleetEveryMs = 5_000;
const minuteMs = 60_000;
/** A stream ends after this time and is opened anew, so that a session that has ended sees no more. */
const streamMs = 15_000;
/** Pages that follow a gateway at once, and those of one session and one key. */
const pagesMax = 256;
const pagesPerSessionMax = 8;
const pagesPerKeyMax = 32;
const backlogBytesMax = 1_048_576;
/** Requests that are told at once; when more have ended, the older ones are found by a search. */
const requestsToldMax = 200;

/** The place before all requests. */
export const noRequest = "0";

interface Dependencies {
  readonly view: Pick<FleetView, "machines">;
  readonly requests: RequestRecords;
  readonly keys: Pick<KeyStore, "log">;
  readonly clock: Clock;
  readonly log: Pick<Log, "warn">;
}

/** The key of a page, and its session if it has one. */
export interface PageOwner {
  readonly key: string;
  readonly session?: string | undefined;
}

interface Follower {
  readonly response: ServerResponse;
  readonly owner: PageOwner;
  /** The request up to which it was told. */
  heard: string;
}

/**
 * Tells the pages of the console what changes: the fleet, the counts, requests as they end, and that a record was changed.
 * One look at the site serves all pages, and there is none while no page is open.
 */
export class EventTeller {
  readonly #parts: Dependencies;
  readonly #followers = new Set<Follower>();
  /** The pages that are told or will be. A page has its place before anything is waited for. */
  readonly #places = new Set<Follower>();
  #timer: Timer | undefined;
  #isLooking = false;
  /** The fleet as it was told last, with and without its ages. */
  #fleet = { text: "", told: "", againAtMs: 0 };
  #lastEntry: string | undefined;
  #latest = noRequest;
  #isClosed = false;
  #ofLastMinute: RequestRecord[] = [];

  constructor(parts: Dependencies) {
    this.#parts = parts;
  }

  /** Tells a page until it leaves or `streamMs` have passed. `heard` is the latest request that it knows. */
  async follow(
    response: ServerResponse,
    { owner, heard }: { readonly owner: PageOwner; readonly heard: string | undefined },
  ): Promise<void> {
    if (this.#isClosed) throw new Fault("shutting_down", { message: "This gateway shuts down; follow another one." });
    this.#assertRoom(owner);
    const follower: Follower = { response, owner, heard: heard ?? noRequest };
    let end: Timer | undefined;
    this.#places.add(follower);
    response.once("close", () => {
      end?.cancel();
      this.#places.delete(follower);
      this.#followers.delete(follower);
      if (this.#places.size === 0) this.#rest();
    });
    if (this.#timer === undefined) await this.#begin().catch(() => undefined);
    if (!this.#places.has(follower)) return;
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    follower.heard = heard ?? this.#latest;
    this.#followers.add(follower);
    end = this.#parts.clock.after(streamMs, () => response.end());
    // The first event has a place too, so that a page that has heard of no request yet comes back to the same one.
    response.write(`retry: 250\n${eventText("fleet", this.#fleet.text, follower.heard)}`);
    await this.#look();
  }

  #assertRoom({ key, session }: PageOwner): void {
    const owners = [...this.#places].map(({ owner }) => owner);
    if (owners.length >= pagesMax) {
      const message = `${pagesMax} pages follow this gateway already (pagesMax): close some.`;
      throw new Fault("server_is_overloaded", { message });
    }
    const ofKey = owners.filter((each) => each.key === key);
    const ofSession = ofKey.filter((each) => session !== undefined && each.session === session);
    const full =
      (ofSession.length >= pagesPerSessionMax && `${pagesPerSessionMax} pages of this session (pagesPerSessionMax)`) ||
      (ofKey.length >= pagesPerKeyMax && `${pagesPerKeyMax} pages of this key (pagesPerKeyMax)`);
    if (full)
      throw new Fault("concurrency_limit_exceeded", { message: `${full} follow this gateway already: close some.` });
  }

  /** Ends all streams for good. Their pages come back, perhaps to another gateway. */
  close(): void {
    this.#isClosed = true;
    this.#rest();
    for (const { response } of this.#followers) response.end();
  }

  #rest(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  async #begin(): Promise<void> {
    const { clock, requests } = this.#parts;
    this.#timer = clock.every(lookEveryMs, () => void this.#look());
    await this.#lookAtFleet();
    const sinceMs = clock.wall() - minuteMs;
    const { latest } = await requests.find({}, { limit: 1 });
    this.#latest = latest ?? noRequest;
    this.#ofLastMinute = [];
    await requests.visit({ sinceMs }, (record) => this.#ofLastMinute.push(record));
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      // The store may be away. The fleet is told all the same.
      const asked = await Promise.allSettled([this.#lookAtFleet(), this.#lookAtRequests(), this.#lookAtTrail()]);
      for (const each of asked) {
        if (each.status === "rejected")
          this.#parts.log.warn({ err: each.reason }, "the console could not be told of everything");
      }
    } finally {
      this.#isLooking = false;
    }
  }

  async #lookAtFleet(): Promise<void> {
    const fleet = await this.#parts.view.machines();
    const text = JSON.stringify(fleet);
    // Ages grow by themselves: a page counts them from when it heard the fleet.
    const told = JSON.stringify(fleet, (name, value: unknown) => (name.endsWith("ms_ago") ? undefined : value));
    const nowMs = this.#parts.clock.now();
    const isDue = told !== this.#fleet.told || nowMs >= this.#fleet.againAtMs;
    if (isDue) this.#tellAll("fleet", text);
    this.#fleet = { text, told, againAtMs: isDue ? nowMs + fleetEveryMs : this.#fleet.againAtMs };
    this.#tellAll("now", JSON.stringify(this.#now(fleet)));
  }

  async #lookAtRequests(): Promise<void> {
    const heard = new Set([this.#latest, ...[...this.#followers].map((follower) => follower.heard)]);
    for (const after of heard) {
      const { found, latest } = await this.#parts.requests.find({}, { limit: requestsToldMax, after });
      const followers = [...this.#followers].filter((follower) => follower.heard === after);
      for (const { cursor, record } of found.toReversed()) {
        const text = eventText("request", JSON.stringify(showRequest(record)), cursor);
        for (const follower of followers) this.#tell(follower, text);
      }
      for (const follower of followers) follower.heard = latest ?? after;
      if (after !== this.#latest) continue;
      this.#latest = latest ?? after;
      this.#ofLastMinute.push(...found.map(({ record }) => record));
    }
  }

  async #lookAtTrail(): Promise<void> {
    const unread: UnreadRecord[] = [];
    const last = JSON.stringify([await this.#parts.keys.log({ entriesMax: 1 }, unread), unread]);
    if (this.#lastEntry !== undefined && last !== this.#lastEntry) this.#tellAll("change", "{}");
    this.#lastEntry = last;
  }

  #now({ data: machines }: FleetListing): ShownNow {
    const nowMs = this.#parts.clock.wall();
    this.#ofLastMinute = this.#ofLastMinute.filter(({ at, totalMs }) => at + totalMs > nowMs - minuteMs);
    const heard = machines.filter(({ status }) => status === "present" || status === "suspect");
    const answered = this.#ofLastMinute.filter(({ machine }) => machine !== undefined);
    const ofMachine = Map.groupBy(answered, ({ machine = "" }) => machine);
    return {
      at: new Date(nowMs).toISOString(),
      running: sum(heard.map(({ running }) => running)),
      waiting: sum(heard.map(({ queued }) => queued)),
      slots: sum(heard.filter((each) => each.takes_work).map(({ slots }) => slots)),
      ended_last_minute: this.#ofLastMinute.length,
      failed_last_minute: this.#ofLastMinute.filter(({ code }) => code !== "ok").length,
      tokens_per_second: tokensPerSecond(this.#ofLastMinute),
      machine_tokens_per_second: Object.fromEntries(
        [...ofMachine].map(([machine, records]) => [machine, tokensPerSecond(records)]),
      ),
    };
  }

  #tellAll(name: string, data: string): void {
    for (const follower of this.#followers) this.#tell(follower, eventText(name, data));
  }

  /** A page that does not read is cut, and comes back. */
  #tell({ response }: Follower, text: string): void {
    if (response.writableLength > backlogBytesMax) response.destroy();
    else if (!response.writableEnded) response.write(text);
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((one, other) => one + other, 0);
}

/** Returns the tokens of answers of one minute, over its seconds. */
function tokensPerSecond(ofMinute: readonly RequestRecord[]): number {
  return Math.round(sum(ofMinute.map(({ completionTokens }) => completionTokens)) / (minuteMs / 10_000)) / 10;
}

function eventText(name: string, data: string, id?: string): string {
  return `${id === undefined ? "" : `id: ${id}\n`}event: ${name}\ndata: ${data}\n\n`;
}
