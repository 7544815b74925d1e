import { Argument, type Command, type Option } from "commander";
import { commandIn, type Surroundings } from "./command-line.ts";

/** One command of the tree, with what may follow it on a command line. */
interface Place {
  /** The words that lead to the command, such as `trunkline keys issue`. */
  readonly words: string;
  readonly commands: readonly Choice[];
  readonly options: readonly Choice[];
}

interface Choice {
  readonly name: string;
  readonly description: string;
  /** All values of an option that has a closed list of them. */
  readonly values?: readonly string[] | undefined;
}

const scripts: Readonly<Record<string, (places: readonly Place[]) => string>> = {
  bash: bashScript,
  zsh: zshScript,
  fish: fishScript,
  powershell: powershellScript,
};

/** Makes the command `trunkline completion <shell>`, which completes the commands of its parent. */
export function completionCommand(surroundings: Surroundings): Command {
  return commandIn("completion", surroundings)
    .description("print a script for TAB completion in a shell")
    .addArgument(new Argument("<shell>").choices(Object.keys(scripts)))
    .more(`
It completes an installed "trunkline", from the next shell on:
  trunkline completion bash > ~/.local/share/bash-completion/completions/trunkline
  echo 'source <(trunkline completion zsh)' >> ~/.zshrc
  trunkline completion fish > ~/.config/fish/completions/trunkline.fish
  trunkline completion powershell >> $PROFILE`)
    .action((shell: string, _: object, command: Command) => {
      const places = placesFrom(command.parent ?? command);
      surroundings.stdout.write(scripts[shell]?.(places) ?? "");
    });
}

function placesFrom(command: Command, before = ""): readonly Place[] {
  const words = `${before} ${command.name()}`.trim();
  const flagsOf = ({ long, short }: Option): string[] =>
    [long, short].filter((flag) => flag !== undefined && flag !== null);
  const place: Place = {
    words,
    commands: [
      ...command.commands.map((each) => ({ name: each.name(), description: each.summary() || each.description() })),
      ...command.registeredArguments.flatMap(({ argChoices = [] }) =>
        argChoices.map((name) => ({ name, description: "" })),
      ),
    ],
    options: command
      .createHelp()
      .visibleOptions(command)
      .flatMap((option) =>
        flagsOf(option).map((name) => ({ name, description: option.description, values: option.argChoices })),
      ),
  };
  return [place, ...command.commands.flatMap((each) => placesFrom(each, words))];
}

const namesOf = (choices: readonly Choice[]): string => choices.map(({ name }) => name).join(" ");

/** The paths of all commands but the first, as patterns of a `case`. */
function pathPatterns(places: readonly Place[]): string {
  return places
    .slice(1)
    .map(({ words }) => `"${words}"`)
    .join(" | ");
}

/** Words that were typed, and a text that belongs to them. */
type Pair = readonly [words: string, text: string];

/** The options that have a closed list of values, each with the words before it. */
function optionsWithValues(places: readonly Place[]): readonly Pair[] {
  return places.flatMap(({ words, options }) =>
    options.flatMap(({ name, values }): Pair[] => (values ? [[`${words} ${name}`, values.join(" ")]] : [])),
  );
}

/** The branches of a `case` over typed words. */
function cases(branches: readonly Pair[]): string {
  return branches.map(([words, action]) => `    "${words}") ${action} ;;`).join("\n");
}

/** Works in bash 3.2 too, which macOS has. */
function bashScript(places: readonly Place[]): string {
  return `_trunkline() {
  local at=trunkline word names= options= index
  for ((index = 1; index < COMP_CWORD; index++)); do
    word="\${COMP_WORDS[index]}"
    case "$at $word" in
      ${pathPatterns(places)}) at="$at $word" ;;
    esac
  done
  case "$at" in
${cases(places.map(({ words, commands, options }) => [words, `names="${namesOf(commands)}" options="${namesOf(options)}"`]))}
  esac
  case "$at \${COMP_WORDS[COMP_CWORD - 1]}" in
${cases(optionsWithValues(places).map(([words, values]) => [words, `names="${values}"`]))}
  esac
  word="\${COMP_WORDS[COMP_CWORD]}"
  case "$word" in -*) names="$options" ;; esac
  COMPREPLY=($(compgen -W "$names" -- "$word"))
}
complete -o default -F _trunkline trunkline
`;
}

function zshScript(places: readonly Place[]): string {
  const described = (choices: readonly Choice[]): string =>
    choices.map(({ name, description }) => inQuotes(`${name}:${description}`)).join(" ");
  return `#compdef trunkline
_trunkline() {
  local at=trunkline word
  local -a names options
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      ${pathPatterns(places)}) at="$at $word" ;;
    esac
  done
  case "$at" in
${cases(places.map(({ words, commands, options }) => [words, `names=(${described(commands)}) options=(${described(options)})`]))}
  esac
  case "$at \${words[CURRENT-1]}" in
${cases(optionsWithValues(places).map(([words, values]) => [words, `names=(${values})`]))}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then
    _describe -o option options
  elif (( $#names )); then
    _describe command names
  else
    _files
  fi
}
compdef _trunkline trunkline
`;
}

function fishScript(places: readonly Place[]): string {
  const lines = places.flatMap(({ words, commands, options }) => {
    const line = `complete -c trunkline -n ${inQuotes(`test (__trunkline_at) = "${words}"`)}`;
    return [
      ...commands.map(({ name, description }) => `${line} -f -a ${name} -d ${inQuotes(description)}`),
      ...options.map(({ name, description, values }) => {
        const flag = name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`;
        return `${line} ${flag}${values ? ` -x -a "${values.join(" ")}"` : ""} -d ${inQuotes(description)}`;
      }),
    ];
  });
  return `function __trunkline_at
    set -l at trunkline
    for word in (commandline -opc)[2..-1]
        switch "$at $word"
            case ${places
              .slice(1)
              .map(({ words }) => inQuotes(words))
              .join(" ")}
                set at "$at $word"
        end
    end
    echo $at
end
${lines.join("\n")}
`;
}

function powershellScript(places: readonly Place[]): string {
  const table = (pairs: readonly Pair[]): string =>
    pairs.map(([words, names]) => `    '${words}' = '${names}'`).join("\n");
  return `Register-ArgumentCompleter -Native -CommandName trunkline -ScriptBlock {
  param($word, $line, $cursor)
  $names = @{
${table(places.map(({ words, commands }) => [words, namesOf(commands)]))}
  }
  $options = @{
${table(places.map(({ words, options }) => [words, namesOf(options)]))}
  }
  $values = @{
${table(optionsWithValues(places))}
  }
  $at = 'trunkline'
  $before = @($line.CommandElements | Where-Object { $_.Extent.EndOffset -lt $cursor } | ForEach-Object { "$_" })
  foreach ($each in $before) { if ($options.ContainsKey("$at $each")) { $at = "$at $each" } }
  $found = $names[$at]
  if ($word.StartsWith('-')) { $found = $options[$at] }
  elseif ($values.ContainsKey("$at $($before[-1])")) { $found = $values["$at $($before[-1])"] }
  -split $found | Where-Object { $_ -and $_.StartsWith($word) } | ForEach-Object {
    [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $_)
  }
}
`;
}

/** Quotes a text for zsh and fish. */
function inQuotes(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
