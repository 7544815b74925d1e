import { Argument, type Command, type Option } from "commander";
import { exitCodes, StartFailure } from "#shared/process/lifecycle.ts";
import { type CliCommand, commandIn, type CliContext } from "../terminal/command-line.ts";

interface CompletionChoice {
  readonly name: string;
  readonly description: string;
}

/**
 * A shell: its script, which runs this program at each TAB, and the line of a choice for it. The program fails where the
 * user's own text stands, and the shell then offers files.
 */
interface CompletionShell {
  readonly script: string;
  readonly line: (choice: CompletionChoice) => string;
}

/** Makes the command `trunkline completion <shell>`, which completes the commands of its parent. */
export function completionCommand(context: CliContext): CliCommand {
  const { stdout } = context;
  return commandIn("completion", context)
    .addArgument(new Argument("<shell>").choices(Object.keys(shells)))
    .addArgument(new Argument("[words...]", "the words of a line that the script asks about, its last one first"))
    .passThroughOptions()
    .more(`
It completes an installed "trunkline", from the next shell on, with the names of models from the site that "trunkline chat"
would ask:
  trunkline completion bash > ~/.local/share/bash-completion/completions/trunkline
  echo 'source <(trunkline completion zsh)' >> ~/.zshrc
  trunkline completion fish > ~/.config/fish/completions/trunkline.fish
  trunkline completion powershell >> $PROFILE`)
    .action(async (name: string, [last, ...before]: readonly string[], _: object, command: Command) => {
      const shell = shells[name];
      if (shell === undefined) return;
      if (last === undefined) return void stdout.write(shell.script);
      const word = last.slice(mark.length);
      const choices = await choicesAt(command.parent ?? command, { before, word }, context);
      if (choices === undefined) throw new StartFailure(exitCodes.failed, "A text of the user's own stands here.");
      for (const choice of choices) {
        if (choice.name.startsWith(word)) stdout.write(`${shell.line(choice)}\n`);
      }
    });
}

/** Begins the word at the cursor, which may be empty or look like an option. */
const mark = "=";
const named = ({ name }: CompletionChoice): string => name;

const shells: Readonly<Record<string, CompletionShell>> = {
  // Works in bash 3.2 too, which macOS has. Bash splits words at colons and replaces the part behind the last one.
  bash: {
    line: named,
    script: `_trunkline() {
  local line="\${COMP_LINE:0:COMP_POINT}" words
  local word="\${line##* }"
  read -ra words <<< "\${line% *}"
  local IFS=$'\\n'
  COMPREPLY=($(trunkline completion bash "=$word" "\${words[@]:1}" 2>/dev/null)) && compopt +o default 2>/dev/null
  if [[ "$COMP_WORDBREAKS" == *:* ]]; then COMPREPLY=("\${COMPREPLY[@]#"\${word%"\${word##*:}"}"}"); fi
}
complete -o default -F _trunkline trunkline
`,
  },
  zsh: {
    line: ({ name, description }) => [name.replaceAll(":", String.raw`\:`), description].filter(Boolean).join(":"),
    script: `#compdef trunkline
_trunkline() {
  local -a found
  found=("\${(@f)$(trunkline completion zsh "=\${words[CURRENT]}" "\${(@)words[2,CURRENT-1]}" 2>/dev/null)}")
  if (( $? )); then _files; elif [[ -n "$found" ]]; then _describe trunkline found; fi
}
compdef _trunkline trunkline
`,
  },
  fish: {
    line: ({ name, description }) => `${name}\t${description}`,
    script: `function __trunkline
    set -l word (commandline -ct)
    set -l found (trunkline completion fish "=$word" (commandline -opc)[2..-1] 2>/dev/null)
    or __fish_complete_path "$word"
    printf '%s\\n' $found
end
complete -c trunkline -f -a '(__trunkline)'
`,
  },
  powershell: {
    line: named,
    script: `Register-ArgumentCompleter -Native -CommandName trunkline -ScriptBlock {
  param($word, $line, $cursor)
  $before = @($line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { "$_" })
  trunkline completion powershell "=$word" @($before | Select-Object -Skip 1) 2>$null | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }
}
`,
  },
};

/** Returns all that may stand at the cursor. Undefined where a text of the user's own stands, such as a file. */
async function choicesAt(
  root: Command,
  { before, word }: { readonly before: readonly string[]; readonly word: string },
  context: CliContext,
): Promise<readonly CompletionChoice[] | undefined> {
  let command = root;
  let argument = 0;
  let valued: Option | undefined;
  let site: string | undefined;
  for (const each of before) {
    const found = command.commands.find((one) => one.name() === each || one.aliases().includes(each));
    if (valued !== undefined) {
      if (["--url", "--base-url"].includes(valued.long ?? "")) site = each;
      valued = undefined;
    } else if (each.startsWith("-")) {
      valued = command.options.find((option) => [option.long, option.short].includes(each) && option.required);
    } else if (found !== undefined && argument === 0) {
      command = found;
    } else {
      argument += 1;
    }
  }
  if (valued === undefined && word.startsWith("-")) return optionsOf(command);
  const wanted = valued ?? command.registeredArguments[argument];
  if (takesModel(wanted)) return modelsAt(site, context);
  const values = wanted?.argChoices?.map((name) => ({ name, description: "" })) ?? [];
  const choices = valued === undefined && argument === 0 ? [...commandsOf(command), ...values] : values;
  return choices.length === 0 ? undefined : choices;
}

function commandsOf(command: Command): readonly CompletionChoice[] {
  return command.commands.map((each) => ({ name: each.name(), description: each.summary() || each.description() }));
}

function optionsOf(command: Command): readonly CompletionChoice[] {
  return command
    .createHelp()
    .visibleOptions(command)
    .flatMap(({ long, short, description }) => [long, short].flatMap((name) => (name ? [{ name, description }] : [])));
}

function takesModel(wanted: Option | Argument | undefined): boolean {
  return /<(?:model|target)>/.test(wanted instanceof Argument ? `<${wanted.name()}>` : (wanted?.flags ?? ""));
}

/**
 * Time from the start of this process in which the site must answer, so that a TAB takes at most 300 ms. On a host that
 * starts it slowly the site has a little more.
 */
const modelsWithinMs = 280;
const askMsMin = 100;
/** Matches names that no shell takes for more than a word. Machines choose the names of their models. */
const plainWord = /^[\w.@/+][\w.@/+:-]*$/;

/** Returns the models of the live site. Empty if it does not list them in time, or refuses to. */
async function modelsAt(url: string | undefined, context: CliContext): Promise<readonly CompletionChoice[]> {
  try {
    const { siteAtHand } = await import("../site/logins.ts");
    const { listSiteModels } = await import("../site/chat-client.ts");
    const site = siteAtHand(context.environment, url, "--url");
    const signal = AbortSignal.timeout(Math.max(askMsMin, modelsWithinMs - Math.ceil(performance.now())));
    const models = await listSiteModels(site, signal);
    return models.flatMap(({ id }) => (plainWord.test(id) ? [{ name: id, description: "" }] : []));
  } catch {
    return [];
  }
}
