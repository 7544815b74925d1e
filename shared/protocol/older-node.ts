/** Returns a command that begins with npx as a host needs it whose Node is older than 22.19: npx fetches Node 24 too. */
export function onOlderNode(command: string): string {
  return command.replace(/npx -y (\S+)/, "npx -y -p node@24 -p $1 trunkline");
}
