/** The parts of forms: fields, and buttons that work. */
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { setQuery } from "./address.ts";
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
  /** Values that the field offers while one types. It takes others too. */
  readonly suggestions?: readonly string[];
  readonly onFocus?: () => void;
}

/** A field for one line of text. Names and keys are no words: nothing completes or corrects them. */
export function TextField(props: TextFieldProps) {
  const { label, hint, onText, onTaken, type = "text", suggestions, ...input } = props;
  const list = (id: string) => (
    <datalist id={`${id}-list`}>
      {suggestions?.map((each) => (
        <option key={each} value={each} />
      ))}
    </datalist>
  );
  return (
    <Field label={label} hint={hint}>
      {(id, hintId) => [
        <input
          {...input}
          id={id}
          list={suggestions && `${id}-list`}
          // Preact has a type for each kind of input, and this field's attributes are those of all of them.
          // oxlint-disable-next-line typescript/no-unnecessary-type-assertion
          type={type as "text"}
          aria-describedby={hint ? hintId : ""}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => onText(event.currentTarget.value)}
          onBlur={() => onTaken?.()}
          onKeyDown={(event) => event.key === "Enter" && onTaken?.()}
        />,
        suggestions && list(id),
      ]}
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
  /** True if it opens a dialog. */
  readonly opens?: boolean;
}) {
  const { text, onDo, look, label, disabled, opens } = props;
  return (
    <button
      type="button"
      class={look}
      disabled={disabled}
      aria-label={label}
      aria-haspopup={opens && "dialog"}
      onClick={() => void onDo()}
    >
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

export interface ActionProps {
  readonly action: string;
  /** True if the action cannot be undone: its button is red. */
  readonly danger?: boolean | undefined;
  readonly onDo: () => unknown;
}

/** A form that does one thing. Its button says while it works; a fault stands beneath. */
export function ActionForm(
  props: ActionProps & { readonly onCancel?: () => void; readonly children?: ComponentChildren },
) {
  const { action, danger, onDo, onCancel, children } = props;
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
      <div class="actions">
        {onCancel && <Button text="Cancel" onDo={onCancel} />}
        <button class={danger ? "danger" : "primary"} disabled={state.busy}>
          {state.busy ? "Working…" : action}
        </button>
      </div>
    </form>
  );
}
