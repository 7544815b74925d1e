import type { Command } from "commander";
import { type CliCommand, type CliContext, commandIn } from "./terminal/command-line.ts";

/** The commands in the groups of the help of `trunkline`, each with its summary. */
const summaries: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "Run:": {
    up: "run everything in one process: gateway, agent, broker and keys",
    gateway: "run a gateway: the endpoint that clients talk to",
    agent: "run an agent, or install it: on a GPU machine",
  },
  "Use:": {
    login: "get a key of your own from a site, by the browser",
    logout: "revoke the key of a login, and forget it",
    chat: "chat with a model",
    connect: "configure a coding agent, an editor or a chat app for a site, and undo it",
  },
  "Manage:": {
    keys: "issue API keys, list and change them, take them back",
    machines: "pair machines, cordon and revoke them, say which models each may offer",
    models: "list the models of all machines; pull, remove, load, keep them",
    teams: "make teams with limits of their own, and say who is a member",
    people: "list those who sign in as members, limit, disable and forget them",
    routes: "let names that clients know stand for your models",
    prices: "set what models cost by tokens, seconds, images and requests",
    alerts: "add, list, test and remove the targets that are called when something is wrong",
    sessions: "list and end the sessions of the console",
    nats: "make credentials and configuration for a NATS server",
    backup: "write a site's keys, machines, routes, usage and trail to a file",
    restore: "put the backup of a site into a store: Redis or a folder",
  },
  "Watch:": {
    console: "print a link that signs a browser in to the console",
    site: "show the gateways, settings in force, certificates and the last backup",
    status: "show the machines, their load, and why one gets no work",
    doctor: "look for what is wrong with this machine or site, and say how to mend it",
    route: "show which machines would get a request for a model, and why",
    requests: "show requests that ended: who asked, which machine answered, how long it took, and why it failed",
    usage: "show requests and tokens by key, model and day",
  },
  "More:": {
    completion: "print a script for TAB completion in a shell",
  },
};

const loaders: Readonly<Record<string, (context: CliContext) => Promise<Command>>> = {
  up: async (context) => (await import("./commands/start-commands.ts")).upCommand(context),
  gateway: async (context) => (await import("./commands/start-commands.ts")).gatewayCommand(context),
  agent: async (context) => (await import("./commands/agent.ts")).agentCommand(context),
  login: async (context) => (await import("./commands/login.ts")).loginCommand(context),
  logout: async (context) => (await import("./commands/login.ts")).logoutCommand(context),
  chat: async (context) => (await import("./commands/chat.ts")).chatCommand(context),
  connect: async (context) => (await import("./connect/connect.ts")).connectCommand(context),
  keys: async (context) => (await import("./commands/keys.ts")).keysCommand(context),
  machines: async (context) => (await import("./commands/machines.ts")).machinesCommand(context),
  models: async (context) => (await import("./commands/models.ts")).modelsCommand(context),
  teams: async (context) => (await import("./commands/teams.ts")).teamsCommand(context),
  people: async (context) => (await import("./commands/people.ts")).peopleCommand(context),
  routes: async (context) => (await import("./commands/routes.ts")).routesCommand(context),
  prices: async (context) => (await import("./commands/prices.ts")).pricesCommand(context),
  alerts: async (context) => (await import("./commands/alerts.ts")).alertsCommand(context),
  sessions: async (context) => (await import("./commands/sessions.ts")).sessionsCommand(context),
  nats: async (context) => (await import("./commands/nats.ts")).natsCommand(context),
  backup: async (context) => (await import("./commands/backup.ts")).backupCommand(context),
  restore: async (context) => (await import("./commands/backup.ts")).restoreCommand(context),
  console: async (context) => (await import("./commands/console.ts")).consoleCommand(context),
  site: async (context) => (await import("./commands/site.ts")).siteCommand(context),
  status: async (context) => (await import("./commands/status.ts")).statusCommand(context),
  doctor: async (context) => (await import("./doctor/doctor.ts")).doctorCommand(context),
  route: async (context) => (await import("./commands/route.ts")).routeCommand(context),
  requests: async (context) => (await import("./commands/requests.ts")).requestsCommand(context),
  usage: async (context) => (await import("./commands/usage.ts")).usageCommand(context),
  completion: async (context) => (await import("./commands/completion.ts")).completionCommand(context),
};

/**
 * Adds all commands to the program. Loads the files of the commands that the line names, because those of all take
 * several times as long as the start of Node (`npm run bench -- --only commands`). A summary is also the description of
 * a command that has no longer one.
 */
export async function addCommands(program: CliCommand, words: readonly string[], context: CliContext): Promise<void> {
  for (const [group, named] of Object.entries(summaries)) {
    program.commandsGroup(group);
    for (const [name, summary] of Object.entries(named)) {
      const loaded = words.includes(name) ? await loaders[name]?.(context) : undefined;
      const command = loaded ?? commandIn(name, context);
      program.addCommand(command.summary(summary).description(command.description() || summary));
    }
  }
}
