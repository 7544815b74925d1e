/** The windows over a page, and the buttons that open them. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { query, setQuery } from "./address.ts";
import { ActionForm, type ActionProps, Button, TextField, type TextFieldProps } from "./forms.tsx";

export interface DialogProps {
  readonly title: ComponentChildren;
  readonly onClose: () => void;
}

interface LastChance {
  readonly question: string;
  readonly about: string;
}

/** The latest element outside of windows that had the focus. A window that gives way to another one leaves the focus to the page. */
let lastFocused: EventTarget | null = null;
globalThis.addEventListener?.("focusin", ({ target }) => {
  if (target instanceof Element && target.closest("dialog") === null) lastFocused = target;
});

/** The elements of which one gets the focus when a window opens, the first choice first. */
const entries = ["input, select, textarea", "button:not(h2 ~ *)"];

/**
 * A window over the page. Escape and a click beside it close it. With `lastChance` it asks that question before it closes.
 * The focus goes to the first field, or else to the first button, and back to the button that opened the window.
 */
export function Dialog(
  props: DialogProps & { readonly lastChance?: LastChance | undefined; readonly children: ComponentChildren },
) {
  const { title, onClose, lastChance, children } = props;
  const own = useRef<HTMLDialogElement>(null);
  const [isAsking, setAsking] = useState(false);
  const id = useId();
  const asked = isAsking ? lastChance : undefined;
  const leave = () => (lastChance === undefined ? onClose() : setAsking(!isAsking));
  useEffect(() => {
    const opener = document.activeElement === document.body ? lastFocused : document.activeElement;
    const window = own.current;
    window?.showModal();
    return () => {
      // Behind an open window nothing takes the focus.
      window?.close();
      if (opener instanceof HTMLElement) opener.focus();
    };
  }, []);
  useEffect(() => {
    const found = entries.map((each) => own.current?.querySelector<HTMLElement>(each));
    found.find((each) => each)?.focus();
  }, [isAsking]);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== "Escape") return;
    event.preventDefault();
    leave();
  };
  return (
    <dialog
      ref={own}
      aria-labelledby={id}
      // A browser would close it without a question.
      closedby="none"
      onKeyDown={onKeyDown}
      onMouseDown={(event) => event.target === own.current && leave()}
    >
      <div class="dialog-body">
        <header>
          <h2 id={id} dir="auto">
            {asked?.question ?? title}
          </h2>
          <Button text="✕" look="quiet-button" label="Close" onDo={leave} />
        </header>
        {asked === undefined ? (
          children
        ) : (
          <ActionForm action="Close" onDo={onClose} onCancel={leave}>
            <p>{asked.about}</p>
          </ActionForm>
        )}
        {lastChance !== undefined && !isAsking && (
          <div class="actions">
            <Button text="Done" onDo={leave} />
          </div>
        )}
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
      <ActionForm {...form} onDo={doAndClose} onCancel={onClose} />
    </Dialog>
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
      <Button text={text} look={isPrimary ? "primary" : ""} onDo={() => setQuery(name, value)} opens />
      {query.value.get(name) === value && window(() => setQuery(name, undefined))}
    </>
  );
}

interface TextActionProps extends Omit<TextFieldProps, "value" | "onText"> {
  /** The value of `do` in the address while the window is open. */
  readonly name: string;
  readonly action: string;
  readonly title?: ComponentChildren;
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

interface ConfirmProps extends Omit<ActionProps, "danger"> {
  /** The name of the object that the action changes. */
  readonly object?: string;
  /** The consequence, in a sentence. */
  readonly effect: ComponentChildren;
  /** True if it cannot be undone. */
  readonly isFinal?: boolean;
}

/** A button that asks before it acts, with the object's name and the effect. The harmless choice has the focus. */
export function Confirm({ object, effect, isFinal, ...form }: ConfirmProps) {
  const [isAsked, setAsked] = useState(false);
  const title = object === undefined ? `${form.action}?` : [`${form.action} `, <bdi>{object}</bdi>, "?"];
  return (
    <>
      <Button text={form.action} look={isFinal ? "danger-quiet" : ""} onDo={() => setAsked(true)} opens />
      {isAsked && (
        <FormDialog {...form} danger={isFinal} title={title} onClose={() => setAsked(false)}>
          <p>
            {effect}
            {isFinal && " It cannot be undone."}
          </p>
        </FormDialog>
      )}
    </>
  );
}
