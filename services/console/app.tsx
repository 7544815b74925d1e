import type { FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type ApiFault, faultOf } from "./admin-api.ts";
import { path, to } from "./address.ts";
import { announcement } from "./announce.ts";
import { Confirm } from "./dialogs.tsx";
import { Button } from "./forms.tsx";
import { Finder } from "./finder.tsx";
import { clock, fleet, heardAt, stale } from "./live.ts";
import { Keys } from "./pages/keys-page.tsx";
import { Machines } from "./pages/machines-page.tsx";
import { Models } from "./pages/models-page.tsx";
import { Overview } from "./pages/overview-page.tsx";
import { Playground } from "./pages/playground-page.tsx";
import { Requests } from "./pages/requests-page.tsx";
import { Sessions } from "./pages/sessions-page.tsx";
import { Site } from "./pages/site-page.tsx";
import { Trail } from "./pages/trail-page.tsx";
import { Usage } from "./pages/usage-page.tsx";
import { FaultNotice, Notice, Page } from "./parts.tsx";
import { spanText } from "./quantity.ts";
import { session, signOut } from "./session.ts";
import { SignIn } from "./sign-in-page.tsx";
import type { ShownMe } from "#shared/admin/session-operations.ts";
import { nextTheme, theme } from "./theme.ts";

interface PageProps {
  /** The parts of the address behind the name of the page. */
  readonly rest: readonly string[];
}

const pages: Readonly<Record<string, readonly [title: string, page: FunctionComponent<PageProps>]>> = {
  overview: ["Overview", Overview],
  requests: ["Requests", Requests],
  usage: ["Usage", Usage],
  machines: ["Machines", Machines],
  models: ["Models", Models],
  keys: ["Keys", Keys],
  playground: ["Playground", Playground],
  trail: ["Trail", Trail],
  sessions: ["Sessions", Sessions],
  site: ["Site", Site],
};

export function App() {
  const { value } = session;
  usePageFocus();
  if (value.state === "opening") return <p class="first-word">Trunkline opens…</p>;
  if (value.state === "out") return <SignIn fault={value.fault} />;
  const [name = "overview", ...rest] = path.value;
  const [, Current = Unknown] = pages[name] ?? [];
  return (
    <div class="frame">
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <Side at={name} me={value.me} />
      <div class="content">
        <div role="status">
          <Staleness />
        </div>
        <p class="unseen" role="status">
          {announcement}
        </p>
        <Current rest={rest} />
      </div>
    </div>
  );
}

const addressOf = (name: string): string => to(name === "overview" ? [] : [name]);
const found = Object.entries(pages).map(([name, [text]]) => ({ kind: "page", text, address: addressOf(name) }));
/** Puts the focus on the heading of a page that a link leads to, so that a screen reader reads on there. */
function usePageFocus(): void {
  const address = path.value.join("/");
  const shown = useRef(address);
  useEffect(() => {
    if (shown.current === address) return;
    shown.current = address;
    document.querySelector<HTMLElement>("main h1")?.focus();
  }, [address]);
}

const roleTitles: Readonly<Record<string, string>> = {
  viewer: "This session only reads.",
  operator: "This session changes machines, models and routes, and no keys.",
};

function Side({ at, me }: { readonly at: string; readonly me: ShownMe }) {
  const [fault, setFault] = useState<ApiFault>();
  const [folds, setFolds] = useState(true);
  const leave = () => signOut().catch((error: unknown) => setFault(faultOf(error)));
  return (
    <nav class={folds ? "side folded" : "side"} aria-label="Pages">
      <a class="brand" href={to([])}>
        <img src="/console/icon.svg" alt="" width="24" height="24" />
        Trunkline
      </a>
      <Finder pages={found} />
      <button type="button" class="fold" aria-expanded={!folds} onClick={() => setFolds(!folds)}>
        Menu
      </button>
      <ul onClick={() => setFolds(true)}>
        {Object.entries(pages).map(([name, [title]]) => (
          <li key={name}>
            <a href={addressOf(name)} aria-current={name === at ? "page" : undefined}>
              {title}
            </a>
          </li>
        ))}
      </ul>
      <div class="side-foot">
        <p class="quiet" title={roleTitles[me.role]}>
          <bdi>{me.name}</bdi>
          <br />
          {me.role}
        </p>
        <Button text={`Colours: ${theme.value}`} look="quiet-button" onDo={nextTheme} />
        <Button text="Sign out" look="quiet-button" onDo={leave} />
        {me.everywhere && (
          <Confirm
            action="Sign out everywhere"
            effect={
              <>
                Every session of the key <bdi>{me.name}</bdi> ends at once, in all browsers, and its unopened links no
                longer work.
              </>
            }
            onDo={() => signOut({ everywhere: true })}
          />
        )}
        <FaultNotice fault={fault} />
      </div>
    </nav>
  );
}

/** Says that the figures are old. Old figures are never shown as new ones. */
function Staleness() {
  if (stale.value) {
    return (
      <Notice tone="warn">
        The gateway has not answered for <Ticking text={spanText(clock.value - heardAt.value)} />. The figures below are
        from then; this page tries again by itself.
      </Notice>
    );
  }
  const { problem = null, remark = null } = fleet.value ?? {};
  if (problem !== null) return <Notice tone="bad">This gateway has a problem: {problem}.</Notice>;
  return remark ? <Notice tone="warn">This gateway serves, but {remark}.</Notice> : null;
}

/** A time that counts up. A screen reader would read out each second. */
function Ticking({ text }: { readonly text: string }) {
  return (
    <>
      <span aria-hidden="true">{text}</span>
      <span class="unseen">some seconds</span>
    </>
  );
}

function Unknown() {
  return (
    <Page title="No such page">
      <p>
        Nothing is at this address. <a href={to([])}>Go to the overview</a>
      </p>
    </Page>
  );
}
