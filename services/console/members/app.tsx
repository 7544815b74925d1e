import { useEffect } from "preact/hooks";
import { type ApiFault, useRead } from "../admin-api.ts";
import { Account, Frame, type Pages } from "../frame.tsx";
import { FaultNotice } from "../parts.tsx";
import { OwnKeys } from "./keys-page.tsx";
import { LoginPage } from "./login-page.tsx";
import { OwnModels } from "./models-page.tsx";
import { OwnPlayground } from "./playground-page.tsx";
import { OwnRequests } from "./requests-page.tsx";
import { isLogin, session, signOut } from "./session.ts";
import { OwnUsage } from "./usage-page.tsx";

const pages: Pages = {
  keys: ["Keys", OwnKeys],
  usage: ["Usage", OwnUsage],
  requests: ["Requests", OwnRequests],
  models: ["Models", OwnModels],
  playground: ["Playground", OwnPlayground],
};

export function MemberApp() {
  const { value } = session;
  if (value.state === "opening") return <p class="first-word">Trunkline opens…</p>;
  if (value.state === "out") return <MemberSignIn fault={value.fault} />;
  if (isLogin()) return <LoginPage self={value.self} />;
  const { name, teams } = value.self;
  return (
    <Frame
      pages={pages}
      account={
        <Account
          name={name}
          role={teams.length === 0 ? "in no team yet" : teams.map(({ team }) => team).join(", ")}
          everywhere="All your sessions end at once, in all browsers. Your keys stay valid."
          onLeave={signOut}
        />
      }
    />
  );
}

function MemberSignIn({ fault }: { readonly fault: ApiFault | undefined }) {
  const { answer, fault: away } = useRead<{ readonly openid: string }>("/console/session");
  useEffect(() => {
    document.title = "Sign in · Trunkline";
  }, []);
  return (
    <main class="sign-in" id="page" tabIndex={-1}>
      <h1>
        <img src="/console/icon.svg" alt="" width="32" height="32" />
        Trunkline
      </h1>
      <FaultNotice fault={fault ?? away} />
      <p>Sign in to make keys for the models of this site, and to see what you used.</p>
      {answer && (
        <a class="button primary" href="/console/openid" data-leaves="">
          Sign in with {answer.openid}
        </a>
      )}
    </main>
  );
}
