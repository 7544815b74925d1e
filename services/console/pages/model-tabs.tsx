import { to } from "../address.ts";

/** The two lists of names that clients may ask for. */
export function ModelTabs({ at }: { readonly at: "models" | "routes" }) {
  return (
    <nav class="tabs" aria-label="Models and routes">
      <a href={to(["models"])} aria-current={at === "models" ? "page" : undefined}>
        Models
      </a>
      <a href={to(["models", "routes"])} aria-current={at === "routes" ? "page" : undefined}>
        Routes
      </a>
    </nav>
  );
}
