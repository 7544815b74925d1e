/** The parts of which pages are made: tables, facts, notices, times, names. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { to } from "./address.ts";
import type { ApiFault } from "./admin-api.ts";
import { clock } from "./live.ts";
import { localTime, spanText } from "./quantity.ts";

export function Page({
  title,
  about,
  actions,
  children,
}: {
  readonly title: string;
  readonly about?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · Trunkline`;
  }, [title]);
  return (
    <main id="page" tabIndex={-1}>
      <header class="page-head">
        <div>
          <h1 dir="auto">{title}</h1>
          {about && <p class="quiet">{about}</p>}
        </div>
        {actions && <div class="actions">{actions}</div>}
      </header>
      {children}
    </main>
  );
}

export type Tone = "good" | "warn" | "bad" | "plain";

/** A short word with a meaning. The word says it; the colour only helps. */
export function Badge({
  tone = "plain",
  title,
  children,
}: {
  readonly tone?: Tone;
  readonly title?: string;
  readonly children: ComponentChildren;
}) {
  return (
    <span class={`badge ${tone}`} title={title}>
      {children}
    </span>
  );
}

/** A sentence that the viewer must not miss, with what to do about it. */
export function Notice({ tone = "plain", children }: { readonly tone?: Tone; readonly children: ComponentChildren }) {
  return (
    <div class={`notice ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      {children}
    </div>
  );
}

/** Says that a list leaves records out. */
export function UnreadNotice({ unread = 0 }: { readonly unread?: number | undefined }) {
  return unread === 0 ? null : (
    <Notice>Not shown, since this gateway cannot read them: {unread}. A newer one can.</Notice>
  );
}

/** Shows a fault of the gateway; nothing without one. */
export function FaultNotice({ fault }: { readonly fault: ApiFault | undefined }) {
  return fault === undefined ? null : <Notice tone="bad">{fault.message}</Notice>;
}

/** Shows a fault of the gateway, or the words while its answer is waited for. */
export function Waiting({
  fault,
  children,
}: {
  readonly fault: ApiFault | undefined;
  readonly children: ComponentChildren;
}) {
  return fault === undefined ? <p class="quiet">{children}</p> : <FaultNotice fault={fault} />;
}

export interface Column<Row> {
  readonly name: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Numbers stand at the right. */
  readonly right?: boolean;
  /** Left out on narrow screens. */
  readonly wide?: boolean;
}

export function Table<Row>({
  caption,
  columns,
  rows,
  keyOf,
  empty,
}: {
  /** The name of the table for screen readers. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  readonly empty: ComponentChildren;
}) {
  if (rows.length === 0) return <p class="empty">{empty}</p>;
  const classOf = ({ right, wide }: Column<Row>) => [right && "right", wide && "wide"].filter(Boolean).join(" ");
  return (
    <div class="table-room" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <thead>
          <tr>
            {columns.map((column) => (
              <th key={column.name} scope="col" class={classOf(column)}>
                {column.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map((column) => (
                <td key={column.name} class={classOf(column)}>
                  {column.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export type Fact = readonly [name: string, value: ComponentChildren];

/** A list of names and values. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl class="facts">
      {facts.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value ?? <span class="quiet">–</span>}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Text to be copied: a key, a line for a shell. */
export function CopyText({ label, text }: { readonly label: string; readonly text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    setCopied(true);
    setTimeout(() => setCopied(false), 2_000);
  };
  return (
    <div class="copy">
      <span class="copy-label">{label}</span>
      <pre tabIndex={0} aria-label={label}>
        {text}
      </pre>
      <button type="button" onClick={() => void copy()} aria-label={`Copy: ${label}`}>
        {copied ? "Copied" : "Copy"}
      </button>
    </div>
  );
}

/** A time in the viewer's zone; UTC when it is pointed at. */
export function Time({ at }: { readonly at: string | null | undefined }) {
  return at ? (
    <time dateTime={at} title={`${at.replace("T", " ").replace(/(?:\.\d+)?Z$/, "")} UTC`}>
      {localTime(at)}
    </time>
  ) : (
    <span class="quiet">–</span>
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

/** A name that a machine, a client or a person chose: always text, in its own direction. */
export function Name({ children }: { readonly children: string }) {
  return (
    <bdi class="name" title={children}>
      {children}
    </bdi>
  );
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
