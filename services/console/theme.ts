/** The colours: those of the system until the viewer chooses. */
import { computed, effect, signal } from "@preact/signals";

export const themes = ["system", "light", "dark"] as const;
type Theme = (typeof themes)[number];

const keptAt = "trunkline-theme";
const kept = themes.find((each) => each === localStorage.getItem(keptAt));
export const theme = signal<Theme>(kept ?? "system");

const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const isSystemDark = signal(darkScheme.matches);
darkScheme.addEventListener("change", () => (isSystemDark.value = darkScheme.matches));
export const isDark = computed(() => (theme.value === "system" ? isSystemDark.value : theme.value === "dark"));

export function keepTheme(): void {
  effect(() => {
    localStorage.setItem(keptAt, theme.value);
    document.documentElement.dataset["theme"] = isDark.value ? "dark" : "light";
  });
}

export function nextTheme(): void {
  theme.value = themes[(themes.indexOf(theme.value) + 1) % themes.length] ?? "system";
}
