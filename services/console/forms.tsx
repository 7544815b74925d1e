/** The parts of forms: fields, buttons that work, windows over the page. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { query, setQuery } from "./address.ts";
import { type ApiFault, faultOf } from "./admin-api.ts";
import { FaultNotice } from "./parts.tsx";

interface FieldProps {
  readonly label: string;
  /** Says what may stand in the field. */
  readonly hint?: ComponentChildren;
}

/** A field of a form with its label. */
export function Field({
  label,
  hint,
  children,
}: FieldProps & { readonly children: (id: string, hintId: string) => ComponentChildren }) {
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

export interface TextFieldProps extends FieldProps {
  readonly value: string;
  readonly onText: (text: string) => void;
  /** Called when the field is left, or Enter is pressed in it. */
  readonly onTaken?: () => void;
  readonly type?: "text" | "password" | "search" | "number" | "date" | "datetime-local";
  readonly required?: boolean;
  readonly placeholder?: string;
}

/** A field for one line of text. Names and keys are no words: nothing completes or corrects them. */
export function TextField({ label, hint, onText, onTaken, type = "text", ...input }: TextFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => (
        <input
          {...input}
          id={id}
          // Preact has a type for each kind of input, and this field's attributes are those of all of them.
          // oxlint-disable-next-line typescript/no-unnecessary-type-assertion
          type={type as "text"}
          aria-describedby={hint ? hintId : ""}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => onText(event.currentTarget.value)}
          onBlur={() => onTaken?.()}
          onKeyDown={(event) => event.key === "Enter" && onTaken?.()}
        />
      )}
    </Field>
  );
}

interface QueryProps {
  readonly name: string;
  /** The field of the address that another choice makes void: the page of the main table, unless it is another. */
  readonly drops?: string;
}

/** A field whose text stands in the address, under `name`. */
export function QueryField({ name, drops = "page", ...field }: Omit<TextFieldProps, "onText"> & QueryProps) {
  return <TextField {...field} onText={(text) => setQuery(name, text, drops)} />;
}

/** The fields by which a page chooses what it shows. They take effect at once. */
export function Filters({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <form class="row" onSubmit={(event) => event.preventDefault()} aria-label={label}>
      {children}
    </form>
  );
}

/** A button outside of a form, or one that does not send it. */
export function Button(props: {
  readonly text: ComponentChildren;
  readonly onDo: () => unknown;
  readonly look?: string;
  readonly label?: string;
  readonly disabled?: boolean;
}) {
  const { text, onDo, look, label, disabled } = props;
  return (
    <button type="button" class={look} disabled={disabled} aria-label={label} onClick={() => void onDo()}>
      {text}
    </button>
  );
}

/** A link to another page that looks like a button. */
export function LinkButton({ text, href }: { readonly text: string; readonly href: string }) {
  return (
    <a class="button" href={href}>
      {text}
    </a>
  );
}

/** A button that opens a window. The window has an address: the field `name` of the query has the `value`. */
export function WindowButton(props: {
  readonly text: string;
  readonly name?: string;
  readonly value: string;
  readonly isPrimary?: boolean;
  readonly window: (close: () => void) => ComponentChildren;
}) {
  const { text, name = "do", value, isPrimary, window } = props;
  return (
    <>
      <Button text={text} look={isPrimary ? "primary" : ""} onDo={() => setQuery(name, value)} />
      {query.value.get(name) === value && window(() => setQuery(name, undefined))}
    </>
  );
}

/** A field for yes or no. */
export function Check(props: {
  readonly label: string;
  readonly checked: boolean;
  readonly onCheck: (checked: boolean) => void;
}) {
  const { label, checked, onCheck } = props;
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onCheck(event.currentTarget.checked)} /> {label}
    </label>
  );
}

interface ChoiceProps extends FieldProps {
  readonly value: string;
  /** The values, each with its text if it has another one. */
  readonly options: readonly (string | readonly [value: string, text: string])[];
  readonly onChoose: (value: string) => void;
}

export function Choice({ label, hint, value, options, onChoose }: ChoiceProps) {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
          {options.map((option) => {
            const [each, text] = typeof option === "string" ? [option, option] : option;
            return (
              <option key={each} value={each}>
                {text}
              </option>
            );
          })}
        </select>
      )}
    </Field>
  );
}

/** A choice that stands in the address, under `name`. */
export function QueryChoice({ name, drops = "page", ...choice }: Omit<ChoiceProps, "onChoose"> & QueryProps) {
  return <Choice {...choice} onChoose={(value) => setQuery(name, value, drops)} />;
}

interface ActionProps {
  readonly action: string;
  readonly danger?: boolean;
  readonly onDo: () => Promise<unknown>;
}

/** A form that does one thing. Its button says while it works; a fault stands beneath. */
export function ActionForm(props: ActionProps & { readonly children?: ComponentChildren }) {
  const { action, danger, onDo, children } = props;
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
        {state.busy ? "Working…" : action}
      </button>
    </form>
  );
}

export interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
}

/** A window over the page. Escape and a click beside it close it. */
export function Dialog({ title, onClose, children }: DialogProps & { readonly children: ComponentChildren }) {
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
          <Button text="✕" look="quiet-button" label="Close" onDo={() => own.current?.close()} />
        </header>
        {children}
      </div>
    </dialog>
  );
}

/** A window with a form, which closes once that is done. */
export function FormDialog({ title, onClose, onDo, ...form }: DialogProps & Parameters<typeof ActionForm>[0]) {
  const doAndClose = async (): Promise<void> => {
    await onDo();
    onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <ActionForm {...form} onDo={doAndClose} />
    </Dialog>
  );
}

interface TextActionProps extends Omit<TextFieldProps, "value" | "onText"> {
  /** The value of `do` in the address while the window is open. */
  readonly name: string;
  readonly action: string;
  readonly title?: string;
  /** The text of the button in the window, if it is not `action`. */
  readonly confirm?: string;
  readonly about?: string;
  readonly initial?: string;
  readonly onText: (text: string) => Promise<unknown>;
}

/** A button that opens a window with one field, which closes once its text was taken. */
export function TextAction({ name, ...asked }: TextActionProps) {
  const window = (close: () => void) => <TextDialog {...asked} onClose={close} />;
  return <WindowButton text={asked.action} value={name} window={window} />;
}

function TextDialog(props: Omit<TextActionProps, "name"> & { readonly onClose: () => void }) {
  const { action, title = action, confirm = action, about, initial = "", onText, onClose, ...field } = props;
  const [text, setText] = useState(initial);
  return (
    <FormDialog title={title} action={confirm} onDo={() => onText(text)} onClose={onClose}>
      {about && <p>{about}</p>}
      <TextField {...field} value={text} onText={setText} />
    </FormDialog>
  );
}

/** A button that asks once more before it does what cannot be undone. */
export function Confirm(props: ActionProps & { readonly question: ComponentChildren }) {
  const { question, danger = true, ...form } = props;
  const [asked, setAsked] = useState(false);
  return (
    <>
      <Button text={form.action} look={danger ? "danger-quiet" : ""} onDo={() => setAsked(true)} />
      {asked && (
        <FormDialog {...form} danger={danger} title={form.action} onClose={() => setAsked(false)}>
          <p>{question}</p>
        </FormDialog>
      )}
    </>
  );
}
