import { useEffect, useId, useState } from "preact/hooks";
import { go, to } from "./address.ts";
import { useAnswer } from "./admin-api.ts";
import { Dialog } from "./dialogs.tsx";
import { findBest, type Findable } from "./find-words.ts";
import { Button } from "./forms.tsx";
import { fleet } from "./live.ts";
import { mayChange, mayChangeKeys } from "./session.ts";

const shownMax = 10;
const isMac = navigator.userAgent.includes("Mac OS X");

/** A button, and a shortcut on every page, that find pages, machines, models, keys and requests, and what one often does. */
export function Finder({ pages }: { readonly pages: readonly Findable[] }) {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "k" || !(isMac ? event.metaKey : event.ctrlKey) || event.shiftKey) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener("keydown", onKeyDown);
    return () => removeEventListener("keydown", onKeyDown);
  }, []);
  const shortcut = isMac ? "⌘K" : "Ctrl K";
  return (
    <>
      <Button text={["Find ", <kbd>{shortcut}</kbd>]} look="finder" onDo={() => setOpen(true)} />
      {isOpen && <FinderDialog pages={pages} onClose={() => setOpen(false)} />}
    </>
  );
}

interface FinderProps {
  readonly pages: readonly Findable[];
  readonly onClose: () => void;
}

function FinderDialog({ pages, onClose }: FinderProps) {
  const [asked, setAsked] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const found = findBest([...pages, ...actions(), ...useThings(), ...requestOf(asked.trim())], asked, shownMax);
  const choose = (entry: Findable | undefined): void => {
    if (entry === undefined) return;
    onClose();
    go(entry.address);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Enter") choose(found[at]);
    else if (step !== undefined) setAt((at + step + found.length) % Math.max(1, found.length));
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title="Find" onClose={onClose}>
      <input
        type="search"
        role="combobox"
        list={undefined}
        aria-label="Find a page, machine, model, key, request or action"
        aria-expanded="true"
        aria-autocomplete="list"
        aria-controls={id}
        aria-activedescendant={found[at] && `${id}-${at}`}
        autocomplete="off"
        spellcheck={false}
        value={asked}
        onInput={(event) => [setAsked(event.currentTarget.value), setAt(0)]}
        onKeyDown={onKeyDown}
      />
      <ul id={id} role="listbox" aria-label="Found" class="found">
        {found.map((entry, place) => (
          <li
            key={`${entry.kind} ${entry.address}`}
            id={`${id}-${place}`}
            role="option"
            aria-selected={place === at}
            onClick={() => choose(entry)}
          >
            <bdi>{entry.text}</bdi> <small>{entry.kind}</small>
          </li>
        ))}
      </ul>
      <p class="quiet" role="status">
        {found.length === 0 ? "Nothing is found." : "Choose with ↑ and ↓, and open with Enter."}
      </p>
    </Dialog>
  );
}

function actions(): Findable[] {
  const doing = (text: string, address: string): Findable => ({ kind: "action", text, address });
  return [
    ...(mayChange() ? [doing("Pair a machine", to(["machines"], { pair: "new" }))] : []),
    ...(mayChangeKeys() ? [doing("Issue a key", to(["keys"], { issue: "new" }))] : []),
    ...(mayChange() ? [doing("Pull a model", to(["models"], { pull: "new" }))] : []),
    doing("Show failed requests", to(["requests"], { failed: "true" })),
    doing("Show today's changes", to(["trail"], { day: new Date().toLocaleDateString("sv") })),
  ];
}

/** The machines, models and keys of the site. */
function useThings(): Findable[] {
  const models = useAnswer("GET /models", {}).answer?.data ?? [];
  const keys = useAnswer("GET /keys", { query: { limit: 1_000 } }).answer?.data ?? [];
  const ids = [...new Set(models.map((each) => each.id))];
  return [
    ...(fleet.value?.data ?? []).map(({ machine }) => ({
      kind: "machine",
      text: machine,
      address: to(["machines", machine]),
    })),
    ...ids.map((model) => ({ kind: "model", text: model, address: to(["models", "of", model]) })),
    ...keys.map((key) => ({ kind: `key ${key.id}`, text: key.name, address: to(["keys", key.id]) })),
  ];
}

function requestOf(asked: string): Findable[] {
  return asked.startsWith("req_") ? [{ kind: "request", text: asked, address: to(["requests", asked]) }] : [];
}
