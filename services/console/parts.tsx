/** The parts of which pages are made: tables, fields, dialogs, notices, times. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type ApiFault, faultOf } from "./admin-api.ts";
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

/** Shows a fault of the gateway; nothing without one. */
export function FaultNotice({ fault }: { readonly fault: ApiFault | undefined }) {
  return fault === undefined ? null : <Notice tone="bad">{fault.message}</Notice>;
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

/** A list of names and values. */
export function Facts({ facts }: { readonly facts: readonly (readonly [name: string, value: ComponentChildren])[] }) {
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

/** A field of a form with its label. `hint` says what may stand there. */
export function Field({
  label,
  hint,
  children,
}: {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly children: (id: string, hintId: string) => ComponentChildren;
}) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id, `${id}-hint`)}
      {hint && <small id={`${id}-hint`}>{hint}</small>}
    </div>
  );
}

/** Returns the items in the text of a field, with commas, spaces or line ends between them. */
export function listIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((each) => each !== "");
}

interface TextFieldProps {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly value: string;
  readonly onText: (text: string) => void;
  /** Called when the field is left, or Enter is pressed in it. */
  readonly onTaken?: () => void;
  readonly type?: "text" | "password" | "search" | "number" | "date" | "datetime-local";
  readonly required?: boolean;
  readonly placeholder?: string;
}

/** A field for one line of text. Names and keys are no words: nothing completes or corrects them. */
export function TextField({
  label,
  hint,
  value,
  onText,
  onTaken,
  type = "text",
  required = false,
  placeholder = "",
}: TextFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => (
        <input
          id={id}
          // Preact has a type for each kind of input, and this field's attributes are those of all of them.
          // oxlint-disable-next-line typescript/no-unnecessary-type-assertion
          type={type as "text"}
          aria-describedby={hint ? hintId : ""}
          autocomplete="off"
          spellcheck={false}
          required={required}
          placeholder={placeholder}
          value={value}
          onInput={(event) => onText(event.currentTarget.value)}
          onBlur={() => onTaken?.()}
          onKeyDown={(event) => event.key === "Enter" && onTaken?.()}
        />
      )}
    </Field>
  );
}

export function Choice({
  label,
  hint,
  value,
  options,
  onChoose,
}: {
  readonly label: string;
  readonly hint?: ComponentChildren;
  readonly value: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly onChoose: (value: string) => void;
}) {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
          {options.map(([each, text]) => (
            <option key={each} value={each}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** A form that does one thing. While it works its button says so; a fault stands beneath. */
export function ActionForm({
  action,
  working,
  danger = false,
  onDo,
  children,
}: {
  readonly action: string;
  readonly working: string;
  readonly danger?: boolean;
  readonly onDo: () => Promise<unknown>;
  readonly children?: ComponentChildren;
}) {
  const [state, setState] = useState<{ readonly busy: boolean; readonly fault?: ApiFault }>({ busy: false });
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setState({ busy: true });
    try {
      await onDo();
      setState({ busy: false });
    } catch (error) {
      setState({ busy: false, fault: faultOf(error) });
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      {children}
      <FaultNotice fault={state.fault} />
      <button class={danger ? "danger" : "primary"} disabled={state.busy}>
        {state.busy ? working : action}
      </button>
    </form>
  );
}

/** A window over the page. Escape and a click beside it close it. */
export function Dialog({
  title,
  onClose,
  children,
}: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}) {
  const own = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    own.current?.showModal();
  }, []);
  return (
    <dialog
      ref={own}
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => event.target === own.current && own.current?.close()}
    >
      <div class="dialog-body">
        <header>
          <h2 id={id} dir="auto">
            {title}
          </h2>
          <button type="button" class="quiet-button" aria-label="Close" onClick={() => own.current?.close()}>
            ✕
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** A button that asks once more before it does what cannot be undone. */
export function Confirm({
  action,
  question,
  working,
  onDo,
  danger = true,
}: {
  readonly action: string;
  readonly question: ComponentChildren;
  readonly working: string;
  readonly danger?: boolean;
  readonly onDo: () => Promise<unknown>;
}) {
  const [asked, setAsked] = useState(false);
  return (
    <>
      <button type="button" class={danger ? "danger-quiet" : ""} onClick={() => setAsked(true)}>
        {action}
      </button>
      {asked && (
        <Dialog title={action} onClose={() => setAsked(false)}>
          <p>{question}</p>
          <ActionForm
            action={action}
            working={working}
            danger={danger}
            onDo={async () => {
              await onDo();
              setAsked(false);
            }}
          />
        </Dialog>
      )}
    </>
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
