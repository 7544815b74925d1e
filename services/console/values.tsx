/** How pages show values: words with a tone, times, figures, and the machines, models and keys of a site by their names. */
import type { ComponentChildren } from "preact";
import type { ShownModel } from "#shared/protocol/model.ts";
import { fromNow } from "#shared/process/quantities.ts";
import type { ShownKey } from "#shared/records/shown-key.ts";
import { to } from "./address.ts";
import { useAnswer } from "./admin-api.ts";
import { clock } from "./live.ts";
import { localTime, nameParts, spanText } from "./quantity.ts";

export type Tone = "good" | "warn" | "bad" | "plain";

/** A short word with a meaning. The word says it; the colour only helps. */
export function Badge(props: { readonly tone?: Tone; readonly title?: string; readonly children: ComponentChildren }) {
  return (
    <span class={`badge ${props.tone ?? "plain"}`} title={props.title}>
      {props.children}
    </span>
  );
}

export function Badges({ words }: { readonly words: readonly string[] }) {
  return (
    <span class="badges">
      {words.map((word) => (
        <Badge key={word}>{word}</Badge>
      ))}
    </span>
  );
}

/** Stands for a value that is not there. */
export function None({ text = "–" }: { readonly text?: string }) {
  return <span class="quiet">{text}</span>;
}

/** A time in the viewer's zone; UTC when it is pointed at. */
export function Time({ at }: { readonly at: string | null | undefined }) {
  if (!at) return <None />;
  return (
    <time dateTime={at} title={`${at.replace("T", " ").replace(/(?:\.\d+)?Z$/, "")} UTC`}>
      {localTime(at)}
    </time>
  );
}

/** The age of something, counting up. */
export function Age({ sinceMs }: { readonly sinceMs: number }) {
  return (
    <span title={`${new Date(sinceMs).toISOString().slice(0, 19).replace("T", " ")} UTC`}>
      {spanText(clock.value - sinceMs)}
    </span>
  );
}

/** A name that a machine, a client or a person chose: always text, in its own direction. A table cuts a long one in its middle. */
export function Name({ children }: { readonly children: string }) {
  const [start, end] = nameParts(children);
  return (
    <bdi class="name" title={children}>
      {end === "" ? start : [<span>{start}</span>, end]}
    </bdi>
  );
}

/** Names after each other. */
export function Names({ of }: { readonly of: readonly string[] }) {
  return of.flatMap((name) => [<Name key={name}>{name}</Name>, " "]);
}

export function MachineLink({ name }: { readonly name: string }) {
  return (
    <a href={to(["machines", name])}>
      <Name>{name}</Name>
    </a>
  );
}

export function ModelLink({ id }: { readonly id: string }) {
  return (
    <a href={to(["models", "of", id])}>
      <Name>{id}</Name>
    </a>
  );
}

export function TeamLink({ name }: { readonly name: string }) {
  return (
    <a href={to(["teams", name])}>
      <Name>{name}</Name>
    </a>
  );
}

/** Returns the names of people by their ids. */
export function usePeople(): KeyNames {
  const { answer } = useAnswer("GET /people", {});
  return new Map(answer?.data.map(({ person, name }) => [person, name]));
}

/** A person by their name, or by the beginning of their id where the site has forgotten the name. */
export function PersonLink({ id, name }: { readonly id: string; readonly name: string | undefined }) {
  return <a href={to(["people", id])}>{name === undefined ? <Name>{id.slice(0, 12)}</Name> : <bdi>{name}</bdi>}</a>;
}

/** Returns a figure as text; a dash for none. */
export function orDash(figure: number | null, text: (figure: number) => string): string {
  return figure === null ? "–" : text(figure);
}

/** A share of a whole, with its numbers in words. */
export function Bar({ part, whole, label }: { readonly part: number; readonly whole: number; readonly label: string }) {
  return (
    <meter
      class="bar"
      min={0}
      max={Math.max(1, whole)}
      value={Math.min(part, whole)}
      high={whole * 0.9}
      aria-label={label}
      title={label}
    />
  );
}

interface GaugeProps {
  readonly part: number;
  readonly whole: number;
  readonly text: string;
  /** The words behind the text for a screen reader. */
  readonly what: string;
}

/** A bar with its numbers in words beside. */
export function Gauge({ part, whole, text, what }: GaugeProps) {
  return (
    <span class="gauge">
      <Bar part={part} whole={whole} label={`${text} ${what}`} /> <small>{text}</small>
    </span>
  );
}

/** The expiry of something, by its distance from now. The time itself is shown when it is pointed at. */
export function Expiry({ at }: { readonly at: string }) {
  const [atMs, nowMs] = [Date.parse(at), clock.value];
  return (
    <time dateTime={at} title={localTime(at)}>
      {atMs < nowMs && "expired "}
      {fromNow(atMs, nowMs)}
    </time>
  );
}

const keyTones: Readonly<Record<ShownKey["state"], Tone>> = {
  valid: "good",
  disabled: "warn",
  expired: "plain",
  revoked: "bad",
};

export function KeyState({ state }: Pick<ShownKey, "state">) {
  return <Badge tone={keyTones[state]}>{state}</Badge>;
}

export type KeyNames = ReadonlyMap<string, string>;

/** Returns the names of keys by their ids. */
export function useKeyNames(): KeyNames {
  const { answer } = useAnswer("GET /keys", { query: { limit: 1_000 } });
  return new Map(answer?.data.map(({ id, name }) => [id, name]));
}

/** A key by its name with the id beside, or by its id alone where it has no name any more. */
export function KeyName({ id, name }: { readonly id: string; readonly name: string | undefined }) {
  return (
    <>
      <a href={to(["keys", id])}>{name === undefined ? <Name>{id}</Name> : <bdi>{name}</bdi>}</a>
      {name !== undefined && (
        <small>
          {" "}
          <Name>{id}</Name>
        </small>
      )}
    </>
  );
}

const capabilityWords = { vision: "vision", tools: "tools", thinking: "thinking", embedding: "embeddings" } as const;

/** The capabilities of a model, on all or on some of its machines. */
export function ModelBadges({ offers }: { readonly offers: readonly ShownModel[] }) {
  const words = Object.entries(capabilityWords).flatMap(([capability, word]) => {
    const able = offers.filter(({ capabilities }) => capabilities[capability as keyof typeof capabilityWords]).length;
    return able === 0 ? [] : [able === offers.length ? word : `${word} on ${able} of ${offers.length}`];
  });
  return <Badges words={offers.some((each) => each.apple_mlx) ? [...words, "MLX"] : words} />;
}
