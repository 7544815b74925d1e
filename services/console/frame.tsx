/** The frame around the pages of a session: their list, the account, and the page at the address. */
import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { path, to } from "./address.ts";
import { type ApiFault, faultOf } from "./admin-api.ts";
import { announcement } from "./announce.ts";
import { Confirm } from "./dialogs.tsx";
import { Button } from "./forms.tsx";
import { FaultNotice, Page } from "./parts.tsx";
import { nextTheme, theme } from "./theme.ts";

interface PageProps {
  /** The parts of the address behind the name of the page. */
  readonly rest: readonly string[];
}
/** The pages by their names in the address. The first one is at the root. */
export type Pages = Readonly<Record<string, readonly [title: string, page: FunctionComponent<PageProps>]>>;

/** Returns the address of a page. */
export function addressIn(pages: Pages, name: string): string {
  return to(name === Object.keys(pages)[0] ? [] : [name]);
}

export function Frame(props: {
  readonly pages: Pages;
  readonly tools?: ComponentChildren;
  readonly account: ComponentChildren;
  readonly notices?: ComponentChildren;
}) {
  const { pages, tools, account, notices } = props;
  usePageFocus();
  const [folds, setFolds] = useState(true);
  const [at = Object.keys(pages)[0] ?? "", ...rest] = path.value;
  const [, Current = Unknown] = pages[at] ?? [];
  return (
    <div class="frame">
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <nav class={folds ? "side folded" : "side"} aria-label="Pages">
        <a class="brand" href={to([])}>
          <img src="/console/icon.svg" alt="" width="24" height="24" />
          Trunkline
        </a>
        {tools}
        <button type="button" class="fold" aria-expanded={!folds} onClick={() => setFolds(!folds)}>
          Menu
        </button>
        <ul onClick={() => setFolds(true)}>
          {Object.entries(pages).map(([name, [title]]) => (
            <li key={name}>
              <a href={addressIn(pages, name)} aria-current={name === at ? "page" : undefined}>
                {title}
              </a>
            </li>
          ))}
        </ul>
        <div class="side-foot">{account}</div>
      </nav>
      <div class="content">
        {notices}
        <p class="unseen" role="status">
          {announcement}
        </p>
        <Current rest={rest} />
      </div>
    </div>
  );
}

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

/** The page without a session: the name of the product, what went wrong, and the ways in. */
export function SignInFrame(props: {
  readonly fault: ApiFault | undefined;
  /** The OpenID provider, once it is known. */
  readonly provider: string | null | undefined;
  readonly about?: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  const { fault, provider, about, children } = props;
  useEffect(() => {
    document.title = "Sign in · Trunkline";
  }, []);
  return (
    <main class="sign-in" id="page" tabIndex={-1}>
      <h1>
        <img src="/console/icon.svg" alt="" width="32" height="32" />
        Trunkline
      </h1>
      <FaultNotice fault={fault} />
      {about}
      {provider && (
        <a class="button primary" href="/console/openid" data-leaves="">
          Sign in with {provider}
        </a>
      )}
      {children}
    </main>
  );
}

interface AccountProps {
  readonly name: string;
  readonly role: string;
  /** Says what the role may do. */
  readonly title?: string | undefined;
  /** The effect of signing out everywhere, for a session that may. */
  readonly everywhere?: ComponentChildren;
  readonly onLeave: (how?: { readonly everywhere: boolean }) => Promise<void>;
}

/** The name of the session, the colours, and the ways out. */
export function Account({ name, role, title, everywhere, onLeave }: AccountProps) {
  const [fault, setFault] = useState<ApiFault>();
  const leave = () => onLeave().catch((error: unknown) => setFault(faultOf(error)));
  return (
    <>
      <p class="quiet" title={title}>
        <bdi>{name}</bdi>
        <br />
        {role}
      </p>
      <Button text={`Colours: ${theme.value}`} look="quiet-button" onDo={nextTheme} />
      <Button text="Sign out" look="quiet-button" onDo={leave} />
      {everywhere && (
        <Confirm action="Sign out everywhere" effect={everywhere} onDo={() => onLeave({ everywhere: true })} />
      )}
      <FaultNotice fault={fault} />
    </>
  );
}

function Unknown() {
  return (
    <Page title="No such page">
      <p>
        Nothing is at this address. <a href={to([])}>Go to the start</a>
      </p>
    </Page>
  );
}
