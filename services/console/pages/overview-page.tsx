import type { ShownFleetMachine } from "#shared/fleet/shown-fleet.ts";
import { query, to } from "../address.ts";
import { useAnswer } from "../admin-api.ts";
import { clock, ended, fleet, inMemory, now } from "../live.ts";
import { Notice, Page, Section } from "../parts.tsx";
import { numberText, shortNumber } from "../quantity.ts";
import { Remedy } from "../remedies.tsx";
import { Name } from "../values.tsx";
import { findTroubles, siteText } from "../site-words.ts";
import { Requests, Waits } from "./history-charts.tsx";
import { Pulls } from "./pulls.tsx";
import { RequestTable } from "./request-table.tsx";

export function Overview() {
  const machines = fleet.value?.data ?? [];
  return (
    <Page title="Overview">
      {fleet.value !== undefined && <Condition machines={machines} />}
      <Pulls isShown={({ state }) => state === "pulling"} />
      <Now />
      {fleet.value !== undefined && <FirstSteps machines={machines} />}
      <LastHour />
      <Latest />
    </Page>
  );
}

const latestShown = 5;

function Latest() {
  const { answer } = useAnswer("GET /requests", { query: { limit: latestShown } });
  const kept = answer?.data ?? [];
  const live = ended.value.filter(({ id }) => !kept.some((each) => each.id === id));
  return (
    <Section title="Requests that ended last" aside={<a href={to(["requests"])}>All requests</a>}>
      <RequestTable
        caption="Requests that ended last"
        rows={[...live, ...kept].slice(0, latestShown)}
        empty={answer === undefined ? "Loading the requests…" : ["No request has ended yet. ", <Remedy by="chat" />]}
      />
    </Section>
  );
}

const troublesShown = 3;
const failuresRead = 100;

/** The site in one line, and what is wrong there: each trouble in a sentence with its remedy. */
function Condition({ machines }: { readonly machines: readonly ShownFleetMachine[] }) {
  const minute = Math.floor(clock.value / 60_000);
  const { answer: status } = useAnswer("GET /site/status", {}, minute);
  const { answer: models } = useAnswer("GET /models", {}, inMemory.value);
  const { answer: failed } = useAnswer("GET /requests", { query: { failed: "true", limit: failuresRead } }, minute);
  const kept = failed?.data ?? [];
  const live = ended.value.filter(({ id, code }) => code !== "ok" && !kept.some((each) => each.id === id));
  const nowMs = clock.value;
  // The banner above the page has told these.
  const told = `${fleet.value?.problem} ${fleet.value?.remark}`.replaceAll(/\d/g, "");
  const problems = status?.problems.filter((each) => !told.includes(each.replaceAll(/\d/g, ""))) ?? [];
  const heard = { machines, status: status && { ...status, problems }, nowMs };
  const troubles = findTroubles({ ...heard, failures: [...live, ...kept] });
  const shown = query.value.get("troubles") === "all" ? troubles : troubles.slice(0, troublesShown);
  return (
    <div class="stack">
      <a class="quiet" href={to(["site"])}>
        {siteText(heard, models && new Set(models.data.map(({ id }) => id)).size)}
      </a>
      {shown.map(({ tone, subject, path, query: asked, text }) => (
        <Notice key={`${subject} ${text}`} tone={tone}>
          <a href={to(path, asked)}>
            <Name>{subject}</Name>
          </a>{" "}
          {text}
        </Notice>
      ))}
      {shown.length < troubles.length && (
        <a href={to([], { troubles: "all" })}>and {troubles.length - shown.length} more</a>
      )}
    </div>
  );
}

function Now() {
  const { value } = now;
  if (value === undefined) return <p class="quiet">Loading the figures…</p>;
  const failed = value.failed_last_minute;
  const figures: readonly (readonly [name: string, value: string, aside?: string | false])[] = [
    ["Running", numberText(value.running), `of ${value.slots} slots`],
    ["Waiting", numberText(value.waiting)],
    ["Requests, last minute", numberText(value.ended_last_minute), failed > 0 && `${failed} failed`],
    ["Tokens a second, last minute", shortNumber(value.tokens_per_second)],
  ];
  return (
    <dl class="figures" aria-label="Now">
      {figures.map(([name, text, aside]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            {text}
            {aside && <small>{aside}</small>}
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** The two charts of the last hour, read anew each minute. */
function LastHour() {
  const minute = Math.floor(clock.value / 60_000);
  const { answer, fault } = useAnswer("GET /history", {}, minute);
  if (fault !== undefined) return <Notice tone="warn">{fault.message}</Notice>;
  if (answer === undefined) return <p class="quiet">Loading the last hour…</p>;
  return (
    <div class="columns">
      <Requests history={answer} title="Requests, last hour" />
      <Waits history={answer} title="Wait for the first token, last hour" />
    </div>
  );
}

/** The way from an empty site to a first chat. Each step ticks itself off, and all of it goes when all is done. */
function FirstSteps({ machines }: { readonly machines: readonly ShownFleetMachine[] }) {
  const keys = useAnswer("GET /keys", { query: { limit: 100 } }).answer;
  const { answer: chats } = useAnswer("GET /requests", { query: { failed: "false", limit: 1 } });
  if (keys === undefined || chats === undefined) return null;
  const isDemonstration = ({ runtime }: ShownFleetMachine): boolean => runtime === "scripted";
  const hasMachine = machines.some((each) => each.takes_work && each.models > 0 && !isDemonstration(each));
  const hasKey = keys.data.some(({ kind, state }) => kind === "model" && state === "valid");
  const hasChat = chats.data.length > 0 || ended.value.some(({ code }) => code === "ok");
  if (hasMachine && hasKey && hasChat) return null;
  return (
    <Section title="First steps">
      <ol class="steps">
        <Step done={hasMachine}>
          <a href={to(["machines"], { pair: "new" })}>Pair a machine</a> that runs a model server such as Ollama.
          {machines.some(isDemonstration) && " Until then a demonstration answers, always with the same text."}
        </Step>
        <Step done={hasKey}>
          <a href={to(["keys"], { issue: "new" })}>Issue a key</a> for each person or program that calls the models.
        </Step>
        <Step done={hasChat}>
          Have a <a href={to(["playground"])}>first chat</a>.
        </Step>
      </ol>
    </Section>
  );
}

function Step({ done, children }: { readonly done: boolean; readonly children: preact.ComponentChildren }) {
  return (
    <li class={done ? "done" : undefined}>
      <span aria-hidden="true">{done ? "✓" : "○"}</span>{" "}
      <span>
        {children}
        {done && <span class="quiet"> Done.</span>}
      </span>
    </li>
  );
}
