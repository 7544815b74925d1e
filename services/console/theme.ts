/** The colours: those of the system until the viewer chooses. */
import { effect, signal } from "@preact/signals";

export const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];

const keptAt = "trunkline-theme";
const kept = themes.find((each) => each === localStorage.getItem(keptAt));
export const theme = signal<Theme>(kept ?? "system");

export function keepTheme(): void {
  effect(() => {
    localStorage.setItem(keptAt, theme.value);
    if (theme.value === "system") document.documentElement.removeAttribute("data-theme");
    else document.documentElement.dataset["theme"] = theme.value;
  });
}

export function nextTheme(): void {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? "system";
}
