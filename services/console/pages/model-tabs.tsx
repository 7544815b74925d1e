import { to } from "../address.ts";

const tabs = { models: ["Models", to(["models"])], routes: ["Routes", to(["models", "routes"])] } as const;

/** The two lists of names that clients may ask for. */
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
