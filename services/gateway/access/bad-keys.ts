import { isIPv4, isIPv6 } from "node:net";
import { Fault } from "#shared/fault/fault.ts";
import type { Clock } from "#shared/process/clock.ts";

/** How many keys that are none may come from one address in a minute, before it is no longer listened to. */
export const badKeysPerMinuteMax = 300;
export const addressesMax = 10_000;

const minuteMs = 60_000;
const intervalMs = minuteMs / badKeysPerMinuteMax;

/**
 * Counts the wrong keys of each address, so that guessing costs the store nothing. Keys that are known here pass at any
 * time: who shares an address with a guesser is not made to wait for it. An address that has sent too many is free
 * again bit by bit.
 */
export class BadKeys {
  readonly #clock: Pick<Clock, "now">;
  /** When an address would be as good as new. The one that was heard last is at the end. */
  readonly #freeAtMs = new Map<string, number>();

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
  }

  /** Throws while an address has to wait before another unknown key of it is looked at. */
  insistOnFew(address: string): void {
    const freeAtMs = this.#freeAtMs.get(networkOf(address)) ?? -Infinity;
    const waitMs = freeAtMs + intervalMs - minuteMs - this.#clock.now();
    if (waitMs <= 0) return;
    throw new Fault("rate_limit_bad_keys", {
      message: "Too many wrong API keys came from this address (badKeysPerMinuteMax). Try again in a moment.",
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)),
    });
  }

  note(address: string): void {
    const network = networkOf(address);
    const nowMs = this.#clock.now();
    const freeAtMs = Math.max(this.#freeAtMs.get(network) ?? nowMs, nowMs) + intervalMs;
    this.#freeAtMs.delete(network);
    this.#freeAtMs.set(network, freeAtMs);
    if (this.#freeAtMs.size <= addressesMax) return;
    const [oldest] = this.#freeAtMs.keys();
    if (oldest !== undefined) this.#freeAtMs.delete(oldest);
  }
}

/** Whoever has one address of IPv6 has at least the 2⁶⁴ beside it. What a proxy says that is no address is one for all. */
function networkOf(told: string): string {
  const address = /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(told)?.[1] ?? told;
  if (isIPv4(address)) return address;
  if (!isIPv6(address)) return "no address";
  const ipv4 = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (ipv4 !== undefined) return ipv4;
  const [before = "", after] = address.split("::");
  const head = before.split(":");
  if (after === undefined) return head.slice(0, 4).join(":");
  const zeros = Math.max(0, 8 - head.length - after.split(":").length);
  const groups = [...head, ...Array.from({ length: zeros }, () => "0"), ...after.split(":")];
  return groups
    .slice(0, 4)
    .map((group) => (group === "" ? "0" : group))
    .join(":");
}
