import { spawn } from "node:child_process";

const openers: Readonly<Record<string, readonly [command: string, ...options: string[]]>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Opens a URL in the browser of this host, without a shell. */
export function openBrowser(url: string, onFailure: () => void): void {
  const [command, ...options] = openers[process.platform] ?? ["xdg-open"];
  const opened = spawn(command, [...options, url], { stdio: "ignore", detached: true });
  opened.once("error", onFailure);
  opened.once("exit", (code) => {
    if (code !== 0) onFailure();
  });
  opened.unref();
}
