/** The parts of forms: fields, and buttons that work. */
import { type ComponentChildren, createContext, type TargetedSubmitEvent } from "preact";
import { useContext, useId, useState } from "preact/hooks";
import { setQuery } from "./address.ts";
import { announce } from "./announce.ts";
import { type ApiFault, faultOf } from "./admin-api.ts";
import { fieldOf, wordsAtField } from "./field-words.ts";
import { FaultNotice } from "./parts.tsx";
import { type Suggested, Suggestions } from "./suggestions.tsx";

/** The fault of the latest attempt of a form, and the field at which it stands. */
interface FormFault {
  readonly fault?: ApiFault;
  readonly field?: string | undefined;
}
const FaultContext = createContext<FormFault>({});

interface FieldProps {
  readonly label: string;
  /** Says what may stand in the field. */
  readonly hint?: ComponentChildren;
  /** The parameter of the admin API. Its faults stand at the field. */
  readonly param?: string | undefined;
}

/** The attributes by which an input belongs to its field. */
interface FieldAttributes {
  readonly name?: string | undefined;
  readonly "aria-describedby"?: string | undefined;
  readonly "aria-invalid"?: true | undefined;
}

/** A field of a form with its label, and with the fault of its parameter. */
export function Field({
  label,
  hint,
  param,
  children,
}: FieldProps & { readonly children: (id: string, attributes: FieldAttributes) => ComponentChildren }) {
  const id = useId();
  const { fault, field } = useContext(FaultContext);
  const wrong = param !== undefined && param === field ? fault : undefined;
  const aboutId = hint || wrong ? `${id}-about` : undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id, { name: param, "aria-describedby": aboutId, "aria-invalid": wrong && true })}
      {aboutId && (
        <small id={aboutId}>
          {wrong && <strong class="bad">{wordsAtField(wrong.message)}</strong>}
          {hint}
        </small>
      )}
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
  readonly suggest?: Suggested;
  readonly onFocus?: () => void;
}

/** A field for one line of text. Names and keys are no words: nothing completes or corrects them. */
export function TextField({ label, hint, param, onText, onTaken, type = "text", suggest, ...input }: TextFieldProps) {
  return (
    <Field label={label} hint={hint} param={param}>
      {(id, attributes) => [
        <input
          {...input}
          {...attributes}
          id={id}
          list={suggest && `${id}-suggestions`}
          // Preact has a type for each kind of input, and this field's attributes are those of all of them.
          // oxlint-disable-next-line typescript/no-unnecessary-type-assertion
          type={type as "text"}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => onText(event.currentTarget.value)}
          onBlur={() => onTaken?.()}
          onKeyDown={(event) => event.key === "Enter" && onTaken?.()}
        />,
        suggest && <Suggestions {...suggest} id={`${id}-suggestions`} text={input.value} />,
      ]}
    </Field>
  );
}

/** Returns the attributes of the fields of a form by their names. `at` stands before each parameter. */
export function fieldsOf<Texts extends Readonly<Record<string, string>>>(
  texts: Texts,
  onTexts: (texts: Texts) => void,
  at = "",
) {
  return (name: keyof Texts & string, label: string) => ({
    label,
    param: at + name,
    value: texts[name] ?? "",
    onText: (text: string) => onTexts({ ...texts, [name]: text }),
  });
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
  readonly hint?: string;
  readonly checked: boolean;
  readonly onCheck: (checked: boolean) => void;
}) {
  const { label, hint, checked, onCheck } = props;
  const id = useId();
  return (
    <div class="check">
      <input
        type="checkbox"
        id={id}
        checked={checked}
        aria-describedby={hint && `${id}-about`}
        onChange={(event) => onCheck(event.currentTarget.checked)}
      />
      <div>
        <label for={id}>{label}</label>
        {hint && <small id={`${id}-about`}>{hint}</small>}
      </div>
    </div>
  );
}

interface ChoiceProps extends FieldProps {
  readonly value: string;
  /** The values, each with its text if it has another one. */
  readonly options: readonly (string | readonly [value: string, text: string])[];
  readonly onChoose: (value: string) => void;
}

export function Choice({ label, hint, param, value, options, onChoose }: ChoiceProps) {
  return (
    <Field label={label} hint={hint} param={param}>
      {(id, attributes) => (
        <select {...attributes} id={id} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
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
  /** The text of the button that leaves the form. */
  readonly dismiss?: string;
  readonly onDo: () => unknown;
}

/** A form that does one thing. Its button says while it works. A fault stands at the field of its parameter, or beneath. */
export function ActionForm(
  props: ActionProps & { readonly onCancel?: () => void; readonly children?: ComponentChildren },
) {
  const { action, danger, dismiss = "Cancel", onDo, onCancel, children } = props;
  const [state, setState] = useState<FormFault & { readonly busy: boolean }>({ busy: false });
  const submit = async (event: TargetedSubmitEvent<HTMLFormElement>): Promise<void> => {
    event.preventDefault();
    const { elements } = event.currentTarget;
    setState({ busy: true });
    try {
      await onDo();
      announce(`${action}: done.`);
      setState({ busy: false });
    } catch (error) {
      const fault = faultOf(error);
      const field = fieldOf(fault.param ?? "", (name) => elements.namedItem(name) !== null);
      setState({ busy: false, fault, field });
      const input = field && elements.namedItem(field);
      if (input instanceof HTMLElement) input.focus();
    }
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      <FaultContext.Provider value={state}>{children}</FaultContext.Provider>
      <FaultNotice fault={state.field === undefined ? state.fault : undefined} />
      <div class="actions">
        {onCancel && <Button text={dismiss} onDo={onCancel} />}
        <button class={danger ? "danger" : "primary"} disabled={state.busy}>
          {state.busy ? "Working…" : action}
        </button>
      </div>
    </form>
  );
}
