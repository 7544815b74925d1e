import { systemClock as clock } from "#shared/process/clock.ts";
import { AnswerCourse } from "../../../services/gateway/dispatch/answer-course.ts";
import { BoundedLabels, machineLabelsMax } from "../../../services/gateway/meters/bounded-labels.ts";
import { Exposition } from "../../../services/gateway/meters/exposition.ts";
import { FleetMeters } from "../../../services/gateway/meters/fleet-meters.ts";
import { RequestMeters } from "../../../services/gateway/meters/request-meters.ts";

/** What measuring costs: for each piece of a stream, for each request, and for each scrape. Run it with `npm run bench:meters`. */
const pieces = 3_000_000;
const requestsPerRound = 100_000;
const models = 100;
const rounds = 5;

const exposition = new Exposition();
const requests = new RequestMeters(exposition, { offered: () => undefined });
const fleet = new FleetMeters(exposition, new BoundedLabels(machineLabelsMax));
const meter = {
  offerRefused: fleet.offerRefused.bind(fleet),
  streamBegan: requests.streamBegan.bind(requests),
  usageNotBelieved: () => undefined,
  streamEnded: requests.streamEnded.bind(requests),
};

let bytes = 0;
const writer = { onData: (piece: Uint8Array) => void (bytes += piece.byteLength) };
const piece = new Uint8Array(200);

function nsPerPiece(measured: boolean): number {
  const course = new AnswerCourse({ clock, meter });
  const listener = measured ? course.following(writer, { streamed: true }) : writer;
  course
    .following(writer, { streamed: true })
    .onOffer?.({ job: "job", machine: "attic", model: "llama3", window: 8_192 });
  const begunAt = process.hrtime.bigint();
  for (let at = 0; at < pieces; at += 1) listener.onData(piece, at);
  return Number(process.hrtime.bigint() - begunAt) / pieces;
}

function nsPerRequest(): number {
  const begunAt = process.hrtime.bigint();
  for (let at = 0; at < requestsPerRound; at += 1) {
    requests.requestBegan();
    const model = `model-${at % models}`;
    const times = { acceptedMs: 2, firstTokenMs: 200, endedMs: 2_000, promptTokens: 100, completionTokens: 200 };
    const answer = { jobs: ["job"], machine: "attic", model, failovers: 0, ...times };
    const facts = { key: "key", model, streamed: true, outcome: "ok" as const, answer };
    requests.requestEnded({ route: "/v1/chat/completions", ms: 2_001, facts });
  }
  return Number(process.hrtime.bigint() - begunAt) / requestsPerRound;
}

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? NaN;
const measure = (work: () => number): number => median(Array.from({ length: rounds }, work));

const bare = measure(() => nsPerPiece(false));
const withMeter = measure(() => nsPerPiece(true));
const perRequest = measure(nsPerRequest);
for (let at = 0; at < models; at += 1) requests.streamBegan(`model-${at}`).observe(0.02);
const scrapes: { readonly ms: number; readonly bytes: number }[] = [];
for (let round = 0; round < rounds; round += 1) {
  const begunAt = performance.now();
  const { text } = await exposition.show(undefined);
  scrapes.push({ ms: performance.now() - begunAt, bytes: text.length });
}
console.log(`a piece of a stream: ${withMeter.toFixed(0)} ns, of them ${(withMeter - bare).toFixed(0)} for measuring`);
console.log(`a request: ${(perRequest / 1_000).toFixed(1)} µs`);
console.log(
  `a scrape with ${models} models: ${median(scrapes.map(({ ms }) => ms)).toFixed(0)} ms, ${scrapes[0]?.bytes} bytes`,
);
console.log(`${bytes} bytes were written`);
