import { Finder } from "./finder.tsx";
import { Account, addressIn, Frame, type Pages } from "./frame.tsx";
import { clock, fleet, heardAt, stale } from "./live.ts";
import { Alerts } from "./pages/alerts-page.tsx";
import { Keys } from "./pages/keys-page.tsx";
import { Machines } from "./pages/machines-page.tsx";
import { Models } from "./pages/models-page.tsx";
import { Overview } from "./pages/overview-page.tsx";
import { People } from "./pages/people-page.tsx";
import { Playground } from "./pages/playground-page.tsx";
import { Prices } from "./pages/prices-page.tsx";
import { Requests } from "./pages/requests-page.tsx";
import { Sessions } from "./pages/sessions-page.tsx";
import { Site } from "./pages/site-page.tsx";
import { Teams } from "./pages/teams-page.tsx";
import { Trail } from "./pages/trail-page.tsx";
import { Usage } from "./pages/usage-page.tsx";
import { Notice } from "./parts.tsx";
import { spanText } from "./quantity.ts";
import { session, signOut } from "./session.ts";
import { SignIn } from "./sign-in-page.tsx";

const pages: Pages = {
  overview: ["Overview", Overview],
  requests: ["Requests", Requests],
  usage: ["Usage", Usage],
  machines: ["Machines", Machines],
  models: ["Models", Models],
  keys: ["Keys", Keys],
  teams: ["Teams", Teams],
  people: ["People", People],
  prices: ["Prices", Prices],
  playground: ["Playground", Playground],
  trail: ["Trail", Trail],
  alerts: ["Alerts", Alerts],
  sessions: ["Sessions", Sessions],
  site: ["Site", Site],
};

const { alerts: _, ...openPages } = pages;
const foundIn = (of: Pages) =>
  Object.entries(of).map(([name, [text]]) => ({ kind: "page", text, address: addressIn(of, name) }));
const roleTitles: Readonly<Record<string, string>> = {
  viewer: "This session only reads.",
  operator: "This session changes machines, models and routes, and no keys.",
};

export function App() {
  const { value } = session;
  if (value.state === "opening") return <p class="first-word">Trunkline opens…</p>;
  if (value.state === "out") return <SignIn fault={value.fault} />;
  const { name, role, everywhere } = value.me;
  const own = role === "admin" ? pages : openPages;
  const allEnd = everywhere && (
    <>
      Every session of the key <bdi>{name}</bdi> ends at once, in all browsers, and its unopened links no longer work.
    </>
  );
  return (
    <Frame
      pages={own}
      tools={<Finder pages={foundIn(own)} />}
      account={<Account name={name} role={role} title={roleTitles[role]} everywhere={allEnd} onLeave={signOut} />}
      notices={
        <div role="status">
          <Staleness />
        </div>
      }
    />
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
