/** The address of the page: its path below `/console`, and its query. Back, reload and a sent link show the same again. */
import { computed, signal } from "@preact/signals";

const root = "/console";
const place = signal(new URL(location.href));
addEventListener("popstate", () => (place.value = new URL(location.href)));

/** The parts of the path, decoded: `/console/machines/attic` is `["machines", "attic"]`. */
export const path = computed(() => place.value.pathname.slice(root.length).split("/").filter(Boolean).map(decoded));
export const query = computed(() => place.value.searchParams);

/** Returns the address of a page. */
export function to(parts: readonly string[], given: Readonly<Record<string, string | undefined>> = {}): string {
  const named = Object.entries(given).flatMap(([name, value]) => (value ? [[name, value]] : []));
  const text = [root, ...parts.map(encodeURIComponent)].join("/");
  return named.length === 0 ? text : `${text}?${new URLSearchParams(named).toString()}`;
}

export function go(address: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", address);
  else history.pushState(null, "", address);
  place.value = new URL(location.href);
  if (!replace) scrollTo(0, 0);
}

/**
 * Sets one field of the query, drops those in `drops`, and leaves the others. A filter replaces the address, so that Back
 * leaves the page.
 */
export function setQuery(name: string, value: string | undefined, ...drops: readonly string[]): void {
  const next = new URL(location.href);
  for (const dropped of drops) next.searchParams.delete(dropped);
  if (value) next.searchParams.set(name, value);
  else next.searchParams.delete(name);
  go(next.href, { replace: true });
}

/** Follows links within the console without loading the page anew. */
export function followLinks(): void {
  addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (link === null || event.defaultPrevented || event.button !== 0 || link.target !== "") return;
    if (link.dataset["leaves"] !== undefined) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || link.hasAttribute("download")) return;
    if (link.origin !== location.origin || !link.pathname.startsWith(root) || link.hash !== "") return;
    event.preventDefault();
    go(link.href);
  });
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
