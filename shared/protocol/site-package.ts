/** Path of the npm package that a site serves, so that its machines run its version. */
export const packagePath = "/agent.tgz";

/**
 * Returns the command that runs the package of a site. npx keeps for good what it fetched from an address, so the address
 * names the version. The quotes keep zsh from reading `?` as a pattern, and work in the shells of every system.
 */
export function packageCommand(origin: string, version: string): string {
  return `npx -y "${origin}${packagePath}?${version}"`;
}
