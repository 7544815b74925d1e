/** Browsers in words. Pure. */

/** The names of browsers by their signs in a User-Agent. An earlier one counts: Edge has the signs of Chrome and Safari too. */
const browsers = { Edg: "Edge", OPR: "Opera", Firefox: "Firefox", FxiOS: "Firefox", Chrome: "Chrome", CriOS: "Chrome" };
const systems = {
  iPhone: "iPhone",
  iPad: "iPad",
  Android: "Android",
  Windows: "Windows",
  Mac: "macOS",
  Linux: "Linux",
};

/** Returns the browser of a User-Agent and its system, or the User-Agent itself where it names no known browser. */
export function browserText(agent: string): string {
  const find = (names: object) => Object.entries(names).find(([sign]) => agent.includes(sign))?.[1];
  const browser = find({ ...browsers, Safari: "Safari" });
  return browser === undefined ? agent : `${browser} on ${find(systems) ?? "an unknown system"}`;
}
