import { type ApiFault, useRead } from "../admin-api.ts";
import { Account, Frame, type Pages, SignInFrame } from "../frame.tsx";
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
  const about = <p>Sign in to make keys for the models of this site, and to see what you used.</p>;
  return <SignInFrame fault={fault ?? away} provider={answer?.openid} about={about} />;
}
