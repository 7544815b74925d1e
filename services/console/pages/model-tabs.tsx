import { to } from "../address.ts";

const tabs = {
  models: ["Models", to(["models"])],
  kept: ["Kept", to(["models", "kept"])],
  missing: ["Missing", to(["models", "missing"])],
  routes: ["Routes", to(["models", "routes"])],
} as const;

/** The lists of names that clients may ask for, and of what machines keep. */
export function ModelTabs({ at }: { readonly at: keyof typeof tabs }) {
  return (
    <nav class="tabs" aria-label="Models and routes">
      {Object.entries(tabs).map(([name, [title, address]]) => (
        <a key={name} href={address} aria-current={at === name ? "page" : undefined}>
          {title}
        </a>
      ))}
    </nav>
  );
}
