/** The parts of which pages are made: sections, facts, notices. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { announce } from "./announce.ts";
import type { ApiFault, Shown } from "./admin-api.ts";
import { None, type Tone } from "./values.tsx";

/** A page with its title, what can be done there, and its sections. */
export function Page(props: {
  readonly title: string;
  readonly about?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${props.title} · Trunkline`;
  }, [props.title]);
  return (
    <main id="page" tabIndex={-1}>
      <header class="page-head">
        <div>
          <h1 dir="auto" tabIndex={-1}>
            {props.title}
          </h1>
          {props.about && <p class="quiet">{props.about}</p>}
        </div>
        {props.actions && <div class="actions">{props.actions}</div>}
      </header>
      {props.children}
    </main>
  );
}

/** A part of a page with its heading. `aside` stands beside that. */
export function Section(props: {
  readonly title: string;
  readonly aside?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <section>
      <header>
        <h2>{props.title}</h2>
        {props.aside}
      </header>
      {props.children}
    </section>
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
    <Notice>This gateway is too old to read {unread} more. A newer gateway shows them.</Notice>
  );
}

/** Shows a fault of the gateway; nothing without one. */
export function FaultNotice({ fault }: { readonly fault: ApiFault | undefined }) {
  return fault === undefined ? null : <Notice tone="bad">{fault.message}</Notice>;
}

/** Shows an answer of the gateway, with the fault of the latest attempt, and the words while the answer is waited for. */
export function Answered<Answer>(props: {
  readonly of: Shown<Answer>;
  readonly waiting?: string;
  readonly children: (answer: Answer) => ComponentChildren;
}) {
  const { answer, fault } = props.of;
  const waiting = fault === undefined && props.waiting && <p class="quiet">{props.waiting}</p>;
  return (
    <>
      <FaultNotice fault={fault} />
      {answer === undefined ? waiting : props.children(answer)}
    </>
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
          <dd>{value ?? <None />}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Text to be copied: a key, a line for a shell, code of an answer. */
export function CopyText({ label, text }: { readonly label: string; readonly text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(text);
    announce("Copied.");
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
