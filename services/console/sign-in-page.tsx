import { useEffect, useState } from "preact/hooks";
import { type ApiFault, send } from "./admin-api.ts";
import { ActionForm, TextField } from "./forms.tsx";
import { SignInFrame } from "./frame.tsx";
import { signIn } from "./session.ts";

/** The page before a session. It is static and knows nothing of the site. */
export function SignIn({ fault }: { readonly fault: ApiFault | undefined }) {
  const [key, setKey] = useState("");
  const [provider, setProvider] = useState<string | null>(null);
  useEffect(() => {
    void send("/console/session")
      .then((answer) => answer.json())
      .then(({ openid }: { readonly openid: string | null }) => setProvider(openid))
      .catch(() => undefined);
  }, []);
  return (
    <SignInFrame fault={fault} provider={provider}>
      <section>
        <h2>Open a link</h2>
        <p>
          On the machine that runs Trunkline, this prints a link that signs you in. The link works once, for ten
          minutes:
        </p>
        <pre tabIndex={0} aria-label="The command that prints a link">
          trunkline console
        </pre>
        <p class="quiet">
          In a checkout: <code>node_modules/.bin/trunkline console</code>
        </p>
      </section>
      <section>
        <h2>Or paste a key</h2>
        <ActionForm action="Sign in" onDo={() => signIn(key.trim())}>
          <TextField
            label="Admin or viewer key"
            hint="A viewer key reads and changes nothing."
            value={key}
            onText={setKey}
            type="password"
            required
            placeholder="trunkline_admin_…"
          />
        </ActionForm>
      </section>
    </SignInFrame>
  );
}
