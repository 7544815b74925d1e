/** Browsers in words. Pure. */

const browsers = [
  [/Edg\//, "Edge"],
  [/OPR\//, "Opera"],
  [/Firefox\/|FxiOS\//, "Firefox"],
  [/Chrome\/|CriOS\//, "Chrome"],
  [/Safari\//, "Safari"],
] as const;
const systems = [
  [/iPhone|iPad/, "iOS"],
  [/Android/, "Android"],
  [/Windows/, "Windows"],
  [/Mac OS X/, "macOS"],
  [/Linux/, "Linux"],
] as const;

/** Returns the browser of a User-Agent and its system, or the User-Agent itself where it names no known browser. */
export function browserText(agent: string): string {
  const find = (rows: typeof browsers | typeof systems) => rows.find(([pattern]) => pattern.test(agent))?.[1];
  const [browser, system] = [find(browsers), find(systems)];
  return browser === undefined ? agent : system === undefined ? browser : `${browser} on ${system}`;
}
