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

/** A button, and a shortcut on every page, that find pages, machines, models, keys, teams, people and requests, and what one often does. */
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
  return (
    <>
      <Button text={["Find ", <kbd>{isMac ? "⌘K" : "Ctrl K"}</kbd>]} look="finder" onDo={() => setOpen(true)} />
      {isOpen && <FinderDialog pages={pages} onClose={() => setOpen(false)} />}
    </>
  );
}

function FinderDialog({ pages, onClose }: { readonly pages: readonly Findable[]; readonly onClose: () => void }) {
  const [asked, setAsked] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const request = asked.startsWith("req_") ? [linkTo("request", asked.trim(), ["requests", asked.trim()])] : [];
  const found = findBest([...pages, ...actions(), ...useThings(), ...request], asked, shownMax);
  const choose = (entry: Findable): void => {
    onClose();
    go(entry.address);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const chosen = found[at];
    if (event.key === "Enter" && chosen !== undefined) choose(chosen);
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
        aria-label="Find a page, machine, model, key, team, person, request or action"
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

/** Actions that the session may do, as links to their windows. */
function actions(): Findable[] {
  const day = new Date().toLocaleDateString("sv");
  return [
    ...(mayChange() ? [linkTo("action", "Pair a machine", ["machines"], { pair: "new" })] : []),
    ...(mayChangeKeys() ? [linkTo("action", "Issue a key", ["keys"], { issue: "new" })] : []),
    ...(mayChangeKeys() ? [linkTo("action", "Create a team", ["teams"], { create: "new" })] : []),
    ...(mayChangeKeys() ? [linkTo("action", "Set a price", ["prices"], { edit: "*new" })] : []),
    ...(mayChange() ? [linkTo("action", "Pull a model", ["models"], { pull: "new" })] : []),
    linkTo("action", "Show failed requests", ["requests"], { outcome: "failed" }),
    linkTo("action", "Show today's changes", ["trail"], { day }),
  ];
}

/** The machines, models, keys, teams and people of the site. */
function useThings(): Findable[] {
  const models = useAnswer("GET /models", {}).answer?.data ?? [];
  const keys = useAnswer("GET /keys", { query: { limit: 1_000 } }).answer?.data ?? [];
  const teams = useAnswer("GET /teams", {}).answer?.data ?? [];
  const people = useAnswer("GET /people", {}).answer?.data ?? [];
  return [
    ...(fleet.value?.data ?? []).map(({ machine }) => linkTo("machine", machine, ["machines", machine])),
    ...[...new Set(models.map((each) => each.id))].map((id) => linkTo("model", id, ["models", "of", id])),
    ...teams.map(({ team }) => linkTo("team", team, ["teams", team])),
    ...people.map(({ person, name, email }) => linkTo(`person ${email ?? ""}`, name, ["people", person])),
    ...keys.map(({ id, name }) => linkTo(`key ${id}`, name, ["keys", id])),
  ];
}

function linkTo(kind: string, text: string, path: readonly string[], asked?: Record<string, string>): Findable {
  return { kind, text, address: to(path, asked) };
}
