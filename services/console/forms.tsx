/** The parts of forms: fields, buttons that work, windows over the page. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { query, setQuery } from "./address.ts";
import { type ApiFault, faultOf } from "./admin-api.ts";
import { FaultNotice } from "./parts.tsx";

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

/** A field for words that stand in the address, by which a page filters its list. */
export function FindField(props: Pick<TextFieldProps, "hint" | "placeholder">) {
  const value = query.value.get("find") ?? "";
  return <TextField label="Find" type="search" value={value} onText={(text) => setQuery("find", text)} {...props} />;
}

/** A button that sets a field of the address, such as the one that opens a window. */
export function QueryButton({
  name,
  value,
  isPrimary = false,
  children,
}: {
  readonly name: string;
  readonly value: string | undefined;
  readonly isPrimary?: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <button type="button" class={isPrimary ? "primary" : ""} onClick={() => setQuery(name, value)}>
      {children}
    </button>
  );
}

/** A field for yes or no. */
export function Check({
  label,
  checked,
  onCheck,
}: {
  readonly label: string;
  readonly checked: boolean;
  readonly onCheck: (checked: boolean) => void;
}) {
  return (
    <label class="check">
      <input type="checkbox" checked={checked} onChange={(event) => onCheck(event.currentTarget.checked)} /> {label}
    </label>
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

/** A form that does one thing. Its button says while it works; a fault stands beneath. */
export function ActionForm({
  action,
  danger = false,
  onDo,
  children,
}: {
  readonly action: string;
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
        {state.busy ? "Working…" : action}
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

/** A window with a form, which closes once that is done. */
export function FormDialog({
  title,
  onClose,
  onDo,
  ...form
}: Parameters<typeof ActionForm>[0] & { readonly title: string; readonly onClose: () => void }) {
  return (
    <Dialog title={title} onClose={onClose}>
      <ActionForm
        {...form}
        onDo={async () => {
          await onDo();
          onClose();
        }}
      />
    </Dialog>
  );
}

/** A window with one field, which closes once its text was taken. */
export function TextDialog({
  title,
  action = title,
  about,
  initial = "",
  onText,
  onClose,
  ...field
}: Omit<TextFieldProps, "value" | "onText"> & {
  readonly title: string;
  readonly action?: string;
  readonly about?: ComponentChildren;
  readonly initial?: string;
  readonly onText: (text: string) => Promise<unknown>;
  readonly onClose: () => void;
}) {
  const [text, setText] = useState(initial);
  return (
    <FormDialog title={title} action={action} onDo={() => onText(text)} onClose={onClose}>
      {about && <p>{about}</p>}
      <TextField {...field} value={text} onText={setText} />
    </FormDialog>
  );
}

/** A button that asks once more before it does what cannot be undone. */
export function Confirm({
  action,
  question,
  onDo,
  danger = true,
}: {
  readonly action: string;
  readonly question: ComponentChildren;
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
        <FormDialog title={action} onClose={() => setAsked(false)} {...{ action, danger, onDo }}>
          <p>{question}</p>
        </FormDialog>
      )}
    </>
  );
}
