/** The events of the gateway: the fleet, the counts, requests as they end, and that something was changed. */
import { computed, signal } from "@preact/signals";
import type { FleetListing } from "#shared/fleet/shown-fleet.ts";
import type { ShownRequest } from "#shared/requests/shown-request.ts";
import type { ShownNow } from "#shared/admin/event-operation.ts";
import { changes, read } from "./admin-api.ts";

/** The fleet, and when it was heard. Ages in it count from then. */
export const fleet = signal<(FleetListing & { readonly heardAt: number }) | undefined>(undefined);
/** Changes when a model comes into memory, leaves it or is being loaded, so that lists of models are read anew. */
export const inMemory = computed(() =>
  JSON.stringify(
    fleet.value?.data.map(({ machine, memory }) => [
      machine,
      memory?.models.map(({ id }) => id),
      memory?.loading?.id,
      memory?.keeps.map(({ model }) => model),
    ]),
  ),
);
export const now = signal<ShownNow | undefined>(undefined);
/** The requests that ended since this page was opened, the latest first. */
export const ended = signal<readonly ShownRequest[]>([]);
/** When the gateway was heard last. Its answer to the sign-in counts too. */
export const heardAt = signal(Date.now());
/** True if the gateway has told nothing for `staleMs`: what is shown is old. */
export const stale = signal(false);
/** The time of this page, once a second, for ages that count up. */
export const clock = signal(Date.now());

const staleMs = 4_000;
const endedKept = 500;
let source: EventSource | undefined;
let ticking: ReturnType<typeof setInterval> | undefined;

export function followGateway(): void {
  leaveGateway();
  heardAt.value = Date.now();
  ticking = setInterval(tick, 1_000);
  open();
}

export function leaveGateway(): void {
  source?.close();
  clearInterval(ticking);
}

/** The events of the gateway, and what each of them tells. */
interface Told {
  readonly fleet: FleetListing;
  readonly now: ShownNow;
  readonly request: ShownRequest;
  readonly change: object;
}

function open(): void {
  source?.close();
  source = new EventSource("/admin/v1/events");
  on("fleet", (told) => (fleet.value = { ...told, heardAt: Date.now() }));
  on("now", (told) => (now.value = told));
  on("request", (told) => {
    if (ended.value.some(({ id }) => id === told.id)) return;
    ended.value = [told, ...ended.value].slice(0, endedKept);
  });
  on("change", () => (changes.value += 1));
}

function on<Name extends keyof Told>(name: Name, take: (told: Told[Name]) => void): void {
  source?.addEventListener(name, ({ data }: MessageEvent<string>) => {
    heardAt.value = Date.now();
    stale.value = false;
    take(JSON.parse(data) as Told[Name]);
  });
}

/**
 * A browser gives up on a stream that was refused: by a proxy whose gateway restarts, or since the session has ended. The
 * answer to `/me` tells which, and a 401 leads to the sign-in page.
 */
function tick(): void {
  clock.value = Date.now();
  stale.value = clock.value - heardAt.value > staleMs;
  if (source?.readyState === EventSource.CLOSED) void read("GET /me", {}).then(open, () => undefined);
}
